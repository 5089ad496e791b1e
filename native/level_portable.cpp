// Baseline of every CPU: plain C++, with the 16-byte vectors that the architecture always has.
#include <cstdint>
#include <utility>

#include "kernels.hpp"
#include "tables.inl"

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace {

#include "baseline.inl"
#include "batch.inl"
#include "emit.inl"
#include "read.inl"

template <int P>
std::size_t filter(const std::uint8_t* codes, std::size_t groups, const std::uint8_t* tables, std::uint8_t limit,
                   const std::uint64_t* mask, std::uint32_t* out) {
    std::uint32_t* const begin = out;
    for (std::size_t g = 0; g < groups; ++g, codes += P * ccq::kGroup) {
        const std::uint64_t live = mask ? mask[g] : ~std::uint64_t{0};
        if (live == 0) continue;
        std::uint64_t found = 0;
        for (int j = 0; j < (int)ccq::kGroup; j += 4) {
            std::uint32_t sum[4] = {0, 0, 0, 0};
#pragma GCC unroll 17
            for (int m = 0; m < P; ++m) {
                const std::uint8_t* c = codes + (std::size_t)m * ccq::kGroup + j;
                const std::uint8_t* t = tables + 256 * m;
                sum[0] += t[c[0]];
                sum[1] += t[c[1]];
                sum[2] += t[c[2]];
                sum[3] += t[c[3]];
            }
            for (int t = 0; t < 4; ++t) found |= (std::uint64_t)(sum[t] <= limit) << (j + t);
        }
        if (found &= live) out = emit(found, (std::uint32_t)(g * ccq::kGroup), out);
    }
    return (std::size_t)(out - begin);
}

template <int P>
struct FilterOf {
    static constexpr ccq::Filter value = filter<P>;
};
template <int P>
struct BatchOf {
    static constexpr ccq::BatchFilter value = batch_filter<Vec16, P>;
};

int argmin(const float* base, const float* const* rows, int count, float* value) {
    alignas(64) float sum[256];
    for (int j = 0; j < 256; ++j) sum[j] = base[j];
    for (int t = 0; t < count; ++t)
        for (int j = 0; j < 256; ++j) sum[j] += rows[t][j];
    float least = sum[0];
    for (int j = 1; j < 256; ++j) least = sum[j] < least ? sum[j] : least;
    *value = least;
    for (int j = 0; j < 256; ++j)
        if (sum[j] == least) return j;
    return 0;  // every sum is NaN
}

}  // namespace

namespace ccq {
const Kernels kPortable = make_kernels<FilterOf, BatchOf>("portable", Vec16::width, 2, argmin, sums, read_all);
}
