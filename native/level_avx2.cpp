// AVX2 (Haswell, Zen and later). A byte shuffle looks up in 16 bytes, so 256 entries take sixteen shuffles and fifteen blends.
// Half of that serves where codewords j and j + 128 are alike (the trainer orders them so): the minimum of each such two is
// looked up, and only rows that may still qualify are summed exactly.
#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels.hpp"
#include "target.hpp"
CCQ_TARGET_BEGIN("avx2,bmi,bmi2,lzcnt,popcnt,fma")

namespace {

#include "baseline.inl"
#include "batch.inl"
#include "emit.inl"
#include "costs.inl"
#include "read.inl"
#include "vectors.inl"
#include "tables.inl"

inline __m256i load(const std::uint8_t* p) { return _mm256_loadu_si256((const __m256i*)p); }
inline __m256i sixteen(const std::uint8_t* p) { return _mm256_broadcastsi128_si256(_mm_load_si128((const __m128i*)p)); }

// A table of 16 N bytes is looked up in by the low four bits of 32 indices, N times, and the next bits choose: they are at the
// top of the bytes of `b0`, `b1`, ...
inline __m256i entry(const std::uint8_t* t, int i, __m256i low) { return _mm256_shuffle_epi8(sixteen(t + 16 * i), low); }

inline __m256i of_two(const std::uint8_t* t, int i, __m256i low, __m256i b0) {
    return _mm256_blendv_epi8(entry(t, i, low), entry(t, i + 1, low), b0);
}

inline __m256i of_four(const std::uint8_t* t, int i, __m256i low, __m256i b0, __m256i b1) {
    return _mm256_blendv_epi8(of_two(t, i, low, b0), of_two(t, i + 2, low, b0), b1);
}

inline __m256i of_eight(const std::uint8_t* t, int i, __m256i low, __m256i b0, __m256i b1, __m256i b2) {
    return _mm256_blendv_epi8(of_four(t, i, low, b0, b1), of_four(t, i + 4, low, b0, b1), b2);
}

// The next lower bit of each byte moved to the top. An addition, since shifts compete with shuffles for the ports.
inline __m256i next_bit(__m256i bits) { return _mm256_add_epi8(bits, bits); }

// Entries of a 256-byte table for 32 codes.
inline __m256i look_up(__m256i codes, const std::uint8_t* t) {
    const __m256i low = _mm256_and_si256(codes, _mm256_set1_epi8(15));
    const __m256i b6 = next_bit(codes), b5 = next_bit(b6), b4 = next_bit(b5);
    return _mm256_blendv_epi8(of_eight(t, 0, low, b4, b5, b6), of_eight(t, 8, low, b4, b5, b6), codes);
}

// What follows looks up in `prepare`'s tables of 32 entries, kept as (first half ^ second half, second half). An index with its
// top bit set gives 0, so that an exclusive or takes the place of a blend, which competes with shuffles for the ports.
inline __m256i folded(const std::uint8_t* t, __m256i five_bits) {
    const __m256i first = _mm256_add_epi8(five_bits, _mm256_set1_epi8(0x70));  // the fifth bit is carried to the top
    return _mm256_xor_si256(_mm256_shuffle_epi8(sixteen(t), first), _mm256_shuffle_epi8(sixteen(t + 16), five_bits));
}

inline __m256i five_bits(__m256i codes) { return _mm256_and_si256(codes, _mm256_set1_epi8(31)); }

inline void fold(std::uint8_t* t) {
    for (int i = 0; i < 16; ++i) t[i] ^= t[i + 16];
}

// Entries for codes by twos: 128 of them, four tables.
inline __m256i look_up_two(__m256i codes, const std::uint8_t* t) {
    const __m256i low = five_bits(codes), b6 = next_bit(codes), b5 = next_bit(b6);
    const __m256i lower = _mm256_blendv_epi8(folded(t, low), folded(t + 32, low), b5);
    const __m256i upper = _mm256_blendv_epi8(folded(t + 64, low), folded(t + 96, low), b5);
    return _mm256_blendv_epi8(lower, upper, b6);
}

// Entries for norm bytes by eights: 32 of them, one table.
inline __m256i look_up_eight(__m256i codes, const std::uint8_t* t) {
    return folded(t, five_bits(_mm256_srli_epi16(codes, 3)));
}

inline std::uint32_t at_most(__m256i sum, __m256i limit) {
    return (std::uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_min_epu8(sum, limit), sum));
}

