// Keys of latent vectors that are stored in 16 bits a number: plain C++, compiled for each level. Sums have eight lanes, so
// that every level adds in the same order.

inline double sum_of(const double* lane) {
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

template <bool Cosine>
void keys_of_vectors(const ccq::Vectors& v, const std::int64_t* rows, std::size_t n, const double* point, double length,
                     double* keys) {
    constexpr std::size_t kLanes = 8, kAhead = 4, kLine = 64 / sizeof(std::int16_t);
    const std::size_t dim = v.dim;
    for (std::size_t i = 0; i < n; ++i) {
        if (i + kAhead < n) {  // rows lie anywhere in memory
            const std::int16_t* const next = v.numbers + (std::size_t)rows[i + kAhead] * dim;
            for (std::size_t d = 0; d < dim; d += kLine) __builtin_prefetch(next + d);
        }
        const std::int16_t* const z = v.numbers + (std::size_t)rows[i] * dim;
        const double scale = Cosine ? 1 : (double)v.scales[rows[i]];
        double first[kLanes] = {}, second[kLanes] = {};
        const auto add = [&](std::size_t d, std::size_t lane) {
            if constexpr (Cosine) {  // whatever the scale
                const double x = z[d];
                first[lane] += x * point[d];
                second[lane] += x * x;
            } else {
                const double x = scale * z[d] - point[d];
                first[lane] += x * x;
            }
        };
        std::size_t d = 0;
        for (; d + kLanes <= dim; d += kLanes)
            for (std::size_t lane = 0; lane < kLanes; ++lane) add(d + lane, lane);
        for (std::size_t lane = 0; d < dim; ++d, ++lane) add(d, lane);
        if constexpr (Cosine) {
            const double lengths = __builtin_sqrt(sum_of(second)) * length;
            keys[i] = lengths > 0 ? -sum_of(first) / lengths : 0;
        } else {
            keys[i] = sum_of(first);
        }
    }
}

inline void vector_keys(const ccq::Vectors& v, const std::int64_t* rows, std::size_t n, const double* point, bool cosine,
                        double* keys) {
    double square[8] = {};
    for (std::size_t d = 0; d < v.dim; ++d) square[d % 8] += point[d] * point[d];
    (cosine ? keys_of_vectors<true> : keys_of_vectors<false>)(v, rows, n, point, __builtin_sqrt(sum_of(square)), keys);
}
