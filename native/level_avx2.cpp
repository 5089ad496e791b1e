// AVX2 (Haswell, Zen and later). A byte shuffle looks up in 16 bytes, so 256 entries take sixteen shuffles and fifteen blends.
// Four shuffles serve where neighbouring codewords are alike (the trainer orders them so): the minimum of each four is
// looked up first, and only rows that may still qualify are summed exactly.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstdint>
#include <utility>

#include "kernels.hpp"
#include "target.hpp"
CCQ_TARGET_BEGIN("avx2,bmi,bmi2,lzcnt,popcnt,fma")
#include "tables.inl"

namespace {

#include "batch.inl"
#include "emit.inl"
#include "costs.inl"
#include "read.inl"

constexpr std::size_t kFours = 64;

inline __m256i load(const std::uint8_t* p) { return _mm256_loadu_si256((const __m256i*)p); }
inline __m256i sixteen(const std::uint8_t* p) { return _mm256_broadcastsi128_si256(_mm_load_si128((const __m128i*)p)); }

// Entries of a 256-byte table for 32 codes.
inline __m256i look_up(__m256i codes, const std::uint8_t* t) {
    const __m256i low = _mm256_and_si256(codes, _mm256_set1_epi8(15));
    const __m256i b4 = _mm256_slli_epi16(codes, 3), b5 = _mm256_slli_epi16(codes, 2), b6 = _mm256_slli_epi16(codes, 1);
    const auto pair = [&](int i) __attribute__((always_inline)) {
        return _mm256_blendv_epi8(_mm256_shuffle_epi8(sixteen(t + 32 * i), low),
                                  _mm256_shuffle_epi8(sixteen(t + 32 * i + 16), low), b4);
    };
    const __m256i q0 = _mm256_blendv_epi8(pair(0), pair(1), b5), q1 = _mm256_blendv_epi8(pair(2), pair(3), b5);
    const __m256i q2 = _mm256_blendv_epi8(pair(4), pair(5), b5), q3 = _mm256_blendv_epi8(pair(6), pair(7), b5);
    return _mm256_blendv_epi8(_mm256_blendv_epi8(q0, q1, b6), _mm256_blendv_epi8(q2, q3, b6), codes);
}

// Entries of a 64-byte table of fours for 32 codes.
inline __m256i look_up_four(__m256i codes, const std::uint8_t* t) {
    const __m256i low = _mm256_and_si256(_mm256_srli_epi16(codes, 2), _mm256_set1_epi8(15));
    const __m256i b6 = _mm256_slli_epi16(codes, 1);
    const auto entry = [&](int i) __attribute__((always_inline)) { return _mm256_shuffle_epi8(sixteen(t + 16 * i), low); };
    return _mm256_blendv_epi8(_mm256_blendv_epi8(entry(0), entry(1), b6), _mm256_blendv_epi8(entry(2), entry(3), b6), codes);
}

inline std::uint32_t at_most(__m256i sum, __m256i limit) {
    return (std::uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_min_epu8(sum, limit), sum));
}

template <int P>
inline std::uint64_t whole_group(const std::uint8_t* codes, const std::uint8_t* tables, __m256i limit) {
    __m256i a = _mm256_setzero_si256(), b = a;
    for (int m = 0; m < P; ++m) {
        a = _mm256_adds_epu8(a, look_up(load(codes + 64 * m), tables + 256 * m));
        b = _mm256_adds_epu8(b, look_up(load(codes + 64 * m + 32), tables + 256 * m));
    }
    return at_most(a, limit) | (std::uint64_t)at_most(b, limit) << 32;
}