// Behind the tables: the least entry of each two that are alike, and for the norm byte, which counts ascending levels, of
// each eight neighbours; as `folded` wants them.
void prepare(std::uint8_t* tables, int planes, bool norms) {
    std::uint8_t* out = tables + 256 * (std::size_t)planes;
    for (int m = 0; m < planes - norms; ++m, out += 128) {
        const std::uint8_t* t = tables + 256 * m;
        for (int i = 0; i < 128; ++i) out[i] = std::min(t[i], t[i + 128]);
        for (int i = 0; i < 128; i += 32) fold(out + i);
    }
    if (!norms) return;
    const std::uint8_t* last = tables + 256 * (planes - 1);
    for (int i = 0; i < 32; ++i) out[i] = *std::min_element(last + 8 * i, last + 8 * i + 8);
    fold(out);
}

// Which rows of a group may qualify.
template <int P, bool Norms>
inline std::uint64_t suspects(const std::uint8_t* codes, const std::uint8_t* tables, __m256i limit) {
    const std::uint8_t* twos = tables + 256 * P;
    const auto last = [&](const std::uint8_t* c) {
        return Norms ? look_up_eight(load(c), twos + 128 * (P - 1)) : look_up_two(load(c), twos + 128 * (P - 1));
    };
    __m256i a = last(codes + 64 * (P - 1)), b = last(codes + 64 * (P - 1) + 32);
#pragma GCC unroll 16
    for (int m = 0; m < P - 1; ++m) {
        a = _mm256_adds_epu8(a, look_up_two(load(codes + 64 * m), twos + 128 * m));
        b = _mm256_adds_epu8(b, look_up_two(load(codes + 64 * m + 32), twos + 128 * m));
    }
    return at_most(a, limit) | (std::uint64_t)at_most(b, limit) << 32;
}

// Which rows of a group qualify.
template <int P>
inline std::uint64_t qualified(const std::uint8_t* codes, const std::uint8_t* tables, __m256i limit) {
    __m256i a = _mm256_setzero_si256(), b = a;
    for (int m = 0; m < P; ++m) {
        a = _mm256_adds_epu8(a, look_up(load(codes + 64 * m), tables + 256 * m));
        b = _mm256_adds_epu8(b, look_up(load(codes + 64 * m + 32), tables + 256 * m));
    }
    return at_most(a, limit) | (std::uint64_t)at_most(b, limit) << 32;
}

// Row numbers of the set bits of a word, mostly few of them: the first four are written whether they are there or not, since a
// branch that nothing foretells would cost more.
inline std::uint32_t* emit_few(std::uint64_t found, std::uint32_t first, std::uint32_t* out) {
    const int count = __builtin_popcountll(found);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i, found &= found - 1) out[i] = first + (std::uint32_t)_tzcnt_u64(found);
    if (__builtin_expect(count > 4, 0)) emit(found, first, out + 4);
    return out + count;
}

// Of rows in `begin` .. `end` keep those whose sum is at most `limit`.
template <int P>
std::uint32_t* keep_qualified(const std::uint8_t* codes, const std::uint8_t* tables, std::uint32_t limit, std::uint32_t* begin,
                              const std::uint32_t* end) {
    std::uint32_t* kept = begin;
    for (const std::uint32_t* at = begin; at < end; ++at) {
        const std::uint8_t* code = codes + *at / ccq::kGroup * (std::size_t)(P * ccq::kGroup) + *at % ccq::kGroup;
        std::uint32_t sum = 0;
#pragma GCC unroll 17
        for (int m = 0; m < P; ++m) sum += tables[256 * m + code[64 * m]];
        *kept = *at;
        kept += sum <= limit;
    }
    return kept;
}

