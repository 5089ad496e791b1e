// Exact search: byte tables pass most rows over, exact tables decide about the rest.
//
// The bound starts from a sample and tightens as better rows are found. Should the sample have promised too much, fewer than
// k rows are found and the query is scanned again without a guess, so results never depend on it. Where byte tables pass too
// many rows (distances that are all alike, tables with an outlier), a stretch of rows is looked up exactly instead.
#include "scan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "aligned.hpp"
#include "bound.hpp"
#include "exact.hpp"
#include "groups.hpp"
#include "pool.hpp"

namespace ccq {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::size_t kChunk = 256;          // groups between looks at the bound, one query; fewer at first
constexpr std::size_t kFirstChunk = 16;
constexpr std::size_t kBatchChunk = 16;      // the same, many queries
constexpr std::size_t kStretch = 1024;       // groups between looks at how many rows pass; fewer at first
constexpr std::size_t kFirstStretch = 64;
constexpr std::size_t kMostPassing = 20;     // one row in so many may pass
constexpr std::size_t kSampleFrom = 64;      // groups from which a sample pays
constexpr std::size_t kTwoSamplesFrom = 1024;
constexpr std::size_t kMostSampled = 1024;
constexpr std::size_t kMany = 100;           // results
constexpr int kSteps = 254;                  // what rows are told apart by, where sums of bytes saturate
constexpr int kStepsOfPart = 112;            // the same for each of several parts: fewer, since they are not all alike
constexpr std::size_t kParallelFrom = 1 << 12;  // groups per thread and query that are worth waking a thread

// One query on its way through the rows.
class OneQuery {
   public:
    // `always_plain`: by exact tables alone. `rows`: room for what passes, kChunk groups.
    OneQuery(const Scan& scan, const Bound& bound, bool always_plain, std::uint32_t* rows, TopK* best)
        : scan_(scan), bound_(bound), always_plain_(always_plain || !bound.finite()), best_(best), exact_(exact_of(bound)),
          filter_(scan.kernels->filter[scan.planes]), bytes_(aligned<std::uint8_t>(byte_table_size(scan.planes))), rows_(rows),
          tables_(bound, kSteps) {}

    // Some groups, behind all others so far.
    void scan(const Segment& s, std::size_t first, std::size_t groups) {
        for (std::size_t g = first, end = first + groups; g < end && !done_;) {
            // Nothing can be better than what is held?
            done_ = !scan_.plain && best_->strict() && best_->bound() <= bound_.least_key();
            if (done_) return;
            const std::size_t n = std::min(chunk_, end - g);
            chunk_ = std::min(2 * chunk_, kChunk);
            bool one_by_one = always_plain_ || plain_left_ || !std::isfinite(best_->bound()) || few(s, g, n);
            if (!one_by_one && !fit()) one_by_one = true, plain_left_ = kStretch * 4;
            if (one_by_one) {
                plain(bound_, s, g, n, best_);
                if (!std::isfinite(best_->bound())) best_->shrink();
                plain_left_ -= std::min(plain_left_, n);
            } else {
                filtered(s, g, n);
            }
            g += n;
        }
    }

    // Rows behind the last full group.
    void rest(const Segment& s, std::size_t rows) {
        if (!done_) offer_rows(bound_, s, s.rows / kGroup, rows, best_);
    }

   private:
    void filtered(const Segment& s, std::size_t g, std::size_t n) {
        const std::uint8_t* codes = s.codes + g * (std::size_t)scan_.planes * kGroup;
        const auto limit = (std::uint8_t)tables_.limit();
        const std::size_t found = filter_(codes, n, bytes_.get(), limit, s.mask ? s.mask + g : nullptr, scan_.norms, rows_);
        for (std::size_t i = 0; i < found;) {
            double keys[64];
            const std::size_t some = std::min<std::size_t>(64, found - i);
            exact_.keys(bound_.exact(), codes, rows_ + i, some, keys);
            for (std::size_t j = 0; j < some; ++j, ++i) best_->offer(keys[j], s.label(g * kGroup + rows_[i]));
        }
        passed_ += found;
        if ((looked_ += n) >= stretch_) {
            if (passed_ * kMostPassing > looked_ * kGroup) plain_left_ = stretch_ * 4;
            looked_ = passed_ = 0;
            stretch_ = kStretch;
        }
    }

