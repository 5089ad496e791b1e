// A plain read of all bytes, eight words at a time.
inline std::uint64_t read_all(const std::uint8_t* bytes, std::size_t n) {
    std::uint64_t sum[32] = {};
    std::size_t i = 0;
    for (; i + sizeof sum <= n; i += sizeof sum) {
        std::uint64_t word[32];
        __builtin_memcpy(word, bytes + i, sizeof word);
        for (int j = 0; j < 32; ++j) sum[j] += word[j];
    }
    std::uint64_t total = 0;
    for (int j = 0; j < 32; ++j) total += sum[j];
    for (; i < n; ++i) total += bytes[i];
    return total;
}
