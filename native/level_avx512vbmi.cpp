// AVX-512 with VBMI (Ice Lake, Zen 4 and later): a 256-byte table is four registers, and two byte permutations and a blend
// look up 64 codes at once.
#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels.hpp"
#include "target.hpp"
CCQ_TARGET_BEGIN("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi,bmi2,lzcnt,popcnt,fma")

namespace {

#include "batch.inl"
#include "emit.inl"
#include "costs.inl"
#include "read.inl"
#include "vectors.inl"
#include "tables.inl"

// Entries of a 256-byte table for 64 codes.
inline __m512i look_up(__m512i codes, const __m512i* table) {
    asm("" : "+v"(codes));  // the compiler would load them three times, and loads are what is short here
    const __m512i low = _mm512_permutex2var_epi8(table[0], codes, table[1]);
    const __m512i high = _mm512_permutex2var_epi8(table[2], codes, table[3]);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(codes), low, high);
}

// Entries of a 64-byte table of fours. What the shift brings in from the neighbouring byte, the permutation ignores.
inline __m512i look_up_four(__m512i codes, __m512i table) {
    return _mm512_permutexvar_epi8(_mm512_srli_epi16(codes, 2), table);
}

inline void load_table(const std::uint8_t* bytes, __m512i* table) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) table[i] = _mm512_load_si512(bytes + 64 * i);
}

// From four codebooks on, entries of two of them are added before they meet the rest, and so must fit a byte together. They are
// cut off at half of what any row may have at the most: few reach that, and what passes is looked up exactly.
constexpr bool in_pairs(int planes) { return planes > 4; }

// The norm byte counts ascending levels, so its neighbours are alike: the least entry of each four serves for all of them.
void prepare(std::uint8_t* tables, int planes, bool norms) {
    const std::uint8_t* last = tables + 256 * (planes - 1);
    for (int i = 0; norms && i < 64; ++i)
        tables[256 * planes + i] = *std::min_element(last + 4 * i, last + 4 * i + 4);
    if (in_pairs(planes))
        for (int i = 0; i < 256 * (planes - 1); ++i) tables[i] = std::min(tables[i], std::uint8_t{127});
}

// Row numbers of what was found in up to 64 groups. A branch on every group, between look-ups, would be resolved late and
// throw away the work begun behind it: words of bits are kept and looked through afterwards.
inline std::uint32_t* emit_words(const std::uint64_t* found, std::size_t groups, std::size_t first, const std::uint64_t* mask,
                                 std::uint32_t* out) {
    std::uint64_t some = 0;
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
        const __m512i words = _mm512_load_si512(found + 8 * i);
        some |= (std::uint64_t)_mm512_test_epi64_mask(words, words) << (8 * i);
    }
    if (groups < 64) some &= (std::uint64_t{1} << groups) - 1;
    for (; some; some &= some - 1) {
        const std::size_t g = first + (std::size_t)__builtin_ctzll(some);
        out = emit(mask ? found[g - first] & mask[g] : found[g - first], (std::uint32_t)(g * ccq::kGroup), out);
    }
    return out;
}

