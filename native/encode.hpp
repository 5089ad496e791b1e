// Codes of vectors under an additive quantizer.
//
// With y = sum_m C_m[b_m]:  |z - y|^2 = |z|^2 + sum_m unary_m[b_m] + sum_{l < m} cross_{l,m}[b_l, b_m], where
// unary_m[j] = |C_m[j]|^2 - 2 <z, C_m[j]> comes from one matrix product, and cross_{l,m}[i, j] = 2 <C_l[i], C_m[j]>.
// Sums are float32 in one order, so that every level gives the same codes.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels.hpp"

namespace ccq {

struct Encoding {
    int m = 0;                       // codebooks, 1 to 16
    const float* unary = nullptr;    // [n][m][256], at a cache line as is
    const float* cross = nullptr;    // [m][256][m][256]: by l, code b_l, m, code b_m; zero where l = m
    int beam = 1;                    // partial codes kept from codebook to codebook; 1 is greedy
    int sweeps = 0;                  // rounds of iterated conditional modes (ICM) afterwards
    int rounds = 0;                  // then perturb a code, descend by ICM, keep what is better; so often
    bool start = false;              // descend from the codes given instead of the beam's
    const Kernels* kernels = nullptr;
};

// Codes [n][m] of the rows begin .. end - 1, in place.
void encode(const Encoding& encoding, std::size_t begin, std::size_t end, std::uint8_t* codes);

}  // namespace ccq