template <int P>
std::size_t filter(const std::uint8_t* codes, std::size_t groups, const std::uint8_t* tables, std::uint8_t limit,
                   const std::uint64_t* mask, std::uint32_t* out) {
    std::uint32_t* const begin = out;
    const __m256i most = _mm256_set1_epi8((char)limit);
    alignas(64) std::uint8_t fours[P * kFours];
    for (int m = 0; m < P; ++m)
        for (std::size_t i = 0; i < kFours; i += 8) {
            const __m256i t = load(tables + 256 * m + 4 * i);
            const __m256i two = _mm256_min_epu8(t, _mm256_srli_epi32(t, 8));
            const __m256i four = _mm256_min_epu8(two, _mm256_srli_epi32(two, 16));
            const __m256i bytes = _mm256_shuffle_epi8(
                four, _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8, 12, -1, -1, -1,
                                       -1, -1, -1, -1, -1, -1, -1, -1, -1));
            const std::uint32_t low = (std::uint32_t)_mm256_extract_epi32(bytes, 0);
            const std::uint32_t high = (std::uint32_t)_mm256_extract_epi32(bytes, 4);
            __builtin_memcpy(fours + kFours * m + i, &low, 4);
            __builtin_memcpy(fours + kFours * m + i + 4, &high, 4);
        }
    std::size_t suspects = 0;
    for (std::size_t g = 0; g < groups; ++g, codes += P * ccq::kGroup) {
        const std::uint64_t live = mask ? mask[g] : ~std::uint64_t{0};
        if (live == 0) continue;
        const auto first = (std::uint32_t)(g * ccq::kGroup);
        if (suspects > 8 * (g + 4)) {  // more than an eighth: neighbours are not alike, look up every code
            if (const std::uint64_t found = whole_group<P>(codes, tables, most) & live) out = emit(found, first, out);
            continue;
        }
        __m256i a = _mm256_setzero_si256(), b = a;
#pragma GCC unroll 17
        for (int m = 0; m < P; ++m) {
            a = _mm256_adds_epu8(a, look_up_four(load(codes + 64 * m), fours + kFours * m));
            b = _mm256_adds_epu8(b, look_up_four(load(codes + 64 * m + 32), fours + kFours * m));
        }
        std::uint64_t found = (at_most(a, most) | (std::uint64_t)at_most(b, most) << 32) & live;
        suspects += (std::size_t)__builtin_popcountll(found);
        for (; found; found &= found - 1) {
            const int j = __builtin_ctzll(found);
            std::uint32_t sum = 0;
#pragma GCC unroll 17
            for (int m = 0; m < P; ++m) sum += tables[256 * m + codes[64 * m + j]];
            *out = first + (std::uint32_t)j;
            out += sum <= limit;
        }
    }
    return (std::size_t)(out - begin);
}

struct Vec32 {
    static constexpr int width = 32;
    using V = __m256i;
    static V load(const std::uint8_t* p) { return _mm256_load_si256((const V*)p); }
    static V add(V a, V b) { return _mm256_adds_epu8(a, b); }
    static V smaller(V a, V b) { return _mm256_min_epu8(a, b); }
    static std::uint64_t at_most(V a, V limit) { return ::at_most(a, limit); }
};

template <int P>
struct FilterOf {
    static constexpr ccq::Filter value = filter<P>;
};
template <int P>
struct BatchOf {
    static constexpr ccq::BatchFilter value = batch_filter<Vec32, P>;
};

struct Floats8 {
    static constexpr int width = 8;
    using V = __m256;
    static V load(const float* p) { return _mm256_load_ps(p); }
    static void store(float* p, V a) { _mm256_store_ps(p, a); }
    static V all(float a) { return _mm256_set1_ps(a); }
    static V add(V a, V b) { return _mm256_add_ps(a, b); }
    static V sub(V a, V b) { return _mm256_sub_ps(a, b); }
    static V smaller(V a, V b) { return _mm256_min_ps(a, b); }
    static float least(V a) {
        __m128 four = _mm_min_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
        four = _mm_min_ps(four, _mm_movehl_ps(four, four));
        return _mm_cvtss_f32(_mm_min_ss(four, _mm_shuffle_ps(four, four, 1)));
    }
    static unsigned at_most(V a, V bound) { return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(a, bound, _CMP_LE_OQ)); }
};

}  // namespace

namespace ccq {
const Kernels kAvx2 = make_kernels<FilterOf, BatchOf, Costs<Floats8>>("avx2", Vec32::width, 4, read_all);
}
CCQ_TARGET_END
#endif
