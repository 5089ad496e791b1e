// Fill a level's tables with one instantiation per number of planes.
template <int P>
std::size_t filter(const std::uint8_t* codes, std::size_t groups, const std::uint8_t* tables, std::uint8_t limit,
                   const std::uint64_t* mask, bool norms, std::uint32_t* out);  // each level has its own

template <int... I>
constexpr void fill_filters(ccq::Filter* out, std::integer_sequence<int, I...>) {
    ((out[ccq::kMinPlanes + I] = filter<ccq::kMinPlanes + I>), ...);
}

template <class Vec, int... I>
constexpr ccq::Batch make_batch(int from, std::integer_sequence<int, I...>) {
    ccq::Batch batch{Vec::width, from, {}};
    ((batch.filter[ccq::kMinPlanes + I] = batch_filter<Vec, ccq::kMinPlanes + I>), ...);
    return batch;
}

// Narrow and Wide: vectors of the two kinds of batches, which pay from so many queries.
template <class Narrow, class Wide, class CostsOf>
constexpr ccq::Kernels make_kernels(const char* name, ccq::Prepare prepare, int narrow_from, int wide_from, int rows_worth) {
    constexpr auto planes = std::make_integer_sequence<int, ccq::kMaxPlanes - ccq::kMinPlanes + 1>{};
    ccq::Kernels k{name,
                   prepare,
                   {},
                   {make_batch<Narrow>(narrow_from, planes), make_batch<Wide>(wide_from, planes)},
                   rows_worth,
                   CostsOf::best,
                   CostsOf::exchange,
                   CostsOf::sums,
                   CostsOf::costs_at_most,
                   CostsOf::products,
                   vector_keys,
                   read_all<Wide>};
    fill_filters(k.filter, planes);
    return k;
}
