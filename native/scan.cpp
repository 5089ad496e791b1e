// Exact search: byte tables pass most rows over, exact tables decide about the rest.
//
// The bound starts from a sample and tightens as better rows are found. Should the sample have promised too much, fewer than
// k rows are found and the query is scanned again without a guess, so results never depend on it. Where byte tables pass too
// many rows (distances that are all alike, tables with an outlier), a stretch of rows is looked up exactly instead.
#include "scan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <new>

#include "bound.hpp"
#include "pool.hpp"

namespace ccq {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::size_t kChunk = 64;           // groups between looks at the bound, one query
constexpr std::size_t kBatchChunk = 16;      // the same, many queries
constexpr std::size_t kStretch = 16;         // chunks between looks at how many rows pass
constexpr std::size_t kMostPassing = 20;     // one row in so many may pass
constexpr std::size_t kSampleGroups = 16;
constexpr std::size_t kDeepSampleGroups = 512;
constexpr std::size_t kParallelFrom = 1 << 12;  // groups per thread and query that are worth waking a thread

// Groups are numbered through all segments; a range of them is a thread's share. Rows behind a segment's last full group
// belong to the share that holds that group's number.
struct Share {
    std::size_t begin, end;
};

class Groups {
   public:
    explicit Groups(const std::vector<Segment>& segments) : segments_(segments), starts_(segments.size() + 1, 0) {
        for (std::size_t s = 0; s < segments.size(); ++s)
            starts_[s + 1] = starts_[s] + (segments[s].rows + kGroup - 1) / kGroup;
    }

    std::size_t count() const { return starts_.back(); }

    // Call visit(segment, first full group, full groups, rows of the partial group behind them) for each piece of a share.
    template <class Visit>
    void pieces(Share share, Visit visit) const {
        for (std::size_t s = 0; s < segments_.size(); ++s) {
            const std::size_t lo = std::max(share.begin, starts_[s]), hi = std::min(share.end, starts_[s + 1]);
            if (lo >= hi) continue;
            const std::size_t first = lo - starts_[s], last = hi - starts_[s];
            const std::size_t full = std::min(last, segments_[s].rows / kGroup);
            const std::size_t rest = last > full ? segments_[s].rows % kGroup : 0;
            visit(segments_[s], first, full > first ? full - first : 0, rest);
        }
    }

    // The full group nearest below a number, or null if that one is partial.
    const Segment* locate(std::size_t number, std::size_t* group) const {
        const auto at = std::upper_bound(starts_.begin(), starts_.end(), number) - starts_.begin() - 1;
        *group = number - starts_[(std::size_t)at];
        const Segment& s = segments_[(std::size_t)at];
        return *group < s.rows / kGroup ? &s : nullptr;
    }

