import numpy as np
import pytest

from ccq_core import CCQ
from ccq_core import model as model_module
from ccq_core.batches import Chain, NpyBatches, ParquetBatches
from ccq_core.errors import FeatureError, InvalidInputError, UnknownModalityError
from ccq_core.source import Streamed, open_source, sample
from tests.core.conftest import make_pairs


def data(n=600, missing=0.3):
    x = make_pairs(n, seed=4, dims=(12, 8))
    rng = np.random.default_rng(1)
    absent = rng.random((n, 2)) < missing
    absent[absent.all(axis=1), 0] = False
    for i, array in enumerate(x.values()):
        array[absent[:, i]] = np.nan
    return x


class Slices:
    """The same arrays in batches."""

    def __init__(self, x, rows):
        self.x, self.rows = x, rows

    def __iter__(self):
        for lo in range(0, len(next(iter(self.x.values()))), self.rows):
            yield {name: array[lo : lo + self.rows] for name, array in self.x.items()}


@pytest.mark.parametrize(
    "changes",
    [{}, {"preprocess": "l2,center"}, {"preprocess": "rff,zca"}, {"effort": 2}, {"start": "identity"}],
)
def test_batches_give_the_model_that_arrays_give(changes):
    x = data()
    model = CCQ(bits=16, iterations=5, **changes).fit(x)
    batches = CCQ(bits=16, iterations=5, **changes).fit(Slices(x, 130))
    assert batches.losses_ == pytest.approx(model.losses_, rel=1e-4)
    assert batches.objects_ == model.objects_ == 600
    assert (batches.encode(x) == model.encode(x)).mean() > 0.97
    assert set(batches.modalities_) == set(model.modalities_)


def test_batches_may_lack_modalities():
    x = data(missing=0.0)
    halves = {"image": x["image"].copy(), "text": x["text"].copy()}
    halves["image"][200:400] = np.nan
    halves["text"][400:] = np.nan
    whole = CCQ(bits=8, iterations=3).fit(halves)
    parts = CCQ(bits=8, iterations=3).fit(
        Chain(
            [{"image": x["image"][:200], "text": x["text"][:200]}],
            [{"text": x["text"][200:400]}],
            [{"image": x["image"][400:]}],
        )
    )
    assert parts.modalities == whole.modalities
    assert parts.losses_ == pytest.approx(whole.losses_, rel=1e-4)


def test_a_sample_is_the_rows_that_were_asked_for():
    x = data(missing=0.0)
    rows = np.array([0, 1, 129, 130, 131, 599])
    for source in (open_source(x), open_source(Slices(x, 130))):
        some = sample(source, rows)
        assert np.allclose(some.arrays["image"], x["image"][rows])
        assert some.n == 6


def test_batches_have_to_be_usable_many_times():
    x = data()
    with pytest.raises(InvalidInputError, match="only once"):
        CCQ(bits=8).fit(iter(Slices(x, 100)))
    with pytest.raises(InvalidInputError, match="yields such mappings"):
        CCQ(bits=8).fit(3)
    with pytest.raises(InvalidInputError, match="yields such mappings"):
        CCQ(bits=8).fit(x["image"])
    with pytest.raises(InvalidInputError, match="objects in them"):
        CCQ(bits=8).fit([])


class Changing:
    def __init__(self, *passes):
        self.passes = list(passes)

    def __iter__(self):
        return iter(self.passes.pop(0) if len(self.passes) > 1 else self.passes[0])


@pytest.mark.parametrize(
    ("later", "error", "match"),
    [
        ([{"a": np.ones((3, 2))}], InvalidInputError, "found 4 objects, this one 3;"),
        ([{"a": np.ones((4, 2))}, {"a": np.ones((1, 2))}], InvalidInputError, "5 or more"),
        ([{"b": np.ones((4, 2))}], UnknownModalityError, "'b'"),
        ([{"a": np.ones((4, 3))}], FeatureError, "expected 2 numbers"),
    ],
)
def test_batches_that_change_between_passes_are_refused(later, error, match):
    source = Streamed(Changing([{"a": np.ones((4, 2))}], later))
    with pytest.raises(error, match=match):
        list(source)


