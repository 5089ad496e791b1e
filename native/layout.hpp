// How code rows lie in memory, and what every file here agrees on.
//
// A row is P bytes: M codes and the norm byte, one per *plane*. Rows lie in groups of 64: [group][plane][64], so that one
// 64-byte load gives the same byte of 64 rows. A segment is a run of groups in one allocation. Rows are named by labels, which
// ascend through all segments.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ccq {

constexpr std::size_t kGroup = 64;    // rows in a group
constexpr std::size_t kCodes = 256;   // codewords in a codebook, levels of the norm byte
constexpr int kMinPlanes = 2;         // one codebook and the norm byte
constexpr int kMaxPlanes = 17;        // sixteen codebooks and the norm byte

struct Segment {
    const std::uint8_t* codes;     // [ceil(rows / 64)][planes][64]
    std::size_t rows;              // rows that count; bytes behind them may change while we read
    const std::uint64_t* mask;     // one bit per row, set: the row takes part; null: all do
    std::uint64_t first;           // label of row 0
    const std::uint32_t* offsets;  // labels less `first`, ascending; null: labels are consecutive

    std::uint64_t label(std::size_t row) const { return first + (offsets ? offsets[row] : row); }
};

inline const std::uint8_t* row_bytes(const Segment& s, int planes, std::size_t row) {
    return s.codes + (row / kGroup) * (std::size_t)planes * kGroup + row % kGroup;
}

// Codes of some consecutive rows in one plane as one number, the first in the lowest byte.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "codes are taken apart as on x86 and ARM");
template <class Word>
Word codes_in(const std::uint8_t* codes) {
    Word word;
    std::memcpy(&word, codes, sizeof word);
    return word;
}

}  // namespace ccq
