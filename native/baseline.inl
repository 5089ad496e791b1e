// The 16-byte vector that the architecture always has, for the portable level, NEON and narrow batches of AVX2. Included
// inside their anonymous namespaces.
#if defined(__SSE2__)
struct Vec16 {
    static constexpr int width = 16;
    using V = __m128i;
    static V load(const std::uint8_t* p) { return _mm_load_si128((const V*)p); }
    static V add(V a, V b) { return _mm_adds_epu8(a, b); }
    static V smaller(V a, V b) { return _mm_min_epu8(a, b); }
    static std::uint64_t at_most(V a, V limit) {
        return (std::uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(a, limit), a));
    }
};
#elif defined(__aarch64__)
struct Vec16 {
    static constexpr int width = 16;
    using V = uint8x16_t;
    static V load(const std::uint8_t* p) { return vld1q_u8(p); }
    static V add(V a, V b) { return vqaddq_u8(a, b); }
    static V smaller(V a, V b) { return vminq_u8(a, b); }
    static std::uint64_t at_most(V a, V limit) {
        const V bits = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
        const V set = vandq_u8(vcleq_u8(a, limit), bits);
        return (std::uint64_t)vaddv_u8(vget_low_u8(set)) | (std::uint64_t)vaddv_u8(vget_high_u8(set)) << 8;
    }
};
#else
struct Vec16 {
    static constexpr int width = 16;
    struct V {
        std::uint8_t b[16];
    };
    static V load(const std::uint8_t* p) {
        V v;
        for (int i = 0; i < 16; ++i) v.b[i] = p[i];
        return v;
    }
    static V add(V a, V b) {
        for (int i = 0; i < 16; ++i) {
            const unsigned s = a.b[i] + b.b[i];
            a.b[i] = (std::uint8_t)(s > 255 ? 255 : s);
        }
        return a;
    }
    static V smaller(V a, V b) {
        for (int i = 0; i < 16; ++i) a.b[i] = a.b[i] < b.b[i] ? a.b[i] : b.b[i];
        return a;
    }
    static std::uint64_t at_most(V a, V limit) {
        std::uint64_t bits = 0;
        for (int i = 0; i < 16; ++i) bits |= (std::uint64_t)(a.b[i] <= limit.b[i]) << i;
        return bits;
    }
};
#endif
