"""`ccq export`, and its way back by `ccq index`: from data directories and services."""

import filecmp
import os

import httpx
import numpy as np
import pyarrow.parquet
import pytest

from ccq_cli import origins
from ccq_cli.origins import DirectoryOrigin
from ccq_client import Client
from ccq_core import CCQ
from tests.cli.bulk import PAYLOADS, create_collection, ok, refused, stored
from tests.core.conftest import make_pairs


def test_a_directory_gets_what_a_service_gets(rows, directory, files, url, tmp_path):
    """Same codes, payloads and order as by POST /index."""
    words, place = rows
    create_collection(url, "same")
    ok("index", *words, "--url", url, "--collection", "same", "--in-flight", 1, "--batch", 9)
    ok("export", url, tmp_path / "online", "--collection", "same")
    ok("export", directory, tmp_path / "offline")
    for name in ("items.jsonl", "present.npy", "codes.image.npy", "codes.text.npy", "codes.pair.npy", "m.ccq"):
        assert filecmp.cmp(tmp_path / "online" / name, tmp_path / "offline" / name, shallow=False), name
    model = CCQ.load(files / "m.ccq")
    found, _ = stored(directory)
    arrays = {name: np.load(place / f"{name}.npy") for name in ("image", "text")}
    kept = [i for i in range(60) if i % 30]
    assert [item_id for item_id, *_ in found] == [f"item {i}" for i in kept]
    for i, (_, payload, present, codes) in zip(kept, found, strict=True):
        assert payload == PAYLOADS[i % len(PAYLOADS)]
        assert present == [bool(i % 6), bool(i % 10), bool(i % 6 and i % 10)]
        if i % 6:
            assert codes[0] == model.encode({"image": arrays["image"][i : i + 1]})[0].tolist()
        if present[2]:
            assert codes[2] == model.encode({name: array[i : i + 1] for name, array in arrays.items()})[0].tolist()


@pytest.mark.parametrize("form", ["npy", "parquet"])
@pytest.mark.parametrize("keep", ["none", "float16", "int8"])
def test_there_and_back_without_loss(rows, files, url, tmp_path, form, keep):
    words, _ = rows
    source, out = tmp_path / "kept", tmp_path / ("out.parquet" if form == "parquet" else "out")
    new = ["--model", files / "m.ccq", "--keep", keep]
    ok("index", *words, "--data", source, *new)
    ok("export", source, out)  # the name tells the format
    before = stored(source)
    ok("index", out, "--codes", "--data", tmp_path / "back", *new)
    assert stored(tmp_path / "back") == before
    name = f"back-{form}-{keep}"
    create_collection(url, name, keep=keep)
    ok("index", out, "--codes", "--url", url, "--collection", name, "--in-flight", 1, "--batch", 25)
    again = tmp_path / ("again.parquet" if form == "parquet" else "again")
    ok("export", url, again, "--format", form, "--collection", name)
    ok("index", again, "--codes", "--data", tmp_path / "twice", *new)
    assert stored(tmp_path / "twice") == before
    if keep == "none":
        assert "import its codes, with --codes" in refused("index", out, "--data", tmp_path / "x", *new[:2])
    else:  # features that are encoded anew: the same items, and nearly the same codes
        ok("index", out, "--data", tmp_path / "encoded", *new)
        after, features = stored(tmp_path / "encoded")
        assert [item[:3] for item in after] == [item[:3] for item in before[0]]
        assert features == before[1]


def test_export_is_whole_or_not_there(directory, tmp_path, url):
    assert "File exists" in refused("export", directory, tmp_path / "data")
    assert "no collection 'nowhere'" in refused("export", directory, tmp_path / "out", "--collection", "nowhere")
    assert "expected a data directory" in refused("export", tmp_path / "none", tmp_path / "out")
    assert "no collection 'nowhere'" in refused("export", url, tmp_path / "out", "--collection", "nowhere")
    assert not [name for name in os.listdir(tmp_path) if "out" in name]
    assert "No such file" in refused("export", directory, tmp_path / "no" / "out")


