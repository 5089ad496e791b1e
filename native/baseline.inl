// The 16-byte vector that the architecture always has, for the portable level, NEON and narrow batches of AVX2. Included
// inside their anonymous namespaces.
#if defined(__SSE2__)
struct Vec16 {
    static constexpr int width = 16;
    using V = __m128i;
    static V all(std::uint8_t a) { return _mm_set1_epi8((char)a); }
    static V load(const std::uint8_t* p) { return _mm_load_si128((const V*)p); }
    static V less(V a, V b) { return _mm_subs_epu8(a, b); }
    static V larger(V a, V b) { return _mm_max_epu8(a, b); }
    static V middle(V a, V b) { return _mm_avg_epu8(a, b); }
    static std::uint64_t at_least(V a, V b) {
        return (std::uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(a, b), a));
    }
};
#elif defined(__aarch64__)
struct Vec16 {
    static constexpr int width = 16;
    using V = uint8x16_t;
    static V all(std::uint8_t a) { return vdupq_n_u8(a); }
    static V load(const std::uint8_t* p) { return vld1q_u8(p); }
    static V less(V a, V b) { return vqsubq_u8(a, b); }
    static V larger(V a, V b) { return vmaxq_u8(a, b); }
    static V middle(V a, V b) { return vrhaddq_u8(a, b); }
    static std::uint64_t at_least(V a, V b) {
        const V bits = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
        const V set = vandq_u8(vcgeq_u8(a, b), bits);
        return (std::uint64_t)vaddv_u8(vget_low_u8(set)) | (std::uint64_t)vaddv_u8(vget_high_u8(set)) << 8;
    }
};
#else
struct Vec16 {
    static constexpr int width = 16;
    struct V {
        std::uint8_t b[16];
    };
    static V all(std::uint8_t a) {
        V v;
        for (int i = 0; i < 16; ++i) v.b[i] = a;
        return v;
    }
    static V load(const std::uint8_t* p) {
        V v;
        for (int i = 0; i < 16; ++i) v.b[i] = p[i];
        return v;
    }
    static V less(V a, V b) {
        for (int i = 0; i < 16; ++i) a.b[i] = (std::uint8_t)(a.b[i] > b.b[i] ? a.b[i] - b.b[i] : 0);
        return a;
    }
    static V larger(V a, V b) {
        for (int i = 0; i < 16; ++i) a.b[i] = a.b[i] > b.b[i] ? a.b[i] : b.b[i];
        return a;
    }
    static V middle(V a, V b) {
        for (int i = 0; i < 16; ++i) a.b[i] = (std::uint8_t)((a.b[i] + b.b[i] + 1) / 2);
        return a;
    }
    static std::uint64_t at_least(V a, V b) {
        std::uint64_t bits = 0;
        for (int i = 0; i < 16; ++i) bits |= (std::uint64_t)(a.b[i] >= b.b[i]) << i;
        return bits;
    }
};
#endif