// Groups strictly in order: from beyond the caches that is up to three times as fast as any other order. As many tables as
// there is room for stay in registers, the rest is read from the first-level cache again and again.
template <int P, bool Norms>
std::size_t filter_planes(const std::uint8_t* codes, std::size_t groups, const std::uint8_t* tables, std::uint8_t limit,
                          const std::uint64_t* mask, std::uint32_t* out) {
    constexpr int kHeld = P - 1 < 6 ? P - 1 : 6, kStep = in_pairs(P) ? 2 : 1;
    std::uint32_t* const begin = out;
    alignas(64) std::uint64_t found[64];
    const __m512i most = _mm512_set1_epi8((char)limit), fours = _mm512_load_si512(tables + 256 * P);
    __m512i held[kHeld][4];
#pragma GCC unroll 6
    for (int m = 0; m < kHeld; ++m) load_table(tables + 256 * m, held[m]);
    for (std::size_t first = 0; first < groups; first += 64) {
        const std::size_t count = std::min<std::size_t>(64, groups - first);
        for (std::size_t g = 0; g < count; ++g, codes += P * ccq::kGroup) {
            if (mask && mask[first + g] == 0) {
                found[g] = 0;
                continue;
            }
            __m512i entries[P];
#pragma GCC unroll 6
            for (int m = 0; m < kHeld; ++m) entries[m] = look_up(_mm512_loadu_si512(codes + 64 * m), held[m]);
#pragma GCC unroll 16
            for (int m = kHeld; m < P - Norms; ++m) {
                const std::uint8_t* bytes = tables + 256 * m;
                asm("" : "+r"(bytes));  // the compiler would load these before the loop, and spill them
                __m512i table[4];
                load_table(bytes, table);
                entries[m] = look_up(_mm512_loadu_si512(codes + 64 * m), table);
            }
            if (Norms) entries[P - 1] = look_up_four(_mm512_loadu_si512(codes + 64 * (P - 1)), fours);
            __m512i sum = entries[P - 1];
#pragma GCC unroll 16
            for (int m = 0; m < P - 1; m += kStep) {
                const bool two = kStep == 2 && m + 1 < P - 1;
                sum = _mm512_adds_epu8(sum, two ? _mm512_add_epi8(entries[m], entries[m + 1]) : entries[m]);
            }
            found[g] = _mm512_cmple_epu8_mask(sum, most);
        }
        out = emit_words(found, count, first, mask, out);
    }
    return (std::size_t)(out - begin);
}

template <int P>
std::size_t filter(const std::uint8_t* codes, std::size_t groups, const std::uint8_t* tables, std::uint8_t limit,
                   const std::uint64_t* mask, bool norms, std::uint32_t* out) {
    return (norms ? filter_planes<P, true> : filter_planes<P, false>)(codes, groups, tables, limit, mask, out);
}

struct Vec64 {
    static constexpr int width = 64;
    using V = __m512i;
    static V all(std::uint8_t a) { return _mm512_set1_epi8((char)a); }
    static V load(const std::uint8_t* p) { return _mm512_load_si512(p); }
    static V less(V a, V b) { return _mm512_subs_epu8(a, b); }
    static V larger(V a, V b) { return _mm512_max_epu8(a, b); }
    static V middle(V a, V b) { return _mm512_avg_epu8(a, b); }
    static std::uint64_t at_least(V a, V b) { return _mm512_cmpge_epu8_mask(a, b); }
};

struct Vec32 {
    static constexpr int width = 32;
    using V = __m256i;
    static V all(std::uint8_t a) { return _mm256_set1_epi8((char)a); }
    static V load(const std::uint8_t* p) { return _mm256_load_si256((const V*)p); }
    static V less(V a, V b) { return _mm256_subs_epu8(a, b); }
    static V larger(V a, V b) { return _mm256_max_epu8(a, b); }
    static V middle(V a, V b) { return _mm256_avg_epu8(a, b); }
    static std::uint64_t at_least(V a, V b) { return _mm256_cmpge_epu8_mask(a, b); }
};

struct Floats16 {
    static constexpr int width = 16;
    using V = __m512;
    static V load(const float* p) { return _mm512_load_ps(p); }
    static void store(float* p, V a) { _mm512_store_ps(p, a); }
    static V all(float a) { return _mm512_set1_ps(a); }
    static V add(V a, V b) { return _mm512_add_ps(a, b); }
    static V sub(V a, V b) { return _mm512_sub_ps(a, b); }
    static V mul(V a, V b) { return _mm512_mul_ps(a, b); }
    static V smaller(V a, V b) { return _mm512_min_ps(a, b); }
    static float least(V a) { return _mm512_reduce_min_ps(a); }
    static unsigned at_most(V a, V bound) { return _mm512_cmp_ps_mask(a, bound, _CMP_LE_OQ); }
};

}  // namespace

namespace ccq {
const Kernels kAvx512Vbmi = make_kernels<Vec32, Vec64, Costs<Floats16>>("avx512vbmi", prepare, 22, 40, 1);
}
CCQ_TARGET_END
#endif