   private:
    const std::vector<Segment>& segments_;
    std::vector<std::size_t> starts_;
};

inline std::uint64_t live(const Segment& s, std::size_t group) { return s.mask ? s.mask[group] : ~std::uint64_t{0}; }

template <class T>
struct Free {
    void operator()(T* p) const { ::operator delete[](p, std::align_val_t(64)); }
};
template <class T>
using Aligned = std::unique_ptr<T[], Free<T>>;
template <class T>
Aligned<T> aligned(std::size_t n) {
    return Aligned<T>(static_cast<T*>(::operator new[](n * sizeof(T), std::align_val_t(64))));
}

// Exact keys of the live rows of a group, offered as they come.
void offer_rows(const Bound& bound, const Segment& s, std::size_t group, std::size_t rows, TopK* best) {
    std::uint64_t mask = live(s, group);
    if (rows < kGroup) mask &= (std::uint64_t{1} << rows) - 1;
    const std::uint8_t* codes = s.codes + group * (std::size_t)bound.planes() * kGroup;
    for (; mask; mask &= mask - 1) {
        const std::size_t row = (std::size_t)__builtin_ctzll(mask);
        best->offer(bound.key(codes + row), s.first + group * kGroup + row);
    }
}

// The same for full groups of which all rows live, four sums in flight. The plain way to search; P is known.
template <int P, bool Cosine>
void plain_groups(const double* t, const Segment& s, std::size_t first, std::size_t groups, TopK* best) {
    const std::uint8_t* codes = s.codes + first * (std::size_t)P * kGroup;
    for (std::size_t g = first; g < first + groups; ++g, codes += (std::size_t)P * kGroup) {
        for (std::size_t j = 0; j < kGroup; j += 4) {
            double key[4];
            for (int i = 0; i < 4; ++i) key[i] = t[codes[j + (std::size_t)i]];
#pragma GCC unroll 17
            for (int m = 1; m + 1 < P; ++m)
                for (int i = 0; i < 4; ++i) key[i] += t[256 * m + codes[(std::size_t)m * kGroup + j + (std::size_t)i]];
            for (int i = 0; i < 4; ++i) {
                const double last = t[256 * (P - 1) + codes[(std::size_t)(P - 1) * kGroup + j + (std::size_t)i]];
                key[i] = Cosine ? key[i] * last : key[i] + last;
            }
            const double b = best->bound();
            if ((key[0] <= b) | (key[1] <= b) | (key[2] <= b) | (key[3] <= b))
                for (int i = 0; i < 4; ++i) best->offer(key[i], s.first + g * kGroup + j + (std::size_t)i);
        }
    }
}

using Plain = void (*)(const double*, const Segment&, std::size_t, std::size_t, TopK*);

template <int... I>
Plain pick_plain(int planes, bool cosine, std::integer_sequence<int, I...>) {
    static constexpr Plain kSums[] = {plain_groups<kMinPlanes + I, false>...};
    static constexpr Plain kCosines[] = {plain_groups<kMinPlanes + I, true>...};
    return (cosine ? kCosines : kSums)[planes - kMinPlanes];
}

void plain(const Bound& bound, const Segment& s, std::size_t first, std::size_t groups, TopK* best) {
    if (!s.mask) {
        const Plain run = pick_plain(bound.planes(), bound.cosine(),
                                     std::make_integer_sequence<int, kMaxPlanes - kMinPlanes + 1>{});
        return run(bound.exact(), s, first, groups, best);
    }
    for (std::size_t g = first; g < first + groups; ++g) offer_rows(bound, s, g, kGroup, best);
}

// How many of a sample must be below a threshold so that it is hardly ever too low, where `expected` are on average.
std::size_t rank_for(double expected) { return (std::size_t)std::ceil(expected + 4 * std::sqrt(expected) + 4); }

// A first guess at the k-th best key, from rows spread over everything. Infinite if a sample cannot tell.
double guess(const Scan& scan, const Groups& groups, Bound* bound, bool deep) {
    const std::size_t total = groups.count();
    if (scan.rows < 64 * kGroup || total < 64) return kInfinity;
    const auto sample = [&](std::size_t n, auto visit) {
        for (std::size_t i = 0; i < n; ++i) {
            std::size_t group;
            // The middle of each of n parts, shaken by a fixed amount so that no period of the data is met.
            const std::size_t number = std::min(total - 1, (i * total + (i * 2654435761u) % total) / n);
            if (const Segment* s = groups.locate(number, &group)) visit(*s, group);
        }
    };
    std::vector<double> keys;
    std::size_t seen = 0;
    const auto look = [&](const Segment& s, std::size_t group) {
        const std::uint8_t* codes = s.codes + group * (std::size_t)scan.planes * kGroup;
        for (std::uint64_t mask = live(s, group); mask; mask &= mask - 1, ++seen)
            keys.push_back(bound->key(codes + __builtin_ctzll(mask)));
    };
    std::size_t n = kSampleGroups;
    // For a large k the first sample has to be larger; for a selective mask too.
    while (n < kDeepSampleGroups / 2 && n * 32 < total &&
           ((double)scan.k / (double)scan.rows > 1.0 / 16 || (double)scan.rows / (double)(total * kGroup) < 16.0 / (double)n))
        n *= 2;
    sample(n, look);
    std::size_t rank = rank_for((double)scan.k * (double)seen / (double)scan.rows);
    if (seen == 0 || rank > keys.size()) return kInfinity;
    std::nth_element(keys.begin(), keys.begin() + (std::ptrdiff_t)(rank - 1), keys.end());
    const double first = keys[rank - 1];
    if (!deep || total < 8 * kDeepSampleGroups) return first;

    // A sharper guess from more rows, of which byte tables pass over most.
    const auto bytes = aligned<std::uint8_t>((std::size_t)scan.planes * kCodes);
    if (!bound->quantize(first, bytes.get(), 1)) return first;
    bool tight;
    const std::uint8_t limit = bound->limit(first, bytes.get(), 1, &tight);
    keys.clear(), seen = 0;
    std::uint32_t rows[kGroup];
    sample(kDeepSampleGroups, [&](const Segment& s, std::size_t group) {
        seen += (std::size_t)__builtin_popcountll(live(s, group));
        const std::uint8_t* codes = s.codes + group * (std::size_t)scan.planes * kGroup;
        const std::size_t found =
            scan.kernels->filter[scan.planes](codes, 1, bytes.get(), limit, s.mask ? s.mask + group : nullptr, rows);
        for (std::size_t i = 0; i < found; ++i) keys.push_back(bound->key(codes + rows[i]));
    });
    rank = rank_for((double)scan.k * (double)seen / (double)scan.rows);
    if (rank > keys.size()) return first;
    std::nth_element(keys.begin(), keys.begin() + (std::ptrdiff_t)(rank - 1), keys.end());
    return std::min(first, keys[rank - 1]);
}

// One query over one share.
void scan_share(const Scan& scan, const Groups& groups, Share share, Bound bound, TopK* best) {
    const auto bytes = aligned<std::uint8_t>((std::size_t)scan.planes * kCodes);
    const auto rows = aligned<std::uint32_t>(kChunk * kGroup);
    const Filter filter = scan.kernels->filter[scan.planes];
    bool quantized = false;
    double limited_for = kInfinity;
    std::uint8_t limit = 0;
    std::size_t passed = 0, stretch = 0, plain_left = 0;
    bool done = false;
    groups.pieces(share, [&](const Segment& s, std::size_t first, std::size_t full, std::size_t rest) {
        for (std::size_t g = first; g < first + full && !done;) {
            const std::size_t n = std::min(kChunk, first + full - g);
            if (best->strict() && best->bound() <= bound.least_key()) {
                done = true;  // nothing can be better than what is held
                break;
            }
            if (scan.plain || !bound.finite() || !std::isfinite(best->bound()) || plain_left) {
                plain(bound, s, g, n, best);
                if (!std::isfinite(best->bound())) best->shrink();
                plain_left -= plain_left > 0;
                g += n;
                continue;
            }
            if (best->bound() != limited_for) {
                bool tight = false;
                if (quantized) limit = bound.limit(best->bound(), bytes.get(), 1, &tight);
                if (!tight) {
                    quantized = bound.quantize(best->bound(), bytes.get(), 1);
                    if (!quantized) {
                        plain_left = kStretch * 4;
                        continue;
                    }
                    limit = bound.limit(best->bound(), bytes.get(), 1, &tight);
                }
                limited_for = best->bound();
            }
            const std::uint8_t* codes = s.codes + g * (std::size_t)scan.planes * kGroup;
            const std::size_t found = filter(codes, n, bytes.get(), limit, s.mask ? s.mask + g : nullptr, rows.get());
            for (std::size_t i = 0; i < found; ++i) {
                const std::size_t row = g * kGroup + rows[i];
                best->offer(bound.key(row_bytes(s, scan.planes, row)), s.first + row);
            }
            g += n;
            passed += found;
            if (++stretch == kStretch) {
                if (passed * kMostPassing > kStretch * kChunk * kGroup) plain_left = kStretch * 4;
                stretch = passed = 0;
            }
        }
        if (rest && !done) offer_rows(bound, s, s.rows / kGroup, rest, best);
    });
}

// Many queries over one share. False if byte tables pass too many rows: then the queries go one by one.
bool batch_share(const Scan& scan, const Groups& groups, Share share, std::vector<Bound> bounds, TopK* best) {
    const int width = scan.kernels->batch_width;
    const std::size_t queries = bounds.size(), plane_bytes = kCodes * (std::size_t)width;
    const auto bytes = aligned<std::uint8_t>((std::size_t)scan.planes * plane_bytes);
    const auto hits = aligned<Hit>(kBatchChunk * kGroup * (std::size_t)width);
    alignas(64) std::uint8_t limits[64] = {};
    std::vector<double> limited_for(queries, kInfinity);
    std::fill_n(bytes.get(), (std::size_t)scan.planes * plane_bytes, std::uint8_t{255});  // queries that are not there
    const auto relimit = [&](std::size_t q) {
        const double t = best[q].bound();
        if (t == limited_for[q]) return true;
        bool tight = false;
        if (limited_for[q] != kInfinity) limits[q] = bounds[q].limit(t, bytes.get() + q, (std::size_t)width, &tight);
        if (!tight) {
            if (!bounds[q].quantize(t, bytes.get() + q, (std::size_t)width)) return false;
            limits[q] = bounds[q].limit(t, bytes.get() + q, (std::size_t)width, &tight);
        }
        limited_for[q] = t;
        return true;
    };
    for (std::size_t q = 0; q < queries; ++q)
        if (!std::isfinite(best[q].bound()) || !bounds[q].finite() || !relimit(q)) return false;
    const BatchFilter filter = scan.kernels->batch[scan.planes];
    std::size_t passed = 0, stretch = 0;
    bool fine = true;
    groups.pieces(share, [&](const Segment& s, std::size_t first, std::size_t full, std::size_t rest) {
        for (std::size_t g = first; g < first + full && fine; g += kBatchChunk) {
            const std::size_t n = std::min(kBatchChunk, first + full - g);
            const std::uint8_t* codes = s.codes + g * (std::size_t)scan.planes * kGroup;
            const std::size_t found = filter(codes, n, bytes.get(), limits, s.mask ? s.mask + g : nullptr, hits.get());
            std::uint64_t touched = 0;
            for (std::size_t i = 0; i < found; ++i) {
                const std::size_t row = g * kGroup + hits[i].row, q = hits[i].query;
                best[q].offer(bounds[q].key(row_bytes(s, scan.planes, row)), s.first + row);
                touched |= std::uint64_t{1} << q;
            }
            for (; touched && fine; touched &= touched - 1) fine = relimit((std::size_t)__builtin_ctzll(touched));
            passed += found;
            if (++stretch == kStretch) {
                fine &= passed * kMostPassing <= kStretch * kBatchChunk * kGroup * queries;
                stretch = passed = 0;
            }
        }
        if (rest && fine)
            for (std::size_t q = 0; q < queries; ++q) offer_rows(bounds[q], s, s.rows / kGroup, rest, &best[q]);
    });
    return fine;
}

std::vector<Share> shares(std::size_t groups, int threads) {
    const std::size_t n = std::max<std::size_t>(1, std::min((std::size_t)threads, groups / kParallelFrom));
    std::vector<Share> out;
    for (std::size_t i = 0; i < n; ++i) out.push_back({groups * i / n, groups * (i + 1) / n});
    return out;
}

Bound bound_of(const Scan& scan, std::size_t query) {
    return {scan.tables + query * (std::size_t)scan.planes * kCodes, scan.planes, scan.cosine, scan.used};
}

std::vector<Candidate> search_one(const Scan& scan, const Groups& groups, std::size_t query) {
    Bound bound = bound_of(scan, query);
    const std::vector<Share> parts = shares(groups.count(), scan.threads);
    double first = scan.plain || !bound.finite() ? kInfinity : guess(scan, groups, &bound, scan.k >= 32);
    for (;; first = kInfinity) {
        std::vector<TopK> best(parts.size(), TopK(scan.k, first));
        run_parallel(parts.size(), [&](std::size_t i) { scan_share(scan, groups, parts[i], bound, &best[i]); });
        for (std::size_t i = 1; i < best.size(); ++i) best[0].merge(best[i]);
        if (first == kInfinity || best[0].size() >= std::min<std::uint64_t>(scan.k, scan.rows)) return best[0].finish();
    }
}

// Up to `batch_width` queries in one pass; an empty result for those that have to go alone.
void search_batch(const Scan& scan, const Groups& groups, std::size_t begin, std::size_t end,
                  std::vector<std::vector<Candidate>>* out) {
    std::vector<Bound> bounds;
    std::vector<double> first;
    for (std::size_t q = begin; q < end; ++q) {
        bounds.push_back(bound_of(scan, q));
        first.push_back(bounds.back().finite() ? guess(scan, groups, &bounds.back(), true) : kInfinity);
    }
    const std::vector<Share> parts = shares(groups.count(), scan.threads);
    std::vector<std::vector<TopK>> best(parts.size());
    std::vector<char> fine(parts.size(), 0);
    for (auto& b : best)
        for (const double t : first) b.emplace_back(scan.k, t);
    run_parallel(parts.size(),
                 [&](std::size_t i) { fine[i] = batch_share(scan, groups, parts[i], bounds, best[i].data()); });
    const bool all_fine = std::find(fine.begin(), fine.end(), 0) == fine.end();
    for (std::size_t q = begin; q < end; ++q) {
        TopK& top = best[0][q - begin];
        for (std::size_t i = 1; i < parts.size(); ++i) top.merge(best[i][q - begin]);
        const bool complete = all_fine && top.size() >= std::min<std::uint64_t>(scan.k, scan.rows);
        (*out)[q] = complete ? top.finish() : search_one(scan, groups, q);
    }
}

}  // namespace

std::vector<std::vector<Candidate>> search(const Scan& scan) {
    std::vector<std::vector<Candidate>> out(scan.queries);
    if (scan.k == 0 || scan.rows == 0) return out;
    const Groups groups(scan.segments);
    const std::size_t width = (std::size_t)scan.kernels->batch_width, from = (std::size_t)scan.kernels->batch_from;
    for (std::size_t q = 0; q < scan.queries;) {
        const std::size_t n = std::min(width, scan.queries - q);
        if (n >= from && !scan.plain && scan.rows >= 64 * kGroup) {
            search_batch(scan, groups, q, q + n, &out);
        } else {
            for (std::size_t i = q; i < q + n; ++i) out[i] = search_one(scan, groups, i);
        }
        q += n;
    }
    return out;
}

}  // namespace ccq
