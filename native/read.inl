// A plain read of all bytes: what any scan of them takes at the least. The result only keeps the compiler from leaving it out.
template <class Vec>
std::uint64_t read_all(const std::uint8_t* bytes, std::size_t n) {
    constexpr std::size_t W = Vec::width;
    alignas(64) static constexpr std::uint8_t kZero[W] = {};
    typename Vec::V sum[4] = {Vec::load(kZero), Vec::load(kZero), Vec::load(kZero), Vec::load(kZero)};
    std::size_t i = 0;
    for (; i + 4 * W <= n; i += 4 * W) {
#pragma GCC unroll 4
        for (std::size_t j = 0; j < 4; ++j) sum[j] = Vec::add(sum[j], Vec::load(bytes + i + j * W));
    }
    const auto both = Vec::add(Vec::add(sum[0], sum[1]), Vec::add(sum[2], sum[3]));
    return Vec::at_most(both, Vec::load(kZero));
}
