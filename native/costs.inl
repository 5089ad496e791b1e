// The loops over floats, of the encoder and of distance tables, for a type F of vectors:
//   width, V, load, store, add, sub, mul, smaller (elementwise), least (of all elements), at_most (a bit per element)
template <class F>
struct Costs {
    using V = typename F::V;
    static constexpr int kBlock = 64;
    static constexpr int kVectors = kBlock / F::width;

    static std::uint64_t at_most(const float* cost, V bound) {
        std::uint64_t found = 0;
#pragma GCC unroll 16
        for (int u = 0; u < kVectors; ++u)
            found |= (std::uint64_t)F::at_most(F::load(cost + F::width * u), bound) << (F::width * u);
        return found;
    }

    static int best(const float* cost, int code) {
        V least[4];
#pragma GCC unroll 4
        for (int u = 0; u < 4; ++u) least[u] = F::load(cost + F::width * u);
#pragma GCC unroll 4
        for (int i = 4 * F::width; i < (int)ccq::kCodes; i += 4 * F::width)
#pragma GCC unroll 4
            for (int u = 0; u < 4; ++u) least[u] = F::smaller(least[u], F::load(cost + i + F::width * u));
        const float value = F::least(F::smaller(F::smaller(least[0], least[1]), F::smaller(least[2], least[3])));
        if (!(value < cost[code])) return code;
        const V all = F::all(value);
        for (int i = 0; i < (int)ccq::kCodes; i += kBlock)
            if (const std::uint64_t found = at_most(cost + i, all)) return i + __builtin_ctzll(found);
        return code;
    }

    static void exchange(const float* sums, const float* less, const float* more, float* out, std::size_t n) {
        for (std::size_t i = 0; i < n; i += kBlock)
#pragma GCC unroll 16
            for (int u = 0; u < kVectors; ++u) {
                const std::size_t at = i + (std::size_t)(F::width * u);
                F::store(out + at, F::add(F::sub(F::load(sums + at), F::load(less + at)), F::load(more + at)));
            }
    }

    static void sums(const float* base, const float* const* rows, int count, float offset, float* out, float* least) {
        const V add = F::all(offset);
        for (int i = 0; i < (int)ccq::kCodes; i += kBlock) {
            V sum[kVectors];
#pragma GCC unroll 16
            for (int u = 0; u < kVectors; ++u) sum[u] = F::load(base + i + F::width * u);
            for (int t = 0; t < count; ++t) {
                const float* const row = rows[t] + i;
#pragma GCC unroll 16
                for (int u = 0; u < kVectors; ++u) sum[u] = F::add(sum[u], F::load(row + F::width * u));
            }
#pragma GCC unroll 16
            for (int u = 0; u < kVectors; ++u) {
                const V total = F::add(sum[u], add);
                F::store(out + i + F::width * u, total);
                if (least) F::store(least + F::width * u, F::smaller(F::load(least + F::width * u), total));
            }
        }
    }

    static std::size_t costs_at_most(const float* cost, std::size_t n, float bound, std::uint32_t* out) {
        const V most = F::all(bound);
        std::uint32_t* const begin = out;
        for (std::size_t i = 0; i < n; i += kBlock) out = emit(at_most(cost + i, most), (std::uint32_t)i, out);
        return (std::size_t)(out - begin);
    }

    static void products(const float* z, std::size_t dim, const float* block, float* out) {
        V sum[kVectors];
#pragma GCC unroll 16
        for (int u = 0; u < kVectors; ++u) sum[u] = F::all(0.f);
        for (std::size_t d = 0; d < dim; ++d, block += kBlock) {
            const V factor = F::all(z[d]);
#pragma GCC unroll 16
            for (int u = 0; u < kVectors; ++u) sum[u] = F::add(sum[u], F::mul(factor, F::load(block + F::width * u)));
        }
#pragma GCC unroll 16
        for (int u = 0; u < kVectors; ++u) F::store(out + F::width * u, sum[u]);
    }
};
