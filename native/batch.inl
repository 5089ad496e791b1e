// The batch filter, written once over a vector type. Included by each level inside its anonymous namespace.
//
// Vec must have: width, V, load(p), add(a, b) saturating, smaller(a, b), at_most(a, limit) -> one bit per byte.
// One vector load and one add serve `width` queries for one code of one row.

template <class Vec, int P>
std::size_t batch_filter(const std::uint8_t* codes, std::size_t groups, const std::uint8_t* tables,
                         const std::uint8_t* limits, const std::uint64_t* mask, ccq::Hit* out) {
    constexpr int W = Vec::width;
    constexpr int T = 8;  // rows in flight
    const typename Vec::V limit = Vec::load(limits);
    ccq::Hit* const begin = out;
    alignas(64) std::uint16_t offsets[P * ccq::kGroup];  // code * W / 8: x86 scales by 8 in the address
    for (std::size_t g = 0; g < groups; ++g, codes += P * ccq::kGroup) {
        const std::uint64_t live = mask ? mask[g] : ~std::uint64_t{0};
        if (live == 0) continue;
        for (std::size_t i = 0; i < P * ccq::kGroup; ++i) offsets[i] = (std::uint16_t)(codes[i] * (W / 8));
        for (std::size_t j = 0; j < ccq::kGroup; j += T) {
            typename Vec::V sum[T];
#pragma GCC unroll 8
            for (int t = 0; t < T; ++t) sum[t] = Vec::load(tables + (std::size_t)offsets[j + t] * 8);
#pragma GCC unroll 16
            for (int m = 1; m < P; ++m)
#pragma GCC unroll 8
                for (int t = 0; t < T; ++t)
                    sum[t] = Vec::add(sum[t], Vec::load(tables + (std::size_t)m * 256 * W +
                                                        (std::size_t)offsets[m * ccq::kGroup + j + t] * 8));
            typename Vec::V least = sum[0];
#pragma GCC unroll 8
            for (int t = 1; t < T; ++t) least = Vec::smaller(least, sum[t]);
            if (__builtin_expect(Vec::at_most(least, limit) != 0, 0)) {
                for (int t = 0; t < T; ++t) {
                    if (!(live >> (j + t) & 1)) continue;
                    std::uint64_t found = Vec::at_most(sum[t], limit);
                    for (; found; found &= found - 1)
                        *out++ = {(std::uint32_t)(g * ccq::kGroup + j + t), (std::uint32_t)__builtin_ctzll(found)};
                }
            }
        }
    }
    return (std::size_t)(out - begin);
}
