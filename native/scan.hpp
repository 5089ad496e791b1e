// Exact search over segments of code rows.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels.hpp"
#include "layout.hpp"
#include "topk.hpp"

namespace ccq {

struct Scan {
    const std::vector<Segment>* segments = nullptr;  // labels ascend through them
    std::uint64_t rows = 0;              // rows that take part, over all segments
    int planes = 0;
    bool norms = true;                   // the last plane is the norm byte
    bool cosine = false;                 // which then is a factor
    const float* tables = nullptr;       // [queries][planes][256], for cosine with negated inner products
    const std::uint8_t* used = nullptr;  // [planes][256]: codes that may occur; null: any
    std::size_t queries = 0;
    std::size_t k = 0;
    int threads = 1;
    const Kernels* kernels = nullptr;
    const std::int64_t* only = nullptr;  // ascending labels of the few rows that take part; null: all that the segments say
    std::size_t only_count = 0;
    bool plain = false;                  // look every row up in the exact tables: for comparison
};

// The k best rows of each query, best first; fewer only where fewer take part.
std::vector<std::vector<Candidate>> search(const Scan& scan);

}  // namespace ccq
