// The only file here that knows Python. Arguments are checked for shape and type, then the GIL is let go.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "aligned.hpp"
#include "dispatch.hpp"
#include "distances.hpp"
#include "encode.hpp"
#include "pool.hpp"
#include "scan.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Codes = nb::ndarray<const std::uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Mask = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Tables = nb::ndarray<const float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Offsets = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Labels = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Used = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

const ccq::Kernels* kernels_named(const std::string& name) {
    for (const ccq::Kernels* k : ccq::available_kernels())
        if (name == k->name) return k;
    throw std::invalid_argument("this CPU has no level " + name);
}

template <class T, class Delete>
nb::object owned(std::unique_ptr<T[], Delete> data, std::initializer_list<std::size_t> shape) {
    T* const raw = data.release();
    nb::capsule owner(raw, [](void* p) noexcept { Delete{}(static_cast<T*>(p)); });
    return nb::cast(nb::ndarray<nb::numpy, T>(raw, shape, owner));
}

// Code rows to search, checked once. The arrays are kept alive, not copied.
class Rows {
   public:
    Rows(nb::list segments, std::size_t planes, std::uint64_t live, std::optional<Used> used)
        : planes_(planes), live_(live), used_(std::move(used)) {
        if (planes < (std::size_t)ccq::kMinPlanes || planes > (std::size_t)ccq::kMaxPlanes)
            throw std::invalid_argument("planes: expected 2 to 17");
        if (used_ && (used_->shape(0) != planes || used_->shape(1) != ccq::kCodes))
            throw std::invalid_argument("used: expected shape (planes, 256)");
        std::uint64_t rows = 0;
        for (nb::handle item : segments) rows += add(item);
        live_ = std::min(live_, rows);
    }

    const std::vector<ccq::Segment>& segments() const { return segments_; }
    std::size_t planes() const { return planes_; }
    std::uint64_t live() const { return live_; }
    const std::uint8_t* used() const { return used_ ? used_->data() : nullptr; }

   private:
    std::size_t add(nb::handle item) {
        const auto parts = nb::cast<nb::tuple>(item);
        if (parts.size() != 5) throw std::invalid_argument("a segment is (codes, rows, mask, first, offsets)");
        const auto codes = nb::cast<Codes>(parts[0]);
        ccq::Segment s{nullptr, nb::cast<std::size_t>(parts[1]), nullptr, nb::cast<std::uint64_t>(parts[3]), nullptr};
        if (codes.shape(1) != planes_ || codes.shape(2) != ccq::kGroup || codes.shape(0) * ccq::kGroup < s.rows)
            throw std::invalid_argument("codes: expected shape (groups, planes, 64) with room for the rows");
        s.codes = codes_.emplace_back(codes).data();
        if (!parts[2].is_none()) {
            const auto mask = nb::cast<Mask>(parts[2]);
            if (mask.shape(0) * ccq::kGroup < s.rows) throw std::invalid_argument("mask: expected a word for each group");
            s.mask = masks_.emplace_back(mask).data();
        }
        if (!parts[4].is_none()) {
            const auto offsets = nb::cast<Offsets>(parts[4]);
            if (offsets.shape(0) < s.rows) throw std::invalid_argument("offsets: expected one for each row");
            s.offsets = offsets_.emplace_back(offsets).data();
        }
        segments_.push_back(s);
        return s.rows;
    }

    std::size_t planes_;
    std::uint64_t live_;
    std::optional<Used> used_;
    std::vector<ccq::Segment> segments_;
    std::vector<Codes> codes_;
    std::vector<Mask> masks_;
    std::vector<Offsets> offsets_;
};

nb::tuple search_rows(const Rows& rows, Tables tables, bool cosine, std::size_t k, int threads, const std::string& level,
                      bool plain, bool norms, std::optional<Labels> only) {
    if (tables.shape(1) != rows.planes() || tables.shape(2) != ccq::kCodes)
        throw std::invalid_argument("tables: expected shape (queries, planes, 256)");
    ccq::Scan scan;
    scan.segments = &rows.segments();
    scan.rows = rows.live();
    scan.planes = (int)rows.planes();
    scan.norms = norms;
    scan.cosine = cosine && norms;
    scan.tables = tables.data();
    scan.used = rows.used();
    scan.queries = tables.shape(0);
    scan.k = std::min<std::uint64_t>(k, scan.rows);
    scan.threads = std::max(threads, 1);
    scan.kernels = kernels_named(level);
    scan.plain = plain;
    if (only) {
        scan.only = only->data();
        scan.only_count = only->shape(0);
        scan.k = std::min<std::uint64_t>(scan.k, scan.only_count);
    }
    std::vector<std::vector<ccq::Candidate>> found;
    {
        nb::gil_scoped_release release;
        found = ccq::search(scan);
    }
    const std::size_t width = scan.k;
    auto labels = std::make_unique<std::int64_t[]>(scan.queries * width + 1);
    auto keys = std::make_unique<double[]>(scan.queries * width + 1);
    nb::list counts;
    for (std::size_t q = 0; q < scan.queries; ++q) {
        counts.append(found[q].size());
        for (std::size_t i = 0; i < found[q].size(); ++i) {
            labels[q * width + i] = (std::int64_t)found[q][i].label;
            keys[q * width + i] = found[q][i].key;
        }
    }
    return nb::make_tuple(owned(std::move(labels), {scan.queries, width}), owned(std::move(keys), {scan.queries, width}), counts);
}

