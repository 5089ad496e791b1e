// Look-up tables of one query: exact sums, and byte tables whose sums bound them from below.
//
// The key of a row is   euclidean: t_0 + ... + t_M            (t_M from the norm byte)
//                       cosine:   (t_0 + ... + t_{M-1}) * n   (n from the norm byte)
// in double, in this order, on float32 entries.
//
// For a bound T on the key, every entry is floored to a byte in units of `unit`, after its plane's minimum was taken off:
//     q[m][j] = min(255, floor((t_m[j] - min_m) / unit)),   base = sum of the minima.
// Byte sums saturate, so they never exceed the true sum in units, and a row with key <= T has
//     euclidean: q sum <= (T - base) / unit
//     cosine:    q sum over the codebooks <= (T / n - base) / unit, for n > 0.
// The right side of the second depends on the norm byte alone, so that byte gets a table too: `steps` minus the right side.
// Then in both cases a row can only qualify if its saturating sum of P bytes is at most a limit of at most `steps`; all others
// are passed over without loss. `unit` is chosen so that the largest right side is `steps`.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "layout.hpp"

namespace ccq {

class Bound {
   public:
    // tables: [planes][256], for cosine with negated inner products; used: [planes][256], codes that occur, or null.
    Bound(const float* tables, int planes, bool cosine, const std::uint8_t* used)
        : planes_(planes), cosine_(cosine), tables_(tables), used_(used) {
        double magnitude = 0;
        for (int m = 0; m < planes; ++m) {
            const Range r = range(tables + (std::size_t)m * kCodes, used ? used + (std::size_t)m * kCodes : nullptr);
            finite_ &= r.finite;
            least_[m] = r.least;
            if (cosine && m == planes - 1) continue;
            base_ += r.least;
            magnitude += std::max(std::fabs((double)r.least), std::fabs((double)r.most));
        }
        least_key_ = base_;
        if (cosine) {
            least_key_ = std::numeric_limits<double>::infinity();
            for (std::size_t j = 0; j < kCodes; ++j)
                if (occurs(planes - 1, j)) least_key_ = std::min(least_key_, base_ * (double)norm(j));
        }
        // What summing in double may round away, several times over.
        slack_ = magnitude * planes * 4.5e-16;
        least_room_ = magnitude * 1e-30 + 1e-300;
    }

    // Whether byte tables can be made: all entries are finite, and not huge. If not, only `key` serves.
    bool finite() const { return finite_; }

    double key(const std::uint8_t* row) const {
        const float* t = tables_;
        double sum = t[row[0]];
        for (int m = 1; m + 1 < planes_; ++m) sum += (double)t[(std::size_t)m * kCodes + row[(std::size_t)m * kGroup]];
        const double last = norm(row[(std::size_t)(planes_ - 1) * kGroup]);
        return cosine_ ? sum * last : sum + last;
    }

    const float* exact() const { return tables_; }
    bool cosine() const { return cosine_; }
    int planes() const { return planes_; }

    // The least key that any row can have. Exact: rounding keeps order, so sums of minima are minima of sums.
    double least_key() const { return least_key_; }

    // What the largest limit is to be, of byte tables that are made from now on.
    void set_steps(int steps) { steps_ = steps; }

    // Make byte tables for keys up to T at [plane][256] with `stride` bytes from one entry to the next.
    // False if T leaves no room for a useful unit; then every row would pass.
    bool quantize(double t, std::uint8_t* out, std::size_t stride) {
        double room = -std::numeric_limits<double>::infinity();
        if (cosine_) {
            for (std::size_t j = 0; j < kCodes; ++j)
                if (occurs(planes_ - 1, j)) room = std::max(room, room_at(t, j));
        } else {
            room = t - base_ + slack_;
        }
        if (!std::isfinite(room)) return false;
        unit_ = std::max(room, least_room_) / (steps_ + 0.5);
        const float inverse = (float)(1.0 / unit_) * (1.f - 1e-6f);  // rounds towards lower bytes
        if (!std::isfinite(inverse)) return false;
        const int additive = cosine_ ? planes_ - 1 : planes_;
        for (int m = 0; m < additive; ++m) {
            const float least = least_[m];
            const float* in = tables_ + (std::size_t)m * kCodes;
            std::uint8_t* to = out + (std::size_t)m * kCodes * stride;
            for (std::size_t j = 0; j < kCodes; ++j) {
                float x = (in[j] - least) * inverse;
                x = x < 255.f ? x : 255.f;  // also where an unused code overflows
                x = x > 0.f ? x : 0.f;      // an unused code may lie below the minimum of the used ones
                to[j * stride] = (std::uint8_t)(int)x;
            }
        }
        return true;
    }

