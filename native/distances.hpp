// Look-up tables of queries.
#pragma once
#include <cstddef>

#include "kernels.hpp"

namespace ccq {

struct Distances {
    std::size_t m = 0, dim = 0;      // codebooks, and the dimension of codewords
    const float* blocks = nullptr;   // [m * 4][dim][64]: codewords by blocks of 64, 64-byte aligned
    const float* norms = nullptr;    // [256]: entries of the norm byte; null where there is none
    bool cosine = false;
    const Kernels* kernels = nullptr;
};

// For latent queries z [queries][dim]: look-ups [queries][m + 1][256], or [m] without norms, 64-byte aligned, and |z|^2 of each.
void distance_tables(const Distances& d, const float* z, std::size_t queries, float* planes, double* square_norms);

}  // namespace ccq