template <int P, bool Norms>
std::size_t filter_planes(const std::uint8_t* codes, std::size_t groups, const std::uint8_t* tables, std::uint8_t limit,
                          const std::uint64_t* mask, std::uint32_t* out) {
    constexpr std::size_t N = 16;  // groups between looks at how many rows are suspect
    std::uint32_t* const begin = out;
    const __m256i most = _mm256_set1_epi8((char)limit);
    std::uint64_t found[N];
    std::uint32_t rows[N * ccq::kGroup + 4];
    std::size_t seen = 0;
    for (std::size_t first = 0; first < groups; first += N) {
        const std::size_t count = std::min(N, groups - first);
        const bool unlike = seen > 4 * (first + 4);  // twos are not alike enough: look up every code
        const std::uint8_t* group = codes + first * P * ccq::kGroup;
        for (std::size_t g = 0; g < count; ++g, group += P * ccq::kGroup) {
            if (mask && mask[first + g] == 0) {
                found[g] = 0;
                continue;
            }
            // A group is so many instructions that the next loads are not seen in time, nor foreseen by the hardware: from
            // memory this halves the time.
#pragma GCC unroll 17
            for (int m = 0; m < P; ++m) _mm_prefetch((const char*)group + (8 * P + m) * ccq::kGroup, _MM_HINT_T0);
            found[g] = unlike ? qualified<P>(group, tables, most) : suspects<P, Norms>(group, tables, most);
        }
        std::uint32_t* to = rows;
        for (std::size_t g = 0; g < count; ++g)
            to = emit_few(mask ? found[g] & mask[first + g] : found[g], (std::uint32_t)((first + g) * ccq::kGroup), to);
        if (!unlike) {
            seen += (std::size_t)(to - rows);
            to = keep_qualified<P>(codes, tables, limit, rows, to);
        }
        out = std::copy(rows, to, out);
    }
    return (std::size_t)(out - begin);
}

template <int P>
std::size_t filter(const std::uint8_t* codes, std::size_t groups, const std::uint8_t* tables, std::uint8_t limit,
                   const std::uint64_t* mask, bool norms, std::uint32_t* out) {
    return (norms ? filter_planes<P, true> : filter_planes<P, false>)(codes, groups, tables, limit, mask, out);
}

struct Vec32 {
    static constexpr int width = 32;
    using V = __m256i;
    static V all(std::uint8_t a) { return _mm256_set1_epi8((char)a); }
    static V load(const std::uint8_t* p) { return _mm256_load_si256((const V*)p); }
    static V less(V a, V b) { return _mm256_subs_epu8(a, b); }
    static V larger(V a, V b) { return _mm256_max_epu8(a, b); }
    static V middle(V a, V b) { return _mm256_avg_epu8(a, b); }
    static std::uint64_t at_least(V a, V b) { return at_most(b, a); }
};

struct Floats8 {
    static constexpr int width = 8;
    using V = __m256;
    static V load(const float* p) { return _mm256_load_ps(p); }
    static void store(float* p, V a) { _mm256_store_ps(p, a); }
    static V all(float a) { return _mm256_set1_ps(a); }
    static V add(V a, V b) { return _mm256_add_ps(a, b); }
    static V sub(V a, V b) { return _mm256_sub_ps(a, b); }
    static V mul(V a, V b) { return _mm256_mul_ps(a, b); }
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
const Kernels kAvx2 = make_kernels<Vec16, Vec32, Costs<Floats8>>("avx2", prepare, 4, 17, 3);
}
CCQ_TARGET_END
#endif
