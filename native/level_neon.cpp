// NEON (every 64-bit ARM): four table instructions of 64 bytes look up 16 codes.
#if defined(__aarch64__)
#include <arm_neon.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels.hpp"

namespace {

#include "baseline.inl"
#include "batch.inl"
#include "emit.inl"
#include "costs.inl"
#include "read.inl"
#include "vectors.inl"
#include "tables.inl"

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
                   const std::uint64_t* mask, bool, std::uint32_t* out) {
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
        for (int u = 0; u < 4; ++u) found |= Vec16::at_least(most, sum[u]) << (16 * u);
        out = emit(found & live, (std::uint32_t)(g * ccq::kGroup), out);
    }
    return (std::size_t)(out - begin);
}

struct Floats4 {
    static constexpr int width = 4;
    using V = float32x4_t;
    static V load(const float* p) { return vld1q_f32(p); }
    static void store(float* p, V a) { vst1q_f32(p, a); }
    static V all(float a) { return vdupq_n_f32(a); }
    static V add(V a, V b) { return vaddq_f32(a, b); }
    static V sub(V a, V b) { return vsubq_f32(a, b); }
    static V mul(V a, V b) { return vmulq_f32(a, b); }
    static V smaller(V a, V b) { return vminq_f32(a, b); }
    static float least(V a) { return vminvq_f32(a); }
    static unsigned at_most(V a, V bound) {
        const uint32x4_t bits = {1, 2, 4, 8};
        return vaddvq_u32(vandq_u32(vcleq_f32(a, bound), bits));
    }
};

}  // namespace

namespace ccq {
const Kernels kNeon = make_kernels<Vec16, Vec16, Costs<Floats4>>("neon", nullptr, 4, 4, 4);
}
#endif
