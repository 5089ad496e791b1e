// The inner loops that exist once per instruction-set level, and the table through which they are called.
#pragma once
#include <cstddef>
#include <cstdint>

#include "layout.hpp"

namespace ccq {

// Byte tables of one query, 64-byte aligned: [P][256], and behind them kRoom bytes per plane for what a level derives.
constexpr std::size_t kRoom = 128;
constexpr std::size_t byte_table_size(int planes) { return (std::size_t)planes * (kCodes + kRoom); }

// Derive it. To be called when tables have changed and before they are used. `norms`: the last plane is the norm byte, whose
// neighbouring levels have entries that are alike; if not, it is a codebook like the others.
using Prepare = void (*)(std::uint8_t* tables, int planes, bool norms);

// One query. Emits all rows of `groups` full groups whose saturating sum of table bytes is at most `limit` (< 255), and
// maybe some for which it is more.
//   codes   [groups][P][64]
//   mask    one word per group, or null; rows whose bit is clear are never emitted
//   norms   as for `Prepare`
//   out     room for 64 * groups row numbers
// Returns how many were emitted, in ascending order.
using Filter = std::size_t (*)(const std::uint8_t* codes, std::size_t groups, const std::uint8_t* tables, std::uint8_t limit,
                               const std::uint64_t* mask, bool norms, std::uint32_t* out);

// Many planes lose more by flooring their entries than few. Parts that saturate each by itself have room for finer entries: of
// sixteen codebooks a third to a half as many rows are then left to be looked up exactly. With fewer planes parts differ too
// much, and saturate.
constexpr int parts_of(int planes) { return planes < 12 ? 1 : 4; }

struct Hit {
    std::uint32_t row;
    std::uint32_t query;
};

// Many queries: `width` of them at once, with tables interleaved as [P][256][width] and one limit per query. The planes are
// summed in parts (see `parts_of`), plane m in part m * parts / P, each part saturating, and parts are averaged by twos, each
// average rounded down. Emits exactly the rows and queries for which what comes out is at most the limit.
//   out     room for 64 * groups * width hits
using BatchFilter = std::size_t (*)(const std::uint8_t* codes, std::size_t groups, const std::uint8_t* tables,
                                    const std::uint8_t* limits, const std::uint64_t* mask, Hit* out);

// The encoder's, over float32 arrays that are 64-byte aligned.

// The first of the 256 codes with the least cost, or `code` where none costs less than that.
using Best = int (*)(const float* cost, int code);

// out[i] = sums[i] - less[i] + more[i], in this order; n is a multiple of 64, and `out` may be `sums`.
using Exchange = void (*)(const float* sums, const float* less, const float* more, float* out, std::size_t n);

// out[j] = base[j] + rows[0][j] + rows[1][j] + ... + offset for 256 j, in this order. Each of 64 least[i], where wanted, is
// lowered to the least of out[i], out[64 + i], out[128 + i] and out[192 + i].
using Sums = void (*)(const float* base, const float* const* rows, int count, float offset, float* out, float* least);

// The i with cost[i] <= bound, ascending; n is a multiple of 64. Returns how many.
using AtMost = std::size_t (*)(const float* cost, std::size_t n, float bound, std::uint32_t* out);

// Inner products of a vector with 64 others, which lie as [dim][64]; each is summed in order of dimension. `block` and `out`
// are 64-byte aligned.
using Products = void (*)(const float* z, std::size_t dim, const float* block, float* out);

// Read every byte and do next to nothing with it: what any scan of them must take.
using Read = std::uint64_t (*)(const std::uint8_t* bytes, std::size_t n);

// Latent vectors [n][dim], a number being a part of its row's scale.
struct Vectors {
    const std::int16_t* numbers;
    const float* scales;
    std::size_t dim;
};

// Keys of some of them for a query's: squared Euclidean distances or negated cosines, 0 where a vector has no direction.
using VectorKeys = void (*)(const Vectors& vectors, const std::int64_t* rows, std::size_t n, const double* point, bool cosine,
                            double* keys);

struct Batch {
    int width;                           // 16, 32 or 64
    int from;                            // the number of queries from which it pays
    BatchFilter filter[kMaxPlanes + 1];  // by number of planes; null below kMinPlanes
};

struct Kernels {
    const char* name;
    Prepare prepare;                     // null where there is nothing to derive
    Filter filter[kMaxPlanes + 1];       // by number of planes; null below kMinPlanes
    Batch batches[2];                    // the narrower first
    int rows_worth;                      // so many rows take as long to look up exactly as a group by the filter
    Best best;
    Exchange exchange;
    Sums sums;
    AtMost at_most;
    Products products;
    VectorKeys vector_keys;
    Read read;
};

extern const Kernels kPortable;
#if defined(__x86_64__)
extern const Kernels kAvx2;
extern const Kernels kAvx512Vbmi;
#endif
#if defined(__aarch64__)
extern const Kernels kNeon;
#endif

}  // namespace ccq
