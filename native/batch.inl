// The batch filter, written once over a vector type. Included by each level inside its anonymous namespace.
//
// Vec must have: width, V, all(byte), load(p), less(a, b) saturating at 0, larger(a, b), middle(a, b) rounded up,
// at_least(a, b) -> one bit per byte.
// One vector load and one subtraction serve `width` queries for one code of one row. What is left of 255 is kept instead of
// the sum, since vectors average with rounding up alone: so rounding is in favour of the row.

constexpr std::size_t kBlock = 8;  // rows in flight: their codes of a plane are one word

// For `kBlock` rows what is left of 255 when the entries of a part of the planes, begin up to end, were taken off.
template <class Vec, int Begin, int End>
inline void left_of_part(const std::uint8_t* codes, const std::uint8_t* tables, typename Vec::V* left) {
    constexpr std::size_t W = Vec::width;
    constexpr int kShift = __builtin_ctz(W);
    constexpr std::uint64_t kOffset = std::uint64_t{255} << kShift;
#pragma GCC unroll 17
    for (int m = Begin; m < End; ++m) {
        const std::uint8_t* const table = tables + (std::size_t)m * 256 * W;
        // A shift and a mask leave code * W. Loading each code by itself would cost more: loads are what is short.
        const std::uint64_t word = ccq::codes_in<std::uint64_t>(codes + (std::size_t)m * ccq::kGroup);
#pragma GCC unroll 8
        for (int t = 0; t < (int)kBlock; ++t) {
            const std::uint64_t shifted = 8 * t < kShift ? word << (kShift - 8 * t) : word >> (8 * t - kShift);
            const typename Vec::V entries = Vec::load(table + (shifted & kOffset));
            left[t] = Vec::less(m == Begin ? Vec::all(255) : left[t], entries);
        }
    }
}

// The same for some parts of the planes, averaged by twos.
template <class Vec, int P, int First, int Parts>
inline void left_of_parts(const std::uint8_t* codes, const std::uint8_t* tables, typename Vec::V* left) {
    if constexpr (Parts == 1) {
        left_of_part<Vec, P * First / ccq::parts_of(P), P*(First + 1) / ccq::parts_of(P)>(codes, tables, left);
    } else {
        typename Vec::V other[kBlock];
        left_of_parts<Vec, P, First, Parts / 2>(codes, tables, left);
        left_of_parts<Vec, P, First + Parts / 2, Parts / 2>(codes, tables, other);
#pragma GCC unroll 8
        for (std::size_t t = 0; t < kBlock; ++t) left[t] = Vec::middle(left[t], other[t]);
    }
}

// Hits of one row. Most often there is one or none: the first is written whether it is there or not, since a branch that
// nothing foretells would cost more.
inline ccq::Hit* emit_hits(std::uint64_t found, std::uint32_t row, ccq::Hit* out) {
    constexpr std::uint64_t kLast = std::uint64_t{1} << 63;
    *out = {row, (std::uint32_t)__builtin_ctzll(found | kLast)};
    out += found != 0;
    for (found &= found - 1; found; found &= found - 1) *out++ = {row, (std::uint32_t)__builtin_ctzll(found)};
    return out;
}

template <class Vec, int P>
std::size_t batch_filter(const std::uint8_t* codes, std::size_t groups, const std::uint8_t* tables,
                         const std::uint8_t* limits, const std::uint64_t* mask, ccq::Hit* out) {
    const typename Vec::V wanted = Vec::less(Vec::all(255), Vec::load(limits));
    ccq::Hit* const begin = out;
    for (std::size_t g = 0; g < groups; ++g, codes += P * ccq::kGroup) {
        const std::uint64_t live = mask ? mask[g] : ~std::uint64_t{0};
        if (live == 0) continue;
        for (std::size_t j = 0; j < ccq::kGroup; j += kBlock) {
            typename Vec::V left[kBlock];
            left_of_parts<Vec, P, 0, ccq::parts_of(P)>(codes + j, tables, left);
            typename Vec::V most = left[0];
#pragma GCC unroll 8
            for (std::size_t t = 1; t < kBlock; ++t) most = Vec::larger(most, left[t]);
            if (__builtin_expect(Vec::at_least(most, wanted) != 0, 0)) {
                std::uint64_t found[kBlock];
#pragma GCC unroll 8
                for (std::size_t t = 0; t < kBlock; ++t) found[t] = Vec::at_least(left[t], wanted);
                for (std::size_t t = 0; t < kBlock; ++t)
                    out = emit_hits(live >> (j + t) & 1 ? found[t] : 0, (std::uint32_t)(g * ccq::kGroup + j + t), out);
            }
        }
    }
    return (std::size_t)(out - begin);
}
