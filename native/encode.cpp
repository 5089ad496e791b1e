#include "encode.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "aligned.hpp"

namespace ccq {
namespace {

constexpr std::size_t K = kCodes;
constexpr std::size_t kMost = kMaxPlanes - 1;
constexpr std::size_t kLanes = 64;

using Floats = Aligned<float>;

// One vector, with the costs of all its codes given the others: sums[m][j] = unary_m[j] + sum_{l != m} cross_{l,m}[b_l, j].
// While codes stay, the costs stay; where one changes, M rows of the table say what it does to the others.
class Point {
   public:
    explicit Point(const Encoding& e)
        : e_(e), size_((std::size_t)e.m * K), sums_(aligned<float>(size_)), trial_(aligned<float>(size_)) {}

    void take(const float* unary) { unary_ = unary; }

    // Each code is the best one behind those before it.
    void greedy(std::uint8_t* codes) {
        for (int m = 0; m < e_.m; ++m) {
            sum(codes, m, m);
            codes[m] = (std::uint8_t)e_.kernels->best(at(m), 0);
        }
    }

    void start(const std::uint8_t* codes) {
        for (int m = 0; m < e_.m; ++m) sum(codes, m, e_.m);
    }

    void descend(std::uint8_t* codes) { descend(sums_.get(), codes, 0); }

    void local_search(std::uint8_t* codes);

   private:
    float* at(int m) const { return sums_.get() + (std::size_t)m * K; }
    const float* rows(int m, std::uint8_t code) const { return e_.cross + ((std::size_t)m * K + code) * size_; }

    // The costs of all codes m given the others below `end`.
    void sum(const std::uint8_t* codes, int m, int end) {
        const float* others[kMost];
        int n = 0;
        for (int l = 0; l < end; ++l)
            if (l != m) others[n++] = rows(l, codes[l]) + (std::size_t)m * K;
        e_.kernels->sums(unary_ + (std::size_t)m * K, others, n, 0.f, at(m), nullptr);
    }

    // Set code m in place, and return by how much that changes |z - y|^2. Its own costs stay.
    float set(float* sums, std::uint8_t* codes, int m, std::uint8_t code) const {
        const std::size_t own = (std::size_t)m * K, behind = own + K;
        const float change = sums[own + code] - sums[own + codes[m]];
        const float *const less = rows(m, codes[m]), *const more = rows(m, code);
        e_.kernels->exchange(sums, less, more, sums, own);
        e_.kernels->exchange(sums + behind, less + behind, more + behind, sums + behind, size_ - behind);
        codes[m] = code;
        return change;
    }

    // Up to `sweeps` rounds over all codes, from code `first` on, until a whole round would change nothing.
    float descend(float* sums, std::uint8_t* codes, int first) const {
        float change = 0;
        int settled = 0;
        for (int i = 0, m = first; i < e_.sweeps * e_.m && settled < e_.m; ++i, m = next(m)) {
            const std::uint8_t code = (std::uint8_t)e_.kernels->best(sums + (std::size_t)m * K, codes[m]);
            if (code == codes[m]) {
                ++settled;
            } else {
                change += set(sums, codes, m, code);
                settled = 1;
            }
        }
        return change;
    }

    int next(int m) const { return m + 1 == e_.m ? 0 : m + 1; }

    const Encoding& e_;
    std::size_t size_;
    const float* unary_ = nullptr;
    Floats sums_, trial_;
};

// The same perturbations for every point, so that a point's codes do not depend on its neighbours.
class Perturbation {
   public:
    std::uint32_t next() {  // xorshift32
        state_ ^= state_ << 13;
        state_ ^= state_ >> 17;
        state_ ^= state_ << 5;
        return state_;
    }

   private:
    std::uint32_t state_ = 2463534242u;
};

void Point::local_search(std::uint8_t* codes) {
    Perturbation random;
    std::uint8_t trial[kMost];
    for (int r = 0; r < e_.rounds; ++r) {
        std::memcpy(trial, codes, (std::size_t)e_.m);
        // One code, which is the last to be fitted again: the others follow it before it could just go back.
        const std::uint32_t x = random.next();
        const int m = (int)(x % (std::uint32_t)e_.m);
        trial[m] = (std::uint8_t)(x >> 24);
        e_.kernels->exchange(sums_.get(), rows(m, codes[m]), rows(m, trial[m]), trial_.get(), size_);
        float change = at(m)[trial[m]] - at(m)[codes[m]];
        change += descend(trial_.get(), trial, next(m));
        if (change < 0) std::swap(sums_, trial_), std::memcpy(codes, trial, (std::size_t)e_.m);
    }
}

// Codes of one vector by beam search: the cheapest partial codes of each step go on to the next, the earlier of equals
// first.
class Beam {
   public:
    explicit Beam(const Encoding& e)
        : e_(e),
          width_((std::size_t)e.beam),
          cost_(aligned<float>(width_ * K)),
          shared_(aligned<float>(width_ * K)),
          found_(width_ * K),
          made_(width_) {}

