#include "distances.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace ccq {

void distance_tables(const Distances& d, const float* z, std::size_t queries, float* planes, double* square_norms) {
    const std::size_t size = (d.m + (d.norms ? 1 : 0)) * kCodes;
    std::vector<float> left(queries * d.dim);
    for (std::size_t q = 0; q < queries; ++q) {
        const float* const from = z + q * d.dim;
        double square = 0;
        for (std::size_t i = 0; i < d.dim; ++i) square += (double)from[i] * from[i];
        const double length = square > 0 ? std::sqrt(square) : 1;
        for (std::size_t i = 0; i < d.dim; ++i) left[q * d.dim + i] = d.cosine ? (float)(from[i] / -length) : -2.f * from[i];
        if (d.norms) std::copy_n(d.norms, kCodes, planes + q * size + d.m * kCodes);
        square_norms[q] = square;
    }
    // Codewords of a block stay near while all queries meet them.
    for (std::size_t b = 0; b < d.m * kCodes / 64; ++b)
        for (std::size_t q = 0; q < queries; ++q)
            d.kernels->products(&left[q * d.dim], d.dim, d.blocks + b * d.dim * 64, planes + q * size + b * 64);
}

}  // namespace ccq