    // The limit for keys up to T, with the tables as they are. For cosine it is constant, and the norm byte's table at
    // `out` is made for T. `tight` says whether finer tables would pay.
    int limit(double t, std::uint8_t* out, std::size_t stride, bool* tight) const {
        int most = -1;
        if (cosine_) {
            std::uint8_t* to = out + (std::size_t)(planes_ - 1) * kCodes * stride;
            for (std::size_t j = 0; j < kCodes; ++j) {
                const int right = right_side(room_at(t, j));
                if (occurs(planes_ - 1, j)) most = std::max(most, right);
                to[j * stride] = (std::uint8_t)std::min(steps_ - right, 255);
            }
            *tight = most >= kTight * steps_;
            return steps_;
        }
        most = right_side(t - base_ + slack_);
        *tight = most >= kTight * steps_;
        return std::max(most, 0);
    }

   private:
    static constexpr double kTight = 0.63;  // of the steps: with fewer left in use, tables are made anew

    struct Range {
        float least, most;
        bool finite;
    };

    // Of the entries that occur; eight at a time, which compilers turn into vectors.
    static Range range(const float* t, const std::uint8_t* used) {
        constexpr float kInfinity = std::numeric_limits<float>::infinity();
        constexpr std::size_t kLanes = 8;
        constexpr float kTooLarge = 1e36f;  // differences of such entries, and their inverse, leave the range of float
        float least[kLanes], most[kLanes];
        std::uint32_t odd[kLanes];
        for (std::size_t i = 0; i < kLanes; ++i) least[i] = kInfinity, most[i] = -kInfinity, odd[i] = 0;
        for (std::size_t j = 0; j < kCodes; j += kLanes) {
            for (std::size_t i = 0; i < kLanes; ++i) {
                const bool counts = !used || used[j + i];
                const float low = counts ? t[j + i] : kInfinity, high = counts ? t[j + i] : -kInfinity;
                least[i] = low < least[i] ? low : least[i];
                most[i] = high > most[i] ? high : most[i];
                odd[i] |= counts & !(std::fabs(t[j + i]) < kTooLarge);
            }
        }
        Range r{kInfinity, -kInfinity, true};
        for (std::size_t i = 0; i < kLanes; ++i) {
            r.least = std::min(r.least, least[i]);
            r.most = std::max(r.most, most[i]);
            r.finite &= !odd[i];
        }
        if (!(r.least <= r.most)) r.least = r.most = 0;  // no code of this plane occurs: there are no rows
        return r;
    }

    bool occurs(int plane, std::size_t code) const { return !used_ || used_[(std::size_t)plane * kCodes + code]; }
    double norm(std::size_t j) const { return tables_[(std::size_t)(planes_ - 1) * kCodes + j]; }

    // How far above `base` the sum over the codebooks may be for a row with norm byte j and a key up to T.
    double room_at(double t, std::size_t j) const {
        const double n = norm(j);
        if (n == 0) return t >= 0 ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
        const double sum = t / n;
        return sum + std::fabs(sum) * 1e-15 - base_ + slack_;
    }

    int right_side(double room) const {
        const double steps = room / unit_ * (1 + 1e-9);
        return steps < 0 ? -1 : steps > steps_ + 0.9 ? steps_ : (int)steps;
    }

    int planes_, steps_ = 0;
    bool cosine_, finite_ = true;
    const float* tables_;
    const std::uint8_t* used_;
    float least_[kMaxPlanes] = {};
    double base_ = 0, least_key_ = 0, slack_ = 0, least_room_ = 0, unit_ = 1;
};

// Byte tables of one query, kept fitting a bound on the key that tightens.
class ByteTables {
   public:
    // `steps`: see `Bound::set_steps`.
    ByteTables(const Bound& bound, int steps) : bound_(bound) { bound_.set_steps(steps); }

    const Bound& bound() const { return bound_; }
    int limit() const { return limit_; }

    // Make those at `out` (see `Bound::quantize`) fit keys up to T; `changed`: whether they did. False if they would pass
    // every row.
    bool fit(double t, std::uint8_t* out, std::size_t stride, bool* changed) {
        *changed = false;
        if (made_ && t == fitted_) return true;
        bool tight = false;
        if (made_) limit_ = bound_.limit(t, out, stride, &tight);
        *changed = bound_.cosine() || !tight;
        if (!tight) {
            made_ = bound_.quantize(t, out, stride);
            if (!made_) return false;
            limit_ = bound_.limit(t, out, stride, &tight);
        }
        fitted_ = t;
        return true;
    }

   private:
    Bound bound_;
    bool made_ = false;
    double fitted_ = 0;
    int limit_ = 0;
};

}  // namespace ccq
