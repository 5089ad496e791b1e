"""Features on their way to a training: from a collection, and into files."""

from types import SimpleNamespace

import numpy as np
import pytest

from ccq_core import CCQ
from ccq_core.batches import NpyBatches
from ccq_core.features import check_features
from service.errors import StorageFullError, UnknownCollectionError
from service.jobs import export as exporting
from service.jobs.arrays import feature_files, rows_together, written
from service.jobs.export import export
from service.jobs.kind import Cancelled
from tests.service.harness import PAIRS, item


class Told:
    """A context that notes what it is told; `until`: how many times before the job is cancelled."""

    def __init__(self, directory, until=None):
        self.directory = directory
        self.told = []
        self._until = until

    def progress(self, *told):
        self.told.append(told)
        if len(self.told) == self._until:
            raise Cancelled


@pytest.fixture
def directory(tmp_path):
    directory = tmp_path / "jobs" / "x"
    directory.mkdir(parents=True)
    return directory


def test_files_have_the_order_of_the_modalities_and_nan_for_what_is_absent(directory):
    image, text = PAIRS["image"][:50].copy(), PAIRS["text"][:50].copy()
    image[::3], text[1::3] = np.nan, np.nan
    features = check_features({"text": text, "image": image})
    dims = {"text": 8, "image": 12, "audio": 2}
    with written(directory, dims) as take:
        for lo in range(0, 50, 16):
            take(features[lo : lo + 16])
        assert feature_files(directory) == {}
    assert list(feature_files(directory)) == ["text", "image", "audio"]
    (batch,) = NpyBatches(feature_files(directory))
    assert np.array_equal(batch["image"], image, equal_nan=True)
    assert np.array_equal(batch["text"], text, equal_nan=True)
    assert batch["audio"].shape == (50, 2)
    assert np.isnan(batch["audio"]).all()


def test_files_that_were_not_completed_are_written_anew(directory):
    features = check_features({name: array[:9] for name, array in PAIRS.items()})
    for rounds in (3, 1):
        try:
            with written(directory, {"image": 12, "text": 8}) as take:
                for _ in range(rounds):
                    take(features)
                if rounds == 3:
                    raise Cancelled
        except Cancelled:
            assert feature_files(directory) == {}
    assert NpyBatches(feature_files(directory)).n == 9


def test_as_many_rows_together_as_take_some_megabytes():
    assert rows_together({"a": 16}) == 1 << 15
    assert rows_together({"a": 1024, "b": 1024}) == 4096
    assert rows_together({"a": 1 << 20}) == 1024


@pytest.fixture
def kept(bare, monkeypatch):
    """A collection of a model whose modalities are not in the order of their names, and what there is to export."""
    monkeypatch.setattr(exporting, "rows_together", lambda _: 16)
    file = CCQ(bits=8, iterations=1).fit({"text": PAIRS["text"], "image": PAIRS["image"]}).to_bytes()
    bare.request("PUT", "/models/reversed", content=file)
    bare.put("/collections/c", {"model": "reversed", "keep": "float16"})
    bare.ok("POST", "/collections/c/index", {"items": [item(i, *[("text",), ()][i % 2]) for i in range(100)]})
    bare.ok("POST", "/collections/c/items/delete", {"ids": [f"item-{i}" for i in range(10, 40)]})
    bare.ok("POST", "/collections/c/index", {"items": [item(3), item(5)]})  # replaced: now they are last
    runtime = bare.app.state.runtime
    return SimpleNamespace(
        order=[*(i for i in range(100) if i not in (3, 5, *range(10, 40))), 3, 5],
        record=runtime.catalog.entry("c").record,
        store=runtime.store,
        dims={"text": 8, "image": 12},
        service=bare,
    )


def test_a_collection_is_exported_in_its_order(kept, directory):
    context = Told(directory)
    export(kept.store, kept.record, kept.dims, context)
    assert context.told[0] == ("export", 16, 70)
    assert context.told[-1] == ("export", 70, 70)
    files = feature_files(directory)
    assert list(files) == ["text", "image"]
    (batch,) = NpyBatches(files)
    expected = {name: PAIRS[name][kept.order] for name in files}
    expected["image"][np.array(kept.order) % 2 == 0] = np.nan
    for name in files:
        np.testing.assert_allclose(batch[name], expected[name], rtol=2e-3, atol=2e-3)
    again = Told(directory)
    export(kept.store, kept.record, kept.dims, again)
    assert again.told == []


def test_what_is_indexed_meanwhile_is_left_out(kept, directory):
    class Indexing(Told):
        def progress(self, *told):
            super().progress(*told)
            if len(self.told) == 2:
                kept.service.ok("POST", "/collections/c/index", {"items": [item(i) for i in (0, 1, 90, 200, 201)]})

    export(kept.store, kept.record, kept.dims, Indexing(directory))
    assert NpyBatches(feature_files(directory)).n == 69  # without item 90, which was replaced before its turn


def test_an_export_that_cannot_be_completed_leaves_no_files(kept, directory, monkeypatch):
    with pytest.raises(Cancelled):
        export(kept.store, kept.record, kept.dims, Told(directory, until=2))
    assert feature_files(directory) == {}
    with monkeypatch.context() as patch:
        patch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=100))
        with pytest.raises(StorageFullError, match="the training needs 5600 bytes of disk, 100 are free"):
            export(kept.store, kept.record, kept.dims, Told(directory))
    kept.service.delete("/collections/c")
    with pytest.raises(UnknownCollectionError):
        export(kept.store, kept.record, kept.dims, Told(directory))