def test_bad_rows_are_counted_from_the_first_batch():
    bad = np.ones((4, 2))
    bad[1, 1] = np.inf
    with pytest.raises(FeatureError, match=r"features\['a'\]\[9\]: number 1"):
        Streamed([{"a": np.ones((8, 2))}, {"a": bad}])
    with pytest.raises(FeatureError, match="no object has this modality"):
        CCQ(bits=8).fit([{"a": np.ones((8, 2)), "b": np.full((8, 2), np.nan)}])
    with pytest.raises(InvalidInputError, match="mapping"):
        CCQ(bits=8).fit([np.ones((8, 2))])


@pytest.mark.parametrize("rows", [1, 7, 100, 1000])
def test_npy_batches_are_the_rows_of_their_files(tmp_path, rows):
    x = data(missing=0.0)
    np.save(tmp_path / "a.npy", x["image"][:250])
    np.save(tmp_path / "b.npy", x["image"][250:].astype(np.float64))
    np.save(tmp_path / "t.npy", (x["text"] * 100).astype(np.int16))
    batches = NpyBatches({"image": [tmp_path / "a.npy", str(tmp_path / "b.npy")], "text": tmp_path / "t.npy"}, rows)
    for _ in range(2):
        parts = list(batches)
        assert [len(part["image"]) for part in parts] == [len(part["text"]) for part in parts]
        assert max(len(part["image"]) for part in parts) <= rows
        assert np.allclose(np.concatenate([part["image"] for part in parts]), x["image"])
        assert (np.concatenate([part["text"] for part in parts]) == (x["text"] * 100).astype(np.int16)).all()


def test_npy_batches_name_files_they_cannot_use(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((5, 2)))
    np.save(tmp_path / "b.npy", np.ones((4, 2)))
    np.save(tmp_path / "flat.npy", np.ones(5))
    np.save(tmp_path / "words.npy", np.array([["a"]]))
    np.save(tmp_path / "fortran.npy", np.asfortranarray(np.ones((5, 2))))
    np.savez(tmp_path / "c.npz", np.ones((5, 2)))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "a.npy").read_bytes()[:-9])
    with pytest.raises(InvalidInputError, match="same number of rows"):
        NpyBatches({"a": tmp_path / "a.npy", "b": tmp_path / "b.npy"})
    for name, match in [("flat", "shape"), ("words", "numbers"), ("fortran", "ascontiguousarray"), ("cut", "cut.npy")]:
        with pytest.raises(InvalidInputError, match=match):
            NpyBatches({"a": tmp_path / f"{name}.npy"})
    with pytest.raises(InvalidInputError, match=r"c\.npz"):
        NpyBatches({"a": tmp_path / "c.npz"})
    with pytest.raises(FileNotFoundError):
        NpyBatches({"a": tmp_path / "none.npy"})
    with pytest.raises(InvalidInputError, match="at least one modality"):
        NpyBatches({})
    with pytest.raises(InvalidInputError, match="rows"):
        NpyBatches({"a": tmp_path / "a.npy"}, 0)
    batches = NpyBatches({"a": tmp_path / "a.npy"})
    (tmp_path / "a.npy").write_bytes((tmp_path / "cut.npy").read_bytes())
    with pytest.raises(InvalidInputError, match="shorter"):
        list(batches)


@pytest.mark.parametrize("kind", ["list", "large_list", "fixed"])
def test_parquet_batches_are_the_rows_of_their_files(tmp_path, kind):
    import pyarrow as pa
    from pyarrow import parquet

    x = data()
    types = {"list": pa.list_(pa.float32()), "large_list": pa.large_list(pa.float64())}
    schema = {name: types.get(kind, pa.list_(pa.float32(), p)) for name, p in (("image", 12), ("text", 8))}

    def table(rows):
        columns = {
            name: pa.array([None if np.isnan(row).all() else row.tolist() for row in x[name][rows]], schema[name])
            for name in x
        }
        return pa.table({**columns, "id": np.arange(len(x["image"]))[rows]})

    parquet.write_table(table(slice(0, 400)), tmp_path / "a.parquet")
    parquet.write_table(table(slice(400, None)), tmp_path / "b.parquet")
    batches = ParquetBatches([tmp_path / "a.parquet", tmp_path / "b.parquet"], {"image": "image", "text": "text"}, 130)
    for _ in range(2):
        for name in x:
            assert np.allclose(np.concatenate([b[name] for b in batches]), x[name], equal_nan=True)
    losses = CCQ(bits=8, iterations=3).fit(x).losses_
    assert CCQ(bits=8, iterations=3).fit(batches).losses_ == pytest.approx(losses, rel=1e-4)
    with pytest.raises(InvalidInputError, match="expected one column 'id'"):
        ParquetBatches(tmp_path / "a.parquet", {"image": "id"})


