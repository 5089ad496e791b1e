// NEON (every 64-bit ARM): four table instructions of 64 bytes look up 16 codes.
#if defined(__aarch64__)
#include <arm_neon.h>

#include <cstdint>
#include <utility>

#include "kernels.hpp"
#include "tables.inl"

namespace {

#include "baseline.inl"
#include "batch.inl"
#include "emit.inl"
#include "read.inl"

inline uint8x16_t look_up(uint8x16_t codes, const uint8x16x4_t* t) {
    const uint8x16_t step = vdupq_n_u8(64);
    uint8x16_t found = vqtbl4q_u8(t[0], codes);  // indices of 64 and more give 0
    for (int i = 1; i < 4; ++i) {
        codes = vsubq_u8(codes, step);
        found = vqtbx4q_u8(found, t[i], codes);  // indices of 64 and more leave what is there
    }
    return found;
}

template <int P>
std::size_t filter(const std::uint8_t* codes, std::size_t groups, const std::uint8_t* tables, std::uint8_t limit,
                   const std::uint64_t* mask, std::uint32_t* out) {
    std::uint32_t* const begin = out;
    const uint8x16_t most = vdupq_n_u8(limit);
    for (std::size_t g = 0; g < groups; ++g, codes += P * ccq::kGroup) {
        const std::uint64_t live = mask ? mask[g] : ~std::uint64_t{0};
        if (live == 0) continue;
        uint8x16_t sum[4];
        for (int m = 0; m < P; ++m) {  // one table in sixteen registers serves four vectors
            uint8x16x4_t t[4];
            for (int i = 0; i < 4; ++i) t[i] = vld1q_u8_x4(tables + 256 * m + 64 * i);
            for (int u = 0; u < 4; ++u) {
                const uint8x16_t v = look_up(vld1q_u8(codes + 64 * m + 16 * u), t);
                sum[u] = m ? vqaddq_u8(sum[u], v) : v;
            }
        }
        const uint8x16_t least = vminq_u8(vminq_u8(sum[0], sum[1]), vminq_u8(sum[2], sum[3]));
        if (vminvq_u8(least) > limit) continue;
        std::uint64_t found = 0;
        for (int u = 0; u < 4; ++u) found |= Vec16::at_most(sum[u], most) << (16 * u);
        out = emit(found & live, (std::uint32_t)(g * ccq::kGroup), out);
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
    float32x4_t least = vdupq_n_f32(__builtin_inff());
    for (int j = 0; j < 256; j += 4) {
        float32x4_t s = vld1q_f32(base + j);
        for (int t = 0; t < count; ++t) s = vaddq_f32(s, vld1q_f32(rows[t] + j));
        vst1q_f32(sum + j, s);
        least = vminq_f32(least, s);
    }
    *value = vminvq_f32(least);
    for (int j = 0; j < 256; ++j)
        if (sum[j] == *value) return j;
    return 0;
}

}  // namespace

namespace ccq {
const Kernels kNeon = make_kernels<FilterOf, BatchOf>("neon", Vec16::width, 4, argmin, sums, read_all);
}
#endif