using Floats = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Levels = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::tuple distance_tables(Tables blocks, std::optional<Levels> norms, Floats z, bool cosine, const std::string& level) {
    ccq::Distances d;
    d.m = blocks.shape(0) / 4;
    d.dim = blocks.shape(1);
    if (blocks.shape(0) % 4 != 0 || blocks.shape(2) != 64 || (std::uintptr_t)blocks.data() % 64 != 0)
        throw std::invalid_argument("blocks: expected shape (4 m, dim, 64), aligned");
    if ((norms && norms->shape(0) != ccq::kCodes) || z.shape(1) != d.dim)
        throw std::invalid_argument("expected norms of shape (256,) and z of shape (queries, dim)");
    d.blocks = blocks.data();
    d.norms = norms ? norms->data() : nullptr;
    d.cosine = cosine;
    d.kernels = kernels_named(level);
    const std::size_t queries = z.shape(0), planes = d.m + (norms ? 1 : 0);
    auto tables = ccq::aligned<float>(queries * planes * ccq::kCodes + 1);
    auto squares = std::make_unique<double[]>(queries + 1);
    {
        nb::gil_scoped_release release;
        ccq::distance_tables(d, z.data(), queries, tables.get(), squares.get());
    }
    return nb::make_tuple(owned(std::move(tables), {queries, planes, ccq::kCodes}), owned(std::move(squares), {queries}));
}

// What the byte tables alone pass: for tests of that, since a search is right whatever they let through.
nb::object filter_rows(Codes codes, nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> tables, int limit,
                       const std::string& level, bool norms) {
    const ccq::Kernels* const kernels = kernels_named(level);
    const std::size_t planes = codes.shape(1);
    if (planes < (std::size_t)ccq::kMinPlanes || planes > (std::size_t)ccq::kMaxPlanes || codes.shape(2) != ccq::kGroup)
        throw std::invalid_argument("codes: expected shape (groups, planes, 64) with 2 to 17 planes");
    if (tables.shape(0) != planes || tables.shape(1) != ccq::kCodes)
        throw std::invalid_argument("tables: expected shape (planes, 256)");
    if (limit < 0 || limit > 254) throw std::invalid_argument("limit: expected 0 to 254");
    const auto bytes = ccq::aligned<std::uint8_t>(ccq::byte_table_size((int)planes));
    std::copy_n(tables.data(), tables.size(), bytes.get());
    if (kernels->prepare) kernels->prepare(bytes.get(), (int)planes, norms);
    auto rows = std::make_unique<std::uint32_t[]>(codes.shape(0) * ccq::kGroup + 1);
    const std::size_t found = kernels->filter[planes](codes.data(), codes.shape(0), bytes.get(), (std::uint8_t)limit, nullptr,
                                                      norms, rows.get());
    return owned(std::move(rows), {found});
}

// The same for many queries: rows and queries of the hits of each kind of batch.
nb::list filter_hits(Codes codes, nb::ndarray<const std::uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu> tables,
                     nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> limits, const std::string& level) {
    const std::size_t planes = codes.shape(1), queries = tables.shape(0);
    if (planes < (std::size_t)ccq::kMinPlanes || planes > (std::size_t)ccq::kMaxPlanes || codes.shape(2) != ccq::kGroup)
        throw std::invalid_argument("codes: expected shape (groups, planes, 64) with 2 to 17 planes");
    if (tables.shape(1) != planes || tables.shape(2) != ccq::kCodes || limits.shape(0) != queries || queries > 16)
        throw std::invalid_argument("expected tables (queries, planes, 256) and limits (queries,) of at most 16 queries");
    nb::list out;
    for (const ccq::Batch& batch : kernels_named(level)->batches) {
        const auto width = (std::size_t)batch.width;
        const auto bytes = ccq::aligned<std::uint8_t>(planes * ccq::kCodes * width);
        std::fill_n(bytes.get(), planes * ccq::kCodes * width, std::uint8_t{255});
        for (std::size_t q = 0; q < queries; ++q)
            for (std::size_t i = 0; i < planes * ccq::kCodes; ++i)
                bytes[i * width + q] = tables.data()[q * planes * ccq::kCodes + i];
        alignas(64) std::uint8_t most[64] = {};
        std::copy_n(limits.data(), queries, most);
        const auto hits = ccq::aligned<ccq::Hit>(codes.shape(0) * ccq::kGroup * width + 1);
        const std::size_t found =
            batch.filter[planes](codes.data(), codes.shape(0), bytes.get(), most, nullptr, hits.get());
        auto pairs = std::make_unique<std::uint32_t[]>(2 * found + 1);
        for (std::size_t i = 0; i < found; ++i) pairs[2 * i] = hits[i].row, pairs[2 * i + 1] = hits[i].query;
        out.append(owned(std::move(pairs), {found, 2}));
    }
    return out;
}

