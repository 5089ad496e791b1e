// The batch filter, written once over a vector type. Included by each level inside its anonymous namespace.
//
// Vec must have: width, V, load(p), add(a, b) saturating, smaller(a, b), at_most(a, limit) -> one bit per byte.
// One vector load and one add serve `width` queries for one code of one row.

template <class Vec, int P>
std::size_t batch_filter(const std::uint8_t* codes, std::size_t groups, const std::uint8_t* tables,
                         const std::uint8_t* limits, const std::uint64_t* mask, ccq::Hit* out) {
    constexpr std::size_t W = Vec::width;
    constexpr int T = 8;  // rows in flight: their codes of a plane are one word
    constexpr int kShift = __builtin_ctz(W);
    constexpr std::uint64_t kOffset = std::uint64_t{255} << kShift;
    const typename Vec::V limit = Vec::load(limits);
    ccq::Hit* const begin = out;
    for (std::size_t g = 0; g < groups; ++g, codes += P * ccq::kGroup) {
        const std::uint64_t live = mask ? mask[g] : ~std::uint64_t{0};
        if (live == 0) continue;
        for (std::size_t j = 0; j < ccq::kGroup; j += T) {
            typename Vec::V sum[T];
#pragma GCC unroll 17
            for (int m = 0; m < P; ++m) {
                const std::uint8_t* const table = tables + (std::size_t)m * 256 * W;
                // A shift and a mask leave code * W. Loading each code by itself would cost more: loads are what is short.
                const std::uint64_t word = ccq::codes_in<std::uint64_t>(codes + (std::size_t)m * ccq::kGroup + j);
#pragma GCC unroll 8
                for (int t = 0; t < T; ++t) {
                    const std::uint64_t shifted = 8 * t < kShift ? word << (kShift - 8 * t) : word >> (8 * t - kShift);
                    const typename Vec::V entries = Vec::load(table + (shifted & kOffset));
                    sum[t] = m == 0 ? entries : Vec::add(sum[t], entries);
                }
            }
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
