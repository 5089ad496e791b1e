// A plain read of all bytes: what any scan of them takes at the least. The result only keeps the compiler from leaving it out.
template <class Vec>
std::uint64_t read_all(const std::uint8_t* bytes, std::size_t n) {
    constexpr std::size_t W = Vec::width;
    typename Vec::V left[4] = {Vec::all(255), Vec::all(255), Vec::all(255), Vec::all(255)};
    std::size_t i = 0;
    for (; i + 4 * W <= n; i += 4 * W) {
#pragma GCC unroll 4
        for (std::size_t j = 0; j < 4; ++j) left[j] = Vec::less(left[j], Vec::load(bytes + i + j * W));
    }
    return Vec::at_least(Vec::larger(Vec::larger(left[0], left[1]), Vec::larger(left[2], left[3])), Vec::all(255));
}
