#include "encode.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

namespace ccq {
namespace {

constexpr std::size_t K = kCodes;
constexpr int kMost = kMaxPlanes - 1;

struct Point {
    const Encoding& e;
    const float* unary;

    const float* cross(int l, int m, std::uint8_t code) const { return e.cross + (((std::size_t)l * (std::size_t)e.m + (std::size_t)m) * K + code) * K; }

    // The best code m given the others.
    std::uint8_t best(int m, const std::uint8_t* codes) const {
        const float* rows[kMost];
        int n = 0;
        for (int l = 0; l < e.m; ++l)
            if (l != m) rows[n++] = cross(l, m, codes[l]);
        float value;
        return (std::uint8_t)e.kernels->argmin(unary + (std::size_t)m * K, rows, n, &value);
    }

    // Up to `sweeps` rounds over all codes, from code `first` on, until a whole round would change nothing.
    void descend(std::uint8_t* codes, int first) const {
        int settled = 0;
        for (int i = 0, m = first; i < e.sweeps * e.m && settled < e.m; ++i, m = m + 1 == e.m ? 0 : m + 1) {
            const std::uint8_t code = best(m, codes);
            settled = code == codes[m] ? settled + 1 : 1;
            codes[m] = code;
        }
    }

    // |z - y|^2 - |z|^2.
    float energy(const std::uint8_t* codes) const {
        float sum = 0;
        for (int m = 0; m < e.m; ++m) {
            float cost = unary[(std::size_t)m * K + codes[m]];
            for (int l = 0; l < m; ++l) cost += cross(l, m, codes[l])[codes[m]];
            sum += cost;
        }
        return sum;
    }

    void greedy(std::uint8_t* codes) const {
        const float* rows[kMost];
        for (int m = 0; m < e.m; ++m) {
            for (int l = 0; l < m; ++l) rows[l] = cross(l, m, codes[l]);
            float value;
            codes[m] = (std::uint8_t)e.kernels->argmin(unary + (std::size_t)m * K, rows, m, &value);
        }
    }
};

// The cheapest partial codes of one step, in order; the earlier of equals first.
class Beam {
   public:
    struct Entry {
        float cost;
        std::uint16_t from;  // entry of the step before that it goes on from
        std::uint8_t code;
    };

    explicit Beam(int width) : width_((std::size_t)width), entries_(width_ + 1), codes_(width_) {}

    void clear() { size_ = 0, worst_ = __builtin_inff(); }
    std::size_t size() const { return size_; }
    float worst() const { return worst_; }
    const Entry& entry(std::size_t i) const { return entries_[i]; }
    std::uint8_t* codes(std::size_t i) { return codes_[i].data(); }

    // A cost below `worst`.
    void offer(float cost, std::size_t from, int code) {
        std::size_t at = size_ < width_ ? size_++ : width_ - 1;
        for (; at && entries_[at - 1].cost > cost; --at) entries_[at] = entries_[at - 1];
        entries_[at] = {cost, (std::uint16_t)from, (std::uint8_t)code};
        if (size_ == width_) worst_ = entries_[width_ - 1].cost;
    }

    // Before the first offers of a step: of sixteen lanes through the costs, each has one as low as its minimum, so the
    // width-th lowest minimum bounds the width-th lowest cost. It stays allowed itself.
    void expect(const float* cost) {
        if (width_ > 16) return;
        float lane[16];
        for (int i = 0; i < 16; ++i) lane[i] = cost[i];
        for (std::size_t j = 16; j < K; j += 16)
            for (std::size_t i = 0; i < 16; ++i) lane[i] = cost[j + i] < lane[i] ? cost[j + i] : lane[i];
        std::nth_element(lane, lane + (width_ - 1), lane + 16);
        worst_ = std::nextafterf(lane[width_ - 1], __builtin_inff());
    }

   private:
    std::size_t width_, size_ = 0;
    float worst_ = __builtin_inff();
    std::vector<Entry> entries_;
    std::vector<std::array<std::uint8_t, kMost>> codes_;
};

void beam_search(const Point& p, Beam* now, Beam* next, std::uint8_t* codes) {
    alignas(64) float cost[K];
    std::uint16_t below[K / 16];
    const float* rows[kMost];
    now->clear();
    now->offer(0.f, 0, 0);
    for (int m = 0; m < p.e.m; ++m) {
        next->clear();
        for (std::size_t b = 0; b < now->size(); ++b) {
            for (int l = 0; l < m; ++l) rows[l] = p.cross(l, m, now->codes(b)[l]);
            p.e.kernels->sums(p.unary + (std::size_t)m * K, rows, m, now->entry(b).cost, next->worst(), cost, below);
            if (b == 0) next->expect(cost);
            for (std::size_t j = 0; j < K / 16; ++j)
                for (std::uint32_t bits = below[j]; bits; bits &= bits - 1) {
                    const std::size_t i = 16 * j + (std::size_t)__builtin_ctz(bits);
                    if (cost[i] < next->worst()) next->offer(cost[i], b, (int)i);
                }
        }
        for (std::size_t b = 0; b < next->size(); ++b) {
            std::memcpy(next->codes(b), now->codes(next->entry(b).from), (std::size_t)m);
            next->codes(b)[m] = next->entry(b).code;
        }
        std::swap(now, next);
    }
    std::memcpy(codes, now->codes(0), (std::size_t)p.e.m);
}

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

void local_search(const Point& p, std::uint8_t* codes) {
    Perturbation random;
    std::uint8_t trial[kMost];
    float least = p.energy(codes);
    for (int r = 0; r < p.e.rounds; ++r) {
        std::memcpy(trial, codes, (std::size_t)p.e.m);
        // One code, which is the last to be fitted again: the others follow it before it could just go back.
        const std::uint32_t x = random.next();
        const int m = (int)(x % (std::uint32_t)p.e.m);
        trial[m] = (std::uint8_t)(x >> 24);
        p.descend(trial, m + 1 == p.e.m ? 0 : m + 1);
        const float energy = p.energy(trial);
        if (energy < least) least = energy, std::memcpy(codes, trial, (std::size_t)p.e.m);
    }
}

}  // namespace

void encode(const Encoding& e, std::size_t begin, std::size_t end, std::uint8_t* codes) {
    Beam now(std::max(e.beam, 1)), next(std::max(e.beam, 1));
    for (std::size_t i = begin; i < end; ++i) {
        const Point point{e, e.unary + i * (std::size_t)e.m * K};
        std::uint8_t* const c = codes + i * (std::size_t)e.m;
        if (!e.start) {
            if (e.beam > 1) beam_search(point, &now, &next, c);
            else point.greedy(c);
        }
        point.descend(c, 0);
        local_search(point, c);
    }
}

}  // namespace ccq