    // Make the byte tables fit what is held. False if they would pass every row.
    bool fit() {
        bool changed;
        const bool fits = tables_.fit(best_->bound(), bytes_.get(), 1, &changed);
        if (changed && scan_.kernels->prepare) scan_.kernels->prepare(bytes_.get(), scan_.planes, scan_.norms);
        return fits;
    }

    // Whether so few rows of some groups take part, by one word in eight, that they are better looked up one by one.
    bool few(const Segment& s, std::size_t first, std::size_t groups) const {
        if (!s.mask) return false;
        std::size_t rows = 0, words = 0;
        for (std::size_t g = first; g < first + groups; g += 8, ++words) rows += (std::size_t)__builtin_popcountll(s.mask[g]);
        return rows <= words * (std::size_t)scan_.kernels->rows_worth;
    }

    const Scan& scan_;
    const Bound& bound_;
    bool always_plain_, done_ = false;
    TopK* best_;
    Exact exact_;
    Filter filter_;
    Aligned<std::uint8_t> bytes_;
    std::uint32_t* rows_;
    ByteTables tables_;
    std::size_t passed_ = 0, looked_ = 0, plain_left_ = 0;  // rows, groups, groups
    std::size_t chunk_ = kFirstChunk, stretch_ = kFirstStretch;
};

// A few queries over some pieces, each for itself, but piece by piece: only the first waits for what is beyond the caches.
void scan_pieces(const Scan& scan, const Pieces& pieces, const Bound* bounds, std::size_t queries, bool always_plain, TopK* best) {
    const auto rows = aligned<std::uint32_t>(kChunk * kGroup);
    std::vector<OneQuery> going;
    going.reserve(queries);
    for (std::size_t q = 0; q < queries; ++q) going.emplace_back(scan, bounds[q], always_plain, rows.get(), best + q);
    for (const Piece& piece : pieces) {
        for (OneQuery& one : going) {
            one.scan(*piece.segment, piece.first, piece.full);
            if (piece.rest) one.rest(*piece.segment, piece.rest);
        }
    }
}

// Many queries over some pieces. False if byte tables pass too many rows: then the queries go one by one.
bool batch_pieces(const Scan& scan, const Pieces& pieces, const Batch& batch, const std::vector<Bound>& bounds, TopK* best) {
    const auto width = (std::size_t)batch.width;
    const std::size_t queries = bounds.size(), size = (std::size_t)scan.planes * kCodes * width;
    const auto bytes = aligned<std::uint8_t>(size);
    const auto hits = aligned<Hit>(kBatchChunk * kGroup * width);
    alignas(64) std::uint8_t limits[64] = {};
    const int parts = parts_of(scan.planes);
    std::vector<ByteTables> tables;
    for (const Bound& bound : bounds) tables.emplace_back(bound, parts == 1 ? kSteps : parts * kStepsOfPart);
    if (queries < width) std::fill_n(bytes.get(), size, std::uint8_t{255});  // queries that are not there
    const auto fit = [&](std::size_t q) {
        bool changed;
        const bool fits = tables[q].fit(best[q].bound(), bytes.get() + q, width, &changed);
        limits[q] = (std::uint8_t)(tables[q].limit() / parts);
        return fits;
    };
    for (std::size_t q = 0; q < queries; ++q)
        if (!std::isfinite(best[q].bound()) || !bounds[q].finite() || !fit(q)) return false;
    const BatchFilter filter = batch.filter[scan.planes];
    const Exact exact = exact_of(bounds[0]);
    std::size_t passed = 0, looked = 0, stretch = kFirstStretch;
    for (const Piece& piece : pieces) {
        const Segment& s = *piece.segment;
        for (std::size_t g = piece.first, end = piece.first + piece.full; g < end; g += kBatchChunk) {
            const std::size_t n = std::min(kBatchChunk, end - g);
            const std::uint8_t* codes = s.codes + g * (std::size_t)scan.planes * kGroup;
            const std::size_t found = filter(codes, n, bytes.get(), limits, s.mask ? s.mask + g : nullptr, hits.get());
            std::uint64_t touched = 0;
            for (std::size_t i = 0; i < found;) {
                double keys[64];
                const std::size_t some = std::min<std::size_t>(64, found - i);
                exact.hits(bounds[0].exact(), codes, hits.get() + i, some, keys);
                for (std::size_t j = 0; j < some; ++j, ++i) {
                    const std::size_t q = hits[i].query;
                    best[q].offer(keys[j], s.label(g * kGroup + hits[i].row));
                    touched |= std::uint64_t{1} << q;
                }
            }
            for (; touched; touched &= touched - 1)
                if (!fit((std::size_t)__builtin_ctzll(touched))) return false;
            passed += found;
            if ((looked += n) >= stretch) {
                if (passed * kMostPassing > looked * kGroup * queries) return false;
                looked = passed = 0;
                stretch = kStretch;
            }
        }
        if (piece.rest)
            for (std::size_t q = 0; q < queries; ++q) offer_rows(bounds[q], s, s.rows / kGroup, piece.rest, &best[q]);
    }
    return true;
}

// A copy of some groups from everywhere, to guess from.
class Sample {
   public:
    Sample(const Groups& groups, std::size_t n, std::size_t planes)
        : codes_(aligned<std::uint8_t>(n * planes * kGroup)), mask_(n) {
        const std::size_t size = planes * kGroup;
        std::size_t at = 0;
        groups.sample(n, [&](const Segment& s, std::size_t group) {
            std::copy_n(s.codes + group * size, size, codes_.get() + at * size);
            mask_[at++] = live(s, group);
            seen_ += (std::size_t)__builtin_popcountll(live(s, group));
        });
        const bool all = seen_ == at * kGroup;
        segment_ = {codes_.get(), at * kGroup, all ? nullptr : mask_.data(), 0, nullptr};
    }

