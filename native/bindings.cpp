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

#include "dispatch.hpp"
#include "encode.hpp"
#include "pool.hpp"
#include "scan.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Codes = nb::ndarray<const std::uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Mask = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Tables = nb::ndarray<const float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Used = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

const ccq::Kernels* kernels_named(const std::string& name) {
    for (const ccq::Kernels* k : ccq::available_kernels())
        if (name == k->name) return k;
    throw std::invalid_argument("this CPU has no level " + name);
}

template <class T>
nb::object owned(std::unique_ptr<T[]> data, std::initializer_list<std::size_t> shape) {
    T* const raw = data.release();
    nb::capsule owner(raw, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, T>(raw, shape, owner));
}

ccq::Segment segment_of(nb::handle item, int planes, std::uint64_t* first) {
    const auto parts = nb::cast<nb::tuple>(item);
    if (parts.size() != 3) throw std::invalid_argument("a segment is (codes, rows, mask)");
    const auto codes = nb::cast<Codes>(parts[0]);
    const auto rows = nb::cast<std::size_t>(parts[1]);
    if ((int)codes.shape(1) != planes || codes.shape(2) != ccq::kGroup || codes.shape(0) * ccq::kGroup < rows)
        throw std::invalid_argument("codes: expected shape (groups, planes, 64) with room for the rows");
    const std::uint64_t* mask = nullptr;
    if (!parts[2].is_none()) {
        const auto bits = nb::cast<Mask>(parts[2]);
        if (bits.shape(0) * ccq::kGroup < rows) throw std::invalid_argument("mask: expected a word for each group");
        mask = bits.data();
    }
    const ccq::Segment segment{codes.data(), rows, mask, *first};
    *first += rows;
    return segment;
}

nb::tuple search_rows(nb::list segments, Tables tables, std::optional<Used> used, bool cosine, std::size_t k, std::uint64_t rows,
                 int threads, const std::string& level, bool plain) {
    ccq::Scan scan;
    scan.planes = (int)tables.shape(1);
    if (scan.planes < ccq::kMinPlanes || scan.planes > ccq::kMaxPlanes || tables.shape(2) != ccq::kCodes)
        throw std::invalid_argument("tables: expected shape (queries, 2 to 17, 256)");
    if (used && (used->shape(0) != tables.shape(1) || used->shape(1) != ccq::kCodes))
        throw std::invalid_argument("used: expected shape (planes, 256)");
    std::uint64_t first = 0;
    for (nb::handle item : segments) scan.segments.push_back(segment_of(item, scan.planes, &first));
    scan.rows = std::min(rows, first);
    scan.cosine = cosine;
    scan.tables = tables.data();
    scan.used = used ? used->data() : nullptr;
    scan.queries = tables.shape(0);
    scan.k = std::min<std::uint64_t>(k, scan.rows);
    scan.threads = std::max(threads, 1);
    scan.kernels = kernels_named(level);
    scan.plain = plain;
    std::vector<std::vector<ccq::Candidate>> found;
    {
        nb::gil_scoped_release release;
        found = ccq::search(scan);
    }
    const std::size_t width = scan.k;
    auto positions = std::make_unique<std::int64_t[]>(scan.queries * width + 1);
    auto keys = std::make_unique<double[]>(scan.queries * width + 1);
    auto counts = std::make_unique<std::int64_t[]>(scan.queries + 1);
    for (std::size_t q = 0; q < scan.queries; ++q) {
        counts[q] = (std::int64_t)found[q].size();
        for (std::size_t i = 0; i < found[q].size(); ++i) {
            positions[q * width + i] = (std::int64_t)found[q][i].position;
            keys[q * width + i] = found[q][i].key;
        }
    }
    return nb::make_tuple(owned(std::move(positions), {scan.queries, width}), owned(std::move(keys), {scan.queries, width}),
                          owned(std::move(counts), {scan.queries}));
}

using Unary = nb::ndarray<const float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Cross = nb::ndarray<const float, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
using CodeRows = nb::ndarray<std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<const std::uint8_t, nb::c_contig, nb::device::cpu>;

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

std::uint64_t read_bytes(Bytes bytes, const std::string& level) {
    const ccq::Kernels* const kernels = kernels_named(level);
    nb::gil_scoped_release release;
    return kernels->read(bytes.data(), bytes.size());
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "Compiled kernels: the AQD scan and the encoder. Use them through ccq_core.";
    m.def("levels", [] {
        std::vector<std::string> names;
        for (const ccq::Kernels* k : ccq::available_kernels()) names.push_back(k->name);
        return names;
    });
    m.def("search", &search_rows, "segments"_a, "tables"_a, "used"_a.none(), "cosine"_a, "k"_a, "rows"_a, "threads"_a, "level"_a,
          "plain"_a = false);
    m.def("encode", &encode_rows, "unary"_a, "cross"_a, "codes"_a, "beam"_a, "sweeps"_a, "rounds"_a, "start"_a, "threads"_a,
          "level"_a);
    m.def("read", &read_bytes, "data"_a, "level"_a);
}
