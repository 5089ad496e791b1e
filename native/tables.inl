// Fill a level's table with one instantiation per number of planes.
template <template <int> class FilterOf, template <int> class BatchOf, int... I>
constexpr ccq::Kernels fill_kernels(ccq::Kernels k, std::integer_sequence<int, I...>) {
    ((k.filter[ccq::kMinPlanes + I] = FilterOf<ccq::kMinPlanes + I>::value), ...);
    ((k.batch[ccq::kMinPlanes + I] = BatchOf<ccq::kMinPlanes + I>::value), ...);
    return k;
}

template <template <int> class FilterOf, template <int> class BatchOf, class CostsOf>
constexpr ccq::Kernels make_kernels(const char* name, int width, int from, ccq::Read read) {
    return fill_kernels<FilterOf, BatchOf>(
        ccq::Kernels{name, {}, width, from, {}, CostsOf::best, CostsOf::exchange, CostsOf::sums, CostsOf::costs_at_most, read},
        std::make_integer_sequence<int, ccq::kMaxPlanes - ccq::kMinPlanes + 1>{});
}