using Numbers = nb::ndarray<const std::int16_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Point = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::object vector_keys(Numbers numbers, Levels scales, Labels rows, Point point, bool cosine, const std::string& level) {
    const ccq::Kernels* const kernels = kernels_named(level);
    const std::size_t n = rows.shape(0);
    if (scales.shape(0) != numbers.shape(0) || point.shape(0) != numbers.shape(1))
        throw std::invalid_argument("expected scales of shape (n,) and a point of shape (dim,) for numbers of shape (n, dim)");
    for (std::size_t i = 0; i < n; ++i)
        if (rows.data()[i] < 0 || (std::uint64_t)rows.data()[i] >= numbers.shape(0))
            throw std::invalid_argument("rows: expected numbers of rows that there are");
    auto keys = std::make_unique<double[]>(n + 1);
    {
        nb::gil_scoped_release release;
        kernels->vector_keys({numbers.data(), scales.data(), numbers.shape(1)}, rows.data(), n, point.data(), cosine, keys.get());
    }
    return owned(std::move(keys), {n});
}

std::uint64_t read_rows(const Rows& rows, const std::string& level) {
    const ccq::Kernels* const kernels = kernels_named(level);
    nb::gil_scoped_release release;
    std::uint64_t all = 0;
    for (const ccq::Segment& s : rows.segments())
        all += kernels->read(s.codes, (s.rows + ccq::kGroup - 1) / ccq::kGroup * rows.planes() * ccq::kGroup);
    return all;
}

using Unary = nb::ndarray<const float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Cross = nb::ndarray<const float, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
using CodeRows = nb::ndarray<std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void encode_rows(Unary unary, Cross cross, CodeRows codes, int beam, int sweeps, int rounds, bool start, int threads,
            const std::string& level) {
    const std::size_t n = codes.shape(0), m = codes.shape(1), k = ccq::kCodes;
    if (m < 1 || m > ccq::kMaxPlanes - 1) throw std::invalid_argument("codes: expected shape (n, 1 to 16)");
    if (unary.shape(0) != n || unary.shape(1) != m || unary.shape(2) != k)
        throw std::invalid_argument("unary: expected shape (n, m, 256)");
    if (cross.shape(0) != m || cross.shape(1) != k || cross.shape(2) != m || cross.shape(3) != k)
        throw std::invalid_argument("cross: expected shape (m, 256, m, 256)");
    if ((std::uintptr_t)unary.data() % 64 || (std::uintptr_t)cross.data() % 64)
        throw std::invalid_argument("unary, cross: expected to start at a multiple of 64 bytes");
    if (beam < 1 || beam > 1024) throw std::invalid_argument("beam: expected 1 to 1024");
    ccq::Encoding e;
    e.m = (int)m;
    e.unary = unary.data();
    e.cross = cross.data();
    e.beam = beam;
    e.sweeps = sweeps;
    e.rounds = rounds;
    e.start = start;
    e.kernels = kernels_named(level);
    const std::size_t parts = std::max<std::size_t>(1, std::min((std::size_t)std::max(threads, 1), n / 64));
    nb::gil_scoped_release release;
    ccq::run_parallel(parts, [&](std::size_t i) { ccq::encode(e, n * i / parts, n * (i + 1) / parts, codes.data()); });
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "Compiled kernels: the AQD scan and the encoder. Use them through ccq_core.";
    m.def("levels", [] {
        std::vector<std::string> names;
        for (const ccq::Kernels* k : ccq::available_kernels()) names.push_back(k->name);
        return names;
    });
    nb::class_<Rows>(m, "Rows").def(nb::init<nb::list, std::size_t, std::uint64_t, std::optional<Used>>(), "segments"_a,
                                    "planes"_a, "live"_a, "used"_a.none());
    m.def("search", &search_rows, "rows"_a, "tables"_a, "cosine"_a, "k"_a, "threads"_a, "level"_a, "plain"_a = false,
          "norms"_a = true, "only"_a = nb::none());
    m.def("encode", &encode_rows, "unary"_a, "cross"_a, "codes"_a, "beam"_a, "sweeps"_a, "rounds"_a, "start"_a, "threads"_a,
          "level"_a);
    m.def("distance_tables", &distance_tables, "blocks"_a, "norms"_a.none(), "z"_a, "cosine"_a, "level"_a);
    m.def("filter_rows", &filter_rows, "codes"_a, "tables"_a, "limit"_a, "level"_a, "norms"_a = true);
    m.def("filter_hits", &filter_hits, "codes"_a, "tables"_a, "limits"_a, "level"_a);
    m.def("vector_keys", &vector_keys, "numbers"_a, "scales"_a, "rows"_a, "point"_a, "cosine"_a, "level"_a);
    m.def("read", &read_rows, "rows"_a, "level"_a);
}
