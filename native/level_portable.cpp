// Baseline of every CPU: plain C++, with the 16-byte vectors that the architecture always has.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace {

#include "baseline.inl"
#include "batch.inl"
#include "emit.inl"
#include "costs.inl"
#include "read.inl"
#include "vectors.inl"
#include "tables.inl"

template <int P>
std::size_t filter(const std::uint8_t* codes, std::size_t groups, const std::uint8_t* tables, std::uint8_t limit,
                   const std::uint64_t* mask, bool, std::uint32_t* out) {
    std::uint32_t* const begin = out;
    for (std::size_t g = 0; g < groups; ++g, codes += P * ccq::kGroup) {
        if (mask && mask[g] == 0) continue;
        std::uint32_t* const first = out;
        // Look-ups are bound by loads: codes of two rows come by one load, but for some planes, since taking them apart is
        // work too. More rows at a time would not fit the registers.
        for (std::size_t j = 0; j < ccq::kGroup; j += 2) {
            std::uint32_t even = tables[codes[j]], odd = tables[codes[j + 1]];
#pragma GCC unroll 17
            for (std::size_t m = 1; m < P; ++m) {
                const std::uint8_t* const code = codes + m * ccq::kGroup + j;
                std::uint64_t a = code[0], b = code[1];
                if (m > 1) {
                    const std::uint64_t both = ccq::codes_in<std::uint16_t>(code);
                    a = both & 255, b = both >> 8;
                }
                even += tables[256 * m + a];
                odd += tables[256 * m + b];
                asm("" : "+r"(even), "+r"(odd));  // the compiler would make a slower vector of them
            }
            const auto row = (std::uint32_t)(g * ccq::kGroup + j);
            if (__builtin_expect(even <= limit, 0)) *out++ = row;
            if (__builtin_expect(odd <= limit, 0)) *out++ = row + 1;
        }
        if (mask) out = std::remove_if(first, out, [&](std::uint32_t row) { return !(mask[g] >> row % ccq::kGroup & 1); });
    }
    return (std::size_t)(out - begin);
}

#if defined(__SSE2__)
struct Floats {
    static constexpr int width = 4;
    using V = __m128;
    static V load(const float* p) { return _mm_load_ps(p); }
    static void store(float* p, V a) { _mm_store_ps(p, a); }
    static V all(float a) { return _mm_set1_ps(a); }
    static V add(V a, V b) { return _mm_add_ps(a, b); }
    static V sub(V a, V b) { return _mm_sub_ps(a, b); }
    static V mul(V a, V b) { return _mm_mul_ps(a, b); }
    static V smaller(V a, V b) { return _mm_min_ps(a, b); }
    static float least(V a) {
        a = _mm_min_ps(a, _mm_movehl_ps(a, a));
        return _mm_cvtss_f32(_mm_min_ss(a, _mm_shuffle_ps(a, a, 1)));
    }
    static unsigned at_most(V a, V bound) { return (unsigned)_mm_movemask_ps(_mm_cmple_ps(a, bound)); }
};
#else
// Plain floats: the compiler makes vectors of them where it sees fit.
struct Floats {
    static constexpr int width = 1;
    using V = float;
    static V load(const float* p) { return *p; }
    static void store(float* p, V a) { *p = a; }
    static V all(float a) { return a; }
    static V add(V a, V b) { return a + b; }
    static V sub(V a, V b) { return a - b; }
    static V mul(V a, V b) { return a * b; }
    static V smaller(V a, V b) { return b < a ? b : a; }
    static float least(V a) { return a; }
    static unsigned at_most(V a, V bound) { return a <= bound; }
};
#endif

}  // namespace

namespace ccq {
const Kernels kPortable = make_kernels<Vec16, Vec16, Costs<Floats>>("portable", nullptr, 2, 2, 10);
}