    // How many rows of it take part.
    std::size_t seen() const { return seen_; }

    // Its key of some rank; faster where `first` is a little above that.
    double key(const Scan& scan, const Bound& bound, std::size_t rank, double first) const {
        TopK best(rank, first);
        scan_pieces(scan, pieces(), &bound, 1, first == kInfinity, &best);
        if (best.size() < rank) return first == kInfinity ? first : key(scan, bound, rank, kInfinity);
        return best.finish().back().key;
    }

    // The same for many queries.
    std::vector<double> keys(const Scan& scan, const std::vector<Bound>& bounds, const Batch& batch, std::size_t rank,
                             const std::vector<double>& first) const {
        std::vector<TopK> best;
        for (const double key : first) best.emplace_back(rank, key);
        const bool fine = batch_pieces(scan, pieces(), batch, bounds, best.data());
        std::vector<double> out;
        for (std::size_t q = 0; q < bounds.size(); ++q)
            out.push_back(fine && best[q].size() >= rank ? best[q].finish().back().key : key(scan, bounds[q], rank, first[q]));
        return out;
    }

   private:
    Pieces pieces() const { return {{&segment_, 0, segment_.rows / kGroup, 0}}; }

    Aligned<std::uint8_t> codes_;
    std::vector<std::uint64_t> mask_;
    std::size_t seen_ = 0;
    Segment segment_;
};

// How many of a sample must be below a threshold so that it is too low less than once in a thousand times, where `expected` are
// below on average.
std::size_t rank_for(double expected) { return (std::size_t)std::ceil(expected + 3 * std::sqrt(expected) + 2); }

// Guesses the k-th best key of queries from a large sample, most of which the byte tables pass over for a guess from a small one.
class Guesser {
   public:
    Guesser(const Scan& scan, const Groups& groups) : scan_(scan) {
        const std::size_t total = groups.count();
        if (scan.plain || total < kSampleFrom || scan.rows < kSampleFrom * kGroup) return;
        auto rows = (double)scan.rows, k = (double)scan.k;
        const double density = rows / (double)(total * kGroup);
        if (total >= kTwoSamplesFrom) {
            // The more results, the more a larger sample saves; and each group of it may be a wait for memory.
            const std::size_t n = scan.k < kMany ? std::min(kMostSampled / 8, total / 256) : std::min(kMostSampled, total / 32);
            large_.emplace(groups, n, (std::size_t)scan.planes);
            if (large_->seen() == 0) {  // rows take part where none was looked for
                large_.reset();
                return;
            }
            k = (double)(large_rank_ = rank_for(k * (double)large_->seen() / rows));
            rows = (double)large_->seen();
        }
        std::size_t n = large_ && scan.k < kMany ? 4 : 16;
        for (; n * 8 < total && n < kMostSampled / 4; n *= 2) {
            const double seen = (double)(n * kGroup) * density;
            if ((double)rank_for(k * seen / rows) <= seen / 4) break;
        }
        small_.emplace(groups, n, (std::size_t)scan.planes);
        small_rank_ = rank_for(k * (double)small_->seen() / rows);
    }