def test_parquet_batches_name_files_they_cannot_use(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"a": [[1.0, 2.0], [3.0]]}), tmp_path / "uneven.parquet")
    parquet.write_table(pa.table({"a": [[1.0], [None]], "b": [[1.0], None]}), tmp_path / "holes.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1nothing")
    with pytest.raises(InvalidInputError, match="one length, got 1 and 2"):
        list(ParquetBatches(tmp_path / "uneven.parquet", {"a": "a"}))
    with pytest.raises(InvalidInputError, match="broken"):
        ParquetBatches(tmp_path / "broken.parquet", {"a": "a"})
    with pytest.raises(FileNotFoundError):
        ParquetBatches(tmp_path / "none.parquet", {"a": "a"})
    batches = ParquetBatches(tmp_path / "holes.parquet", {"a": "a", "b": "b"}, 1)
    assert [set(batch) for batch in batches] == [{"a", "b"}, {"a"}]


def test_parquet_files_that_tell_nothing_are_named(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    def write(name, columns, names=("a",), kind=None):
        kind = kind or pa.list_(pa.float32())
        parquet.write_table(
            pa.Table.from_arrays([pa.array(c, kind) for c in columns], names=list(names)), tmp_path / name
        )

    write("empty.parquet", [[[]] * 3])
    write("twice.parquet", [[[1.0]], [[2.0]]], ("a", "a"))
    write("null.parquet", [[None, None], [[1.0], [2.0]]], ("a", "b"))
    write("gap.parquet", [[[1.0], None, [2.0]]])
    write("other.parquet", [[1, 2]], kind=pa.int32())
    with pytest.raises(InvalidInputError, match="empty lists"):
        list(ParquetBatches(tmp_path / "empty.parquet", {"a": "a"}))
    with pytest.raises(InvalidInputError, match="expected one column 'a'"):
        ParquetBatches(tmp_path / "twice.parquet", {"a": "a"})
    with pytest.raises(InvalidInputError, match="column 'a' has only nulls"):
        CCQ(bits=8).fit(ParquetBatches(tmp_path / "null.parquet", {"a": "a", "b": "b"}))
    with pytest.raises(InvalidInputError, match="no modality, only nulls"):
        list(ParquetBatches(tmp_path / "gap.parquet", {"a": "a"}, 1))
    with pytest.raises(InvalidInputError, match=r"other\.parquet: expected files and columns of lists"):
        ParquetBatches(tmp_path / "other.parquet", {})
    with pytest.raises(InvalidInputError, match="got none"):
        ParquetBatches([], {"a": "a"})
    assert len(list(ParquetBatches(tmp_path / "gap.parquet", {"a": "a"}, 10**30))) == 1
    data = bytearray((tmp_path / "gap.parquet").read_bytes())
    data[4:40] = b"\xff" * 36
    (tmp_path / "damaged.parquet").write_bytes(data)
    with pytest.raises(InvalidInputError, match=r"damaged\.parquet: not a readable"):
        list(ParquetBatches(tmp_path / "damaged.parquet", {"a": "a"}))


def test_files_of_one_modality_have_to_fit_together(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((5, 2)))
    np.save(tmp_path / "b.npy", np.ones((5, 3)))
    with pytest.raises(InvalidInputError, match=r"b\.npy: expected 2 numbers a row, got 3"):
        NpyBatches({"a": [tmp_path / "a.npy", tmp_path / "b.npy"]})
    with pytest.raises(InvalidInputError, match="expected at least one for 'a'"):
        NpyBatches({"a": []})


def test_objects_without_modality_are_counted_from_the_first_batch():
    bad = np.ones((4, 2))
    bad[1] = np.nan
    with pytest.raises(InvalidInputError, match="object 9 has no modality"):
        Streamed([{"a": np.ones((8, 2))}, {"a": bad}])


def test_a_full_disk_is_an_error(monkeypatch):
    class Full:
        def write(self, _):
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        model_module._allocate(Full(), 100)
