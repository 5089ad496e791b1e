#include "distances.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace ccq {

void distance_tables(const Distances& d, const float* z, std::size_t queries, float* planes, double* square_norms) {
    std::vector<float> left(d.dim);
    for (std::size_t q = 0; q < queries; ++q, z += d.dim, planes += (d.m + 1) * kCodes) {
        double square = 0;
        for (std::size_t i = 0; i < d.dim; ++i) square += (double)z[i] * z[i];
        const double length = square > 0 ? std::sqrt(square) : 1;
        for (std::size_t i = 0; i < d.dim; ++i) left[i] = d.cosine ? (float)(z[i] / -length) : -2.f * z[i];
        d.kernels->products(left.data(), d.dim, d.blocks, d.m * kCodes / 64, planes);
        std::copy_n(d.norms, kCodes, planes + d.m * kCodes);
        square_norms[q] = square;
    }
}

}  // namespace ccq
