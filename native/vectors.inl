// Keys of latent vectors that are stored in 16 bits a number, compiled for each level. Sums have eight lanes, so that every level
// adds in the same order.

// Compilers make the best of such vectors at each level, and much less of loops over their lanes or of longer ones.
using Four = double __attribute__((vector_size(32)));
constexpr std::size_t kLanes = 8;

inline double sum_of(const Four& low, const Four& high) {
    const Four both = low + high;
    return (both[0] + both[2]) + (both[1] + both[3]);
}

inline void load_four(const double* p, Four* to) { std::memcpy(to, p, sizeof(Four)); }

inline void load_four(const std::int16_t* p, Four* to) {
    std::int16_t __attribute__((vector_size(8))) narrow;
    std::memcpy(&narrow, p, sizeof narrow);
    const auto wide = __builtin_convertvector(narrow, std::int32_t __attribute__((vector_size(16))));
    *to = __builtin_convertvector(wide, Four);
}

template <bool Cosine>
void keys_of_vectors(const ccq::Vectors& v, const std::int64_t* rows, std::size_t n, const double* point, double length,
                     double* keys) {
    constexpr std::size_t kAhead = 8, kLine = 64 / sizeof(std::int16_t);
    const std::size_t dim = v.dim, full = dim / kLanes * kLanes;
    for (std::size_t i = 0; i < n; ++i) {
        if (i + kAhead < n) {  // rows lie anywhere in memory
            const std::int16_t* const next = v.numbers + (std::size_t)rows[i + kAhead] * dim;
            for (std::size_t d = 0; d < dim; d += kLine) __builtin_prefetch(next + d);
        }
        const std::int16_t* const z = v.numbers + (std::size_t)rows[i] * dim;
        const double scale = Cosine ? 1 : (double)v.scales[rows[i]];
        Four first[2] = {}, second[2] = {};
        const auto add = [&](const std::int16_t* numbers, const double* others) {
            for (std::size_t half = 0; half < 2; ++half) {
                Four x, y;
                load_four(numbers + 4 * half, &x);
                load_four(others + 4 * half, &y);
                if constexpr (Cosine) {  // whatever the scale
                    first[half] += x * y;
                    second[half] += x * x;
                } else {
                    x = scale * x - y;
                    first[half] += x * x;
                }
            }
        };
        for (std::size_t d = 0; d < full; d += kLanes) add(z + d, point + d);
        if (full < dim) {
            std::int16_t numbers[kLanes] = {};
            double others[kLanes] = {};
            std::copy_n(z + full, dim - full, numbers);
            std::copy_n(point + full, dim - full, others);
            add(numbers, others);
        }
        if constexpr (Cosine) {
            const double lengths = __builtin_sqrt(sum_of(second[0], second[1])) * length;
            keys[i] = lengths > 0 ? -sum_of(first[0], first[1]) / lengths : 0;
        } else {
            keys[i] = sum_of(first[0], first[1]);
        }
    }
}

inline void vector_keys(const ccq::Vectors& v, const std::int64_t* rows, std::size_t n, const double* point, bool cosine,
                        double* keys) {
    Four square[2] = {};
    for (std::size_t d = 0; d < v.dim; ++d) square[d % kLanes / 4][d % 4] += point[d] * point[d];
    const double length = __builtin_sqrt(sum_of(square[0], square[1]));
    (cosine ? keys_of_vectors<true> : keys_of_vectors<false>)(v, rows, n, point, length, keys);
}