def test_what_is_replaced_while_a_service_is_exported_is_there_once(directory, tmp_path, monkeypatch):
    """Two pages with the same id, as come where an item is replaced in between."""

    def twice(self):
        parts = list(parts_of(self))
        yield from [*parts, *parts]

    parts_of = DirectoryOrigin.parts
    for form in ("npy", "parquet"):
        ok("export", directory, tmp_path / f"once.{form}", "--format", form)
    init = DirectoryOrigin.__init__

    def not_distinct(self, *arguments):
        init(self, *arguments)
        self.distinct = False

    with monkeypatch.context() as patch:
        patch.setattr(DirectoryOrigin, "parts", twice)
        patch.setattr(DirectoryOrigin, "__init__", not_distinct)
        for form in ("npy", "parquet"):
            said = ok("export", directory, tmp_path / f"twice.{form}", "--format", form)
            assert "exported 58 items" in said
    same = filecmp.dircmp(tmp_path / "once.npy", tmp_path / "twice.npy")
    assert not same.diff_files
    assert not same.left_only + same.right_only
    tables = [pyarrow.parquet.read_table(tmp_path / f"{name}.parquet") for name in ("once", "twice")]
    assert tables[0].equals(tables[1], check_metadata=True)


@pytest.mark.parametrize("name", ["codes.image.npy", "present.npy", "items.jsonl", "export.json"])
def test_exports_with_a_part_that_is_none(directory, files, tmp_path, name):
    out = tmp_path / "out"
    ok("export", directory, out)
    new = ["--codes", "--data", tmp_path / "new", "--model", out / "m.ccq"]
    if name.endswith(".npy"):
        np.save(out / name, np.load(out / name)[1:])
        assert "different numbers of rows" in refused("index", out, *new)
        np.save(out / name, np.zeros(3))
        assert f"{name}: expected shape (n, 3)" in refused("index", out, *new)
    (out / name).write_bytes(b'{"format": 2}')
    said = refused("index", out, *new)
    assert name in said
    (out / name).unlink()
    assert name in refused("index", out, *new)


def test_a_page_is_asked_for_again_where_the_service_is_busy(directory, rows, url, tmp_path, monkeypatch):
    words, _ = rows
    create_collection(url, "busy")
    ok("index", *words, "--url", url, "--collection", "busy", "--in-flight", 1)
    send, refusals = httpx.HTTPTransport.handle_request, []

    def sometimes(self, request):
        if request.url.path.endswith("/items") and len(refusals) < 2:
            refusals.append(str(request.url))
            problem = {"code": "busy", "title": "busy", "detail": "later"}
            return httpx.Response(503, headers={"Retry-After": "0"}, json=problem)
        return send(self, request)

    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", sometimes)
    assert "exported 58 items" in ok("export", url, tmp_path / "out", "--collection", "busy")
    assert refusals == refusals[:1] * 2


def test_a_model_that_comes_and_goes_while_a_service_is_exported(directory, rows, url, tmp_path, monkeypatch):
    """Pages in between have codes of another model, though it is the first again in the end."""
    words, _ = rows
    create_collection(url, "swapped", keep="float16")
    ok("index", *words, "--url", url, "--collection", "swapped", "--in-flight", 1)
    other = CCQ(bits=16, seed=1, iterations=2, effort=0).fit(make_pairs(300))
    send, pages = httpx.HTTPTransport.handle_request, []

    def swapping(self, request):
        if request.url.path.endswith("/items"):
            pages.append(request)
            if len(pages) == 2:
                with Client(url) as client:
                    client.jobs.wait(client.collections.reencode("swapped", "swap"))
        return send(self, request)

    monkeypatch.setattr(origins, "PER_PAGE", 10)
    with Client(url) as client:
        client.models.upload("swap", other)
    ok("export", url, tmp_path / "before", "--collection", "swapped")
    for form in ("npy", "parquet"):
        with monkeypatch.context() as patch:
            patch.setattr(httpx.HTTPTransport, "handle_request", swapping)
            said = refused("export", url, tmp_path / "out", "--collection", "swapped", "--format", form)
        assert "the collection got another model meanwhile" in said
        assert not (tmp_path / "out").exists()
        assert len(pages) == 2, "there is no need to go on"
        pages.clear()
        with Client(url) as client:
            client.jobs.wait(client.collections.reencode("swapped", "m"))
    ok("export", url, tmp_path / "after", "--collection", "swapped")
    for name in ("items.jsonl", "codes.pair.npy", "m.ccq"):
        assert filecmp.cmp(tmp_path / "before" / name, tmp_path / "after" / name, shallow=False), name
