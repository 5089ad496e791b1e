"""Collections that keep features, and a model that they may be encoded with anew."""

import hashlib
import shutil

import numpy as np
import pytest

from ccq_core import CCQ
from service.encoding import encode_items
from service.features import Vectors
from service.reencoding import reencode
from service.store.check import check
from service.tables import View
from tests.service.harness import DIMS, MODEL, MODEL_FILE, PAIRS

OTHER = CCQ(bits=24, weights={"text": 2.0}, metric="euclidean", iterations=5, seed=2).fit(PAIRS)
OTHER_FILE = OTHER.to_bytes()
OTHER_CHECKSUM = hashlib.sha256(OTHER_FILE).hexdigest()
MODELS = {"tiny": MODEL, "other": OTHER}
N = 90
DATABASES = ["image", "text", "pair"]
KINDS = [("image",), ("text",), ("image", "text")]


def upload(service):
    """Upload both models; over ASGI or over HTTP."""
    for name, file in {"tiny": MODEL_FILE, "other": OTHER_FILE}.items():
        assert service.request("PUT", f"/models/{name}", content=file).status_code in (200, 201)


def make(service, keep):
    """Upload both models, and make the default collection, of N items that are kept so."""
    upload(service)
    assert service.put("/collections/default", {"model": "tiny", "keep": keep}).status_code == 201
    service.ok("POST", "/index", {"items": [thing(i) for i in range(N)]})


def exact(i, *modalities):
    """Features of the i-th pair, rounded so that they are kept as they are."""
    found = {}
    for name in modalities or DIMS:
        x = PAIRS[name][i % 400] / np.abs(PAIRS[name][i % 400]).max()
        found[name] = (np.rint(x * 256) / 256).tolist()
    return found


def thing(i, *modalities, **payload):
    """An item to index whose features are `exact`."""
    return {"id": f"item-{i}", "features": exact(i, *(modalities or KINDS[i % 3])), "payload": {"n": i, **payload}}


def assert_codes_are_of_the_model(service, name="default"):
    """Each item has just the codes that the collection's model gives for its kept features, in memory and on disk."""
    collection = service.catalog.collection(name)
    with collection.read() as (view, snapshot):
        coder = view.coder
        assert snapshot.record == coder.record
        assert coder.model.to_bytes() == service.catalog.model_file(coder.record.model)
        seqs = [seq for seq, _, _ in snapshot.scan(False)]
        records = dict(snapshot.kept(seqs))
        want = encoded(collection, [records[seq] for seq in seqs], coder.model)
        held = {}
        for some, data in snapshot.codes():
            size = coder.layout.size
            held |= {seq: data[i * size : (i + 1) * size] for i, seq in enumerate(some.tolist())}
        for seq in snapshot.gone().tolist():
            del held[seq]
        assert list(held) == seqs
        assert b"".join(held.values()) == coder.layout.pack(want)
        assert view.items == len(seqs)
        assert_view_has(view, np.array(seqs, dtype=np.int64), want)


def encoded(collection, records, model):
    """Codes of kept features."""
    return encode_items(Vectors(collection.kept.unpack(records), lambda i: (i,), "m"), model)


def assert_view_has(view: View, seqs, codes):
    for i, (database, table) in enumerate(view.tables.items()):
        labels, rows = table.arrays()
        assert labels.tolist() == seqs[codes.present[:, i]].tolist(), database
        assert np.array_equal(rows, codes.rows[codes.present[:, i], i])


def encode_anew(service, model, progress=lambda *_: None, check=lambda: None, name="default"):
    """Encode a collection anew, without a job."""
    runtime = service.app.state.runtime
    return reencode(runtime.catalog.collection(name), runtime.store, model, runtime.catalog._model_of, progress, check)


def tables_of(service):
    with service.app.state.runtime.store._read() as db:
        sql = "SELECT name FROM sqlite_schema WHERE name GLOB 'codes_*' OR name GLOB 'gone_*' ORDER BY name"
        return [name for (name,) in db.execute(sql)]


def left_behind(service, tmp_path):
    """What `ccq check` says of what would be left if the server were killed now, by part."""
    left = tmp_path / "left"
    shutil.copytree(service.settings.data, left)
    return {part.name: part for part in check(left)}


def tidy(service):
    store = service.app.state.runtime.store
    while store._writer.run(store._tidier):
        pass


def search(service, **body):
    return service.ok("POST", "/search", {"database": DATABASES, "limit": 1000, **body})["results"]


def assert_searches_are_those_of(service, model):
    """Every distance is the one between the codes and the query by that model."""
    collection = service.catalog.collection("default")
    tables = MODELS[model].distance_tables({"text": np.array([exact(7, "text")["text"]], dtype=np.float32)})
    want = {}
    with collection.read() as (view, snapshot):
        names = {seq: item_id for seq, item_id, _ in snapshot.scan(False)}
        for database in DATABASES:
            ((labels, keys),) = view.tables[database].search(tables, 1000)
            distances = tables.distances_of(keys, np.zeros(len(keys), dtype=np.intp))
            want |= {(names[seq], database): d for seq, d in zip(labels.tolist(), distances, strict=True)}
    hits = search(service, query=exact(7, "text"))
    assert {(hit["id"], hit["database"]): pytest.approx(hit["distance"], abs=1e-4) for hit in hits} == want