    // Of queries that are searched by a batch filter, or each by itself. Infinite where there is too little to tell from.
    std::vector<double> operator()(const std::vector<Bound>& bounds, const Batch* batch) const {
        std::vector<double> out;
        for (const Bound& bound : bounds) {
            const bool little = !small_ || !bound.finite() || small_rank_ > small_->seen() / 2;
            out.push_back(little ? kInfinity : small_->key(scan_, bound, small_rank_, kInfinity));
        }
        const bool all = std::find(out.begin(), out.end(), kInfinity) == out.end();
        if (large_ && batch && all) return large_->keys(scan_, bounds, *batch, large_rank_, out);
        for (std::size_t q = 0; large_ && q < out.size(); ++q)
            if (out[q] < kInfinity) out[q] = large_->key(scan_, bounds[q], large_rank_, out[q]);
        return out;
    }

   private:
    const Scan& scan_;
    std::optional<Sample> small_, large_;
    std::size_t small_rank_ = 0, large_rank_ = 0;
};

// Everything, in as many parts as threads are worth waking.
std::vector<Pieces> shares(const Groups& groups, int threads) {
    const std::size_t n = std::max<std::size_t>(1, std::min((std::size_t)threads, groups.count() / kParallelFrom));
    std::vector<Pieces> out;
    for (std::size_t i = 0; i < n; ++i) out.push_back(groups.range(groups.count() * i / n, groups.count() * (i + 1) / n));
    return out;
}

Bound bound_of(const Scan& scan, std::size_t query) {
    return {scan.tables + query * (std::size_t)scan.planes * kCodes, scan.planes, scan.cosine, scan.used};
}

// One query by itself; `first`: a guess at its k-th best key.
std::vector<Candidate> search_one(const Scan& scan, const std::vector<Pieces>& parts, const Bound& bound, double first) {
    for (;; first = kInfinity) {
        std::vector<TopK> best(parts.size(), TopK(scan.k, first));
        run_parallel(parts.size(), [&](std::size_t i) { scan_pieces(scan, parts[i], &bound, 1, scan.plain, &best[i]); });
        for (std::size_t i = 1; i < best.size(); ++i) best[0].merge(best[i]);
        if (first == kInfinity || best[0].size() >= std::min<std::uint64_t>(scan.k, scan.rows)) return best[0].finish();
    }
}

// The queries from begin up to end in one pass, by a batch filter if one is given; those that turn out to need it go alone.
void search_together(const Scan& scan, const Guesser& guess, const std::vector<Pieces>& parts, const Batch* batch,
                     std::size_t begin, std::size_t end, std::vector<std::vector<Candidate>>* out) {
    std::vector<Bound> bounds;
    for (std::size_t q = begin; q < end; ++q) bounds.push_back(bound_of(scan, q));
    const std::vector<double> first = guess(bounds, batch);
    std::vector<TopK> empty;
    for (const double key : first) empty.emplace_back(scan.k, key);
    std::vector<std::vector<TopK>> best(parts.size(), empty);
    std::vector<char> fine(parts.size(), 1);
    run_parallel(parts.size(), [&](std::size_t i) {
        if (batch)
            fine[i] = batch_pieces(scan, parts[i], *batch, bounds, best[i].data());
        else
            scan_pieces(scan, parts[i], bounds.data(), bounds.size(), scan.plain, best[i].data());
    });
    const bool all_fine = std::find(fine.begin(), fine.end(), 0) == fine.end();
    for (std::size_t q = begin; q < end; ++q) {
        TopK& top = best[0][q - begin];
        for (std::size_t i = 1; i < parts.size(); ++i) top.merge(best[i][q - begin]);
        const bool complete = all_fine && top.size() >= std::min<std::uint64_t>(scan.k, scan.rows);
        (*out)[q] = complete ? top.finish() : search_one(scan, parts, bounds[q - begin], first[q - begin]);
    }
}

// The rows that have some labels, of those that take part. Call visit(segment, row, label) for each, in order.
template <class Visit>
void find_rows(const Scan& scan, Visit visit) {
    const std::int64_t *label = scan.only, *const end = scan.only + scan.only_count;
    for (const Segment& s : *scan.segments) {
        if (s.rows == 0) continue;
        label = std::lower_bound(label, end, (std::int64_t)s.label(0));
        std::size_t row = 0;
        for (; label != end && *label <= (std::int64_t)s.label(s.rows - 1); ++label) {
            const std::uint64_t wanted = (std::uint64_t)*label - s.first;
            if (s.offsets)
                row = (std::size_t)(std::lower_bound(s.offsets + row, s.offsets + s.rows, wanted) - s.offsets);
            else
                row = (std::size_t)wanted;
            if (s.label(row) == (std::uint64_t)*label && (live(s, row / kGroup) >> row % kGroup & 1)) visit(s, row, s.label(row));
        }
    }
}

}  // namespace