    void search(const float* unary, std::uint8_t* codes) {
        now_.assign(1, Entry{});
        for (int m = 0; m < e_.m; ++m) {
            alignas(64) float least[kLanes];
            std::fill_n(least, kLanes, __builtin_inff());
            grow(unary + (std::size_t)m * K, m, least);
            select(m, e_.kernels->at_most(cost_.get(), now_.size() * K, bound(least), found_.data()));
            std::swap(now_, next_);
        }
        if (now_.empty()) now_.assign(1, Entry{});  // no cost was a number
        std::memcpy(codes, now_[0].codes, (std::size_t)e_.m);
    }

   private:
    struct Entry {
        float cost = 0;
        std::uint32_t from = 0;  // the entry of the step before that it grew from
        std::uint8_t codes[kMost] = {};
    };

    const float* row(int l, int m, std::uint8_t code) const {
        return e_.cross + (((std::size_t)l * K + code) * (std::size_t)e_.m + (std::size_t)m) * K;
    }

    // The costs of all codes m behind all entries.
    void grow(const float* unary, int m, float* least) {
        const float* rows[kMost];
        std::fill(made_.begin(), made_.end(), false);
        for (std::size_t b = 0; b < now_.size(); ++b) {
            const Entry& entry = now_[b];
            float* const out = cost_.get() + b * K;
            if (m < 2) {
                if (m == 1) rows[0] = row(0, 1, entry.codes[0]);
                e_.kernels->sums(unary, rows, m, entry.cost, out, least);
                continue;
            }
            // Entries that grew from the same one differ in the last row only.
            float* const shared = shared_.get() + entry.from * K;
            if (!made_[entry.from]) {
                for (int l = 0; l < m - 1; ++l) rows[l] = row(l, m, entry.codes[l]);
                e_.kernels->sums(unary, rows, m - 1, 0.f, shared, nullptr);
                made_[entry.from] = true;
            }
            rows[0] = row(m - 1, m, entry.codes[m - 1]);
            e_.kernels->sums(shared, rows, 1, entry.cost, out, least);
        }
    }

    // At least `width` costs are as low as this: each lane has a cost as low as its minimum, so the width-th lowest of
    // the minima will do.
    float bound(float* least) const {
        if (width_ > kLanes) return __builtin_inff();
        std::size_t lanes = kLanes;
        for (; lanes >= 4 * width_ && lanes > 16; lanes /= 2)
            for (std::size_t i = 0; i < lanes / 2; ++i) least[i] = std::min(least[i], least[i + lanes / 2]);
        float bound = __builtin_inff();
        for (std::size_t i = 0; i < lanes; ++i) {
            int lower = 0;
            for (std::size_t j = 0; j < lanes; ++j) lower += least[j] <= least[i];
            if (lower >= (int)width_) bound = std::min(bound, least[i]);
        }
        return bound;
    }

    // The `width` cheapest of the codes found, the earlier of equals first.
    void select(int m, std::size_t count) {
        const std::size_t kept = std::min(count, width_);
        next_.resize(kept);
        if (count > kLanes) {
            const auto before = [&](std::uint32_t a, std::uint32_t b) {
                return cost_[a] < cost_[b] || (cost_[a] == cost_[b] && a < b);
            };
            const auto begin = found_.begin();
            std::partial_sort(begin, begin + (std::ptrdiff_t)kept, begin + (std::ptrdiff_t)count, before);
            for (std::size_t i = 0; i < kept; ++i) keep(m, i, found_[i]);
            return;
        }
        // So few that counting what is cheaper, without a branch, beats sorting.
        alignas(64) float cost[kLanes];
        bool taken[kLanes] = {};
        const std::size_t padded = (count + 15) / 16 * 16;
        for (std::size_t i = 0; i < count; ++i) cost[i] = cost_[found_[i]];
        std::fill(cost + count, cost + padded, __builtin_inff());
        for (std::size_t i = 0; i < count; ++i) {
            int cheaper = 0;
            for (std::size_t j = 0; j < padded; ++j) cheaper += cost[j] < cost[i];
            std::size_t place = (std::size_t)cheaper;
            while (place < kept && taken[place]) ++place;  // equals came before
            if (place < kept) keep(m, place, found_[i]), taken[place] = true;
        }
    }

    void keep(int m, std::size_t place, std::uint32_t found) {
        const Entry& from = now_[found / K];
        Entry& entry = next_[place];
        std::memcpy(entry.codes, from.codes, sizeof entry.codes);
        entry.cost = cost_[found];
        entry.from = found / K;
        entry.codes[m] = (std::uint8_t)(found % K);
    }

    const Encoding& e_;
    std::size_t width_;
    Floats cost_, shared_;
    std::vector<std::uint32_t> found_;
    std::vector<char> made_;
    std::vector<Entry> now_, next_;
};

}  // namespace

void encode(const Encoding& e, std::size_t begin, std::size_t end, std::uint8_t* codes) {
    Point point(e);
    Beam beam(e);
    const bool search = !e.start && e.beam > 1;
    for (std::size_t i = begin; i < end; ++i) {
        const float* const unary = e.unary + i * (std::size_t)e.m * K;
        std::uint8_t* const c = codes + i * (std::size_t)e.m;
        point.take(unary);
        if (search) beam.search(unary, c);
        else if (!e.start) point.greedy(c);
        if (e.sweeps == 0 && e.rounds == 0) continue;
        point.start(c);
        point.descend(c);
        point.local_search(c);
    }
}

}  // namespace ccq
