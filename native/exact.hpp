// Exact keys, with the number of planes known to the compiler.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>

#include "bound.hpp"
#include "groups.hpp"
#include "kernels.hpp"
#include "topk.hpp"

namespace ccq {

// Exact keys of the live rows of a group, offered as they come.
inline void offer_rows(const Bound& bound, const Segment& s, std::size_t group, std::size_t rows, TopK* best) {
    std::uint64_t mask = live(s, group);
    if (rows < kGroup) mask &= (std::uint64_t{1} << rows) - 1;
    const std::uint8_t* codes = s.codes + group * (std::size_t)bound.planes() * kGroup;
    for (; mask; mask &= mask - 1) {
        const std::size_t row = (std::size_t)__builtin_ctzll(mask);
        best->offer(bound.key(codes + row), s.label(group * kGroup + row));
    }
}

// The same for full groups of which all rows live, four sums in flight. P is known.
template <int P, bool Cosine>
void plain_groups(const float* t, const Segment& s, std::size_t first, std::size_t groups, TopK* best) {
    const std::uint8_t* codes = s.codes + first * (std::size_t)P * kGroup;
    for (std::size_t g = first; g < first + groups; ++g, codes += (std::size_t)P * kGroup) {
        for (std::size_t j = 0; j < kGroup; j += 4) {
            double key[4];
            for (int i = 0; i < 4; ++i) key[i] = t[codes[j + (std::size_t)i]];
#pragma GCC unroll 17
            for (int m = 1; m + 1 < P; ++m)
                for (int i = 0; i < 4; ++i) key[i] += (double)t[256 * m + codes[(std::size_t)m * kGroup + j + (std::size_t)i]];
            for (int i = 0; i < 4; ++i) {
                const double last = t[256 * (P - 1) + codes[(std::size_t)(P - 1) * kGroup + j + (std::size_t)i]];
                key[i] = Cosine ? key[i] * last : key[i] + last;
            }
            const double b = best->bound();
            if ((key[0] <= b) | (key[1] <= b) | (key[2] <= b) | (key[3] <= b))
                for (int i = 0; i < 4; ++i) best->offer(key[i], s.label(g * kGroup + j + (std::size_t)i));
        }
    }
}

// The exact key of a row that lies at `c`.
template <int P, bool Cosine>
double key_at(const float* t, const std::uint8_t* c) {
    double sum = t[c[0]];
#pragma GCC unroll 17
    for (std::size_t m = 1; m + 1 < P; ++m) sum += (double)t[256 * m + c[m * kGroup]];
    const double last = t[256 * (P - 1) + c[(P - 1) * kGroup]];
    return Cosine ? sum * last : sum + last;
}

// Exact keys of some rows of a run of groups.
template <int P, bool Cosine>
void keys_of(const float* t, const std::uint8_t* codes, const std::uint32_t* rows, std::size_t count, double* keys) {
    for (std::size_t i = 0; i < count; ++i)
        keys[i] = key_at<P, Cosine>(t, codes + rows[i] / kGroup * (std::size_t)P * kGroup + rows[i] % kGroup);
}

// The same for rows and queries, whose tables lie one behind the other.
template <int P, bool Cosine>
void keys_of_hits(const float* t, const std::uint8_t* codes, const Hit* hits, std::size_t count, double* keys) {
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t row = hits[i].row;
        const float* const own = t + hits[i].query * (std::size_t)P * kCodes;
        keys[i] = key_at<P, Cosine>(own, codes + row / kGroup * (std::size_t)P * kGroup + row % kGroup);
    }
}

struct Exact {
    void (*groups)(const float*, const Segment&, std::size_t, std::size_t, TopK*);
    void (*keys)(const float*, const std::uint8_t*, const std::uint32_t*, std::size_t, double*);
    void (*hits)(const float*, const std::uint8_t*, const Hit*, std::size_t, double*);
};

template <int P, bool Cosine>
constexpr Exact exact_for() {
    return {plain_groups<P, Cosine>, keys_of<P, Cosine>, keys_of_hits<P, Cosine>};
}

template <int... I>
Exact pick_exact(int planes, bool cosine, std::integer_sequence<int, I...>) {
    static constexpr Exact kSums[] = {exact_for<kMinPlanes + I, false>()...};
    static constexpr Exact kCosines[] = {exact_for<kMinPlanes + I, true>()...};
    return (cosine ? kCosines : kSums)[planes - kMinPlanes];
}

inline Exact exact_of(const Bound& bound) {
    return pick_exact(bound.planes(), bound.cosine(), std::make_integer_sequence<int, kMaxPlanes - kMinPlanes + 1>{});
}

// The plain way to search: every live row of some full groups.
inline void plain(const Bound& bound, const Segment& s, std::size_t first, std::size_t groups, TopK* best) {
    if (!s.mask) return exact_of(bound).groups(bound.exact(), s, first, groups, best);
    for (std::size_t g = first; g < first + groups; ++g) offer_rows(bound, s, g, kGroup, best);
}

}  // namespace ccq
