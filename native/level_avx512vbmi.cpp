// AVX-512 with VBMI (Ice Lake, Zen 4 and later): a 256-byte table is four registers, and two byte permutations and a blend
// look up 64 codes at once.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstdint>
#include <utility>

#include "kernels.hpp"
#include "target.hpp"
CCQ_TARGET_BEGIN("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi,bmi2,lzcnt,popcnt,fma")
#include "tables.inl"

namespace {

#include "batch.inl"
#include "emit.inl"
#include "costs.inl"
#include "read.inl"

inline __m512i look_up(__m512i codes, const __m512i* table) {
    const __m512i low = _mm512_permutex2var_epi8(table[0], codes, table[1]);
    const __m512i high = _mm512_permutex2var_epi8(table[2], codes, table[3]);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(codes), low, high);
}

inline void load_table(const std::uint8_t* bytes, __m512i* table) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) table[i] = _mm512_load_si512(bytes + 64 * i);
}

// Up to six planes: all tables stay in registers.
template <int P>
std::size_t filter_in_registers(const std::uint8_t* codes, std::size_t groups, const std::uint8_t* tables,
                                std::uint8_t limit, const std::uint64_t* mask, std::uint32_t* out) {
    std::uint32_t* const begin = out;
    const __m512i most = _mm512_set1_epi8((char)limit);
    __m512i table[P][4];
#pragma GCC unroll 6
    for (int m = 0; m < P; ++m) load_table(tables + 256 * m, table[m]);
    for (std::size_t g = 0; g < groups; ++g, codes += P * ccq::kGroup) {
        if (mask && mask[g] == 0) continue;
        __m512i sum = look_up(_mm512_loadu_si512(codes), table[0]);
#pragma GCC unroll 6
        for (int m = 1; m < P; ++m) sum = _mm512_adds_epu8(sum, look_up(_mm512_loadu_si512(codes + 64 * m), table[m]));
        std::uint64_t found = _mm512_cmple_epu8_mask(sum, most);
        if (__builtin_expect(found != 0, 0)) {
            if (mask) found &= mask[g];
            out = emit(found, (std::uint32_t)(g * ccq::kGroup), out);
        }
    }
    return (std::size_t)(out - begin);
}

// More planes: several groups at a time, so that a table is loaded once for all of them.
template <int P, int U>
std::size_t filter_by_plane(const std::uint8_t* codes, std::size_t groups, const std::uint8_t* tables,
                            std::uint8_t limit, const std::uint64_t* mask, std::uint32_t* out) {
    std::uint32_t* const begin = out;
    const __m512i most = _mm512_set1_epi8((char)limit);
    std::size_t g = 0;
    const auto run = [&](auto count) __attribute__((always_inline)) {
        constexpr int N = decltype(count)::value;
        __m512i sum[N];
#pragma GCC unroll 17
        for (int m = 0; m < P; ++m) {
            __m512i table[4];
            load_table(tables + 256 * m, table);
#pragma GCC unroll 8
            for (int u = 0; u < N; ++u) {
                const __m512i v = look_up(_mm512_loadu_si512(codes + ((std::size_t)u * P + m) * ccq::kGroup), table);
                sum[u] = m ? _mm512_adds_epu8(sum[u], v) : v;
            }
        }
#pragma GCC unroll 8
        for (int u = 0; u < N; ++u) {
            std::uint64_t found = _mm512_cmple_epu8_mask(sum[u], most);
            if (__builtin_expect(found != 0, 0)) {
                if (mask) found &= mask[g + u];
                out = emit(found, (std::uint32_t)((g + u) * ccq::kGroup), out);
            }
        }
        codes += (std::size_t)N * P * ccq::kGroup;
        g += N;
    };
    while (g + U <= groups) run(std::integral_constant<int, U>{});
    while (g < groups) run(std::integral_constant<int, 1>{});
    return (std::size_t)(out - begin);
}

struct Vec64 {
    static constexpr int width = 64;
    using V = __m512i;
    static V load(const std::uint8_t* p) { return _mm512_load_si512(p); }
    static V add(V a, V b) { return _mm512_adds_epu8(a, b); }
    static V smaller(V a, V b) { return _mm512_min_epu8(a, b); }
    static std::uint64_t at_most(V a, V limit) { return _mm512_cmple_epu8_mask(a, limit); }
};

struct Vec32 {
    static constexpr int width = 32;
    using V = __m256i;
    static V load(const std::uint8_t* p) { return _mm256_load_si256((const V*)p); }
    static V add(V a, V b) { return _mm256_adds_epu8(a, b); }
    static V smaller(V a, V b) { return _mm256_min_epu8(a, b); }
    static std::uint64_t at_most(V a, V limit) { return _mm256_cmple_epu8_mask(a, limit); }
};

#ifndef CCQ_UNROLL
#define CCQ_UNROLL 4
#endif
template <int P>
struct FilterOf {
    static constexpr ccq::Filter value = [] {
        if constexpr (P <= 6) return filter_in_registers<P>;
        else return filter_by_plane<P, CCQ_UNROLL>;
    }();
};
#ifndef CCQ_BATCH_VEC
#define CCQ_BATCH_VEC Vec32
#endif
template <int P>
struct BatchOf {
    static constexpr ccq::BatchFilter value = batch_filter<CCQ_BATCH_VEC, P>;
};

struct Floats16 {
    static constexpr int width = 16;
    using V = __m512;
    static V load(const float* p) { return _mm512_load_ps(p); }
    static void store(float* p, V a) { _mm512_store_ps(p, a); }
    static V all(float a) { return _mm512_set1_ps(a); }
    static V add(V a, V b) { return _mm512_add_ps(a, b); }
    static V sub(V a, V b) { return _mm512_sub_ps(a, b); }
    static V smaller(V a, V b) { return _mm512_min_ps(a, b); }
    static float least(V a) { return _mm512_reduce_min_ps(a); }
    static unsigned at_most(V a, V bound) { return _mm512_cmp_ps_mask(a, bound, _CMP_LE_OQ); }
};

}  // namespace

namespace ccq {
const Kernels kAvx512Vbmi = make_kernels<FilterOf, BatchOf, Costs<Floats16>>("avx512vbmi", CCQ_BATCH_VEC::width, 24, read_all);
}
CCQ_TARGET_END
#endif