std::vector<std::vector<Candidate>> search(const Scan& scan) {
    std::vector<std::vector<Candidate>> out(scan.queries);
    if (scan.k == 0 || scan.rows == 0) return out;
    if (scan.only) {
        std::vector<Bound> bounds;
        std::vector<TopK> best(scan.queries, TopK(scan.k, kInfinity));
        for (std::size_t q = 0; q < scan.queries; ++q) bounds.push_back(bound_of(scan, q));
        find_rows(scan, [&](const Segment& s, std::size_t row, std::uint64_t label) {
            const std::uint8_t* bytes = row_bytes(s, scan.planes, row);
            for (std::size_t q = 0; q < scan.queries; ++q) best[q].offer(bounds[q].key(bytes), label);
        });
        for (std::size_t q = 0; q < scan.queries; ++q) out[q] = best[q].finish();
        return out;
    }
    const Groups groups(*scan.segments);
    const std::vector<Pieces> parts = shares(groups, scan.threads);
    const Guesser guess(scan, groups);
    const bool batches = !scan.plain && scan.rows >= kSampleFrom * kGroup;
    for (std::size_t q = 0; q < scan.queries;) {
        const std::size_t left = scan.queries - q;
        const Batch* batch = nullptr;
        for (const Batch& b : scan.kernels->batches)
            if (batches && left >= (std::size_t)b.from) batch = &b;
        const std::size_t n = batch ? std::min((std::size_t)batch->width, left) : left;
        search_together(scan, guess, parts, batch, q, q + n, &out);
        q += n;
    }
    return out;
}

}  // namespace ccq
