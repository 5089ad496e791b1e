// Write the row numbers of the set bits of `found` and return the place behind them.
inline std::uint32_t* emit(std::uint64_t found, std::uint32_t first, std::uint32_t* out) {
    for (; found; found &= found - 1) *out++ = first + (std::uint32_t)__builtin_ctzll(found);
    return out;
}
