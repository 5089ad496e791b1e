"""The same question through the library, HTTP and both clients has the same answer: ids, order, distances."""

import asyncio
import base64

import httpx
import numpy as np
import pytest

from ccq_client import AsyncClient, Client
from ccq_core import CodeIndex
from tests.client.kinds import KINDS, Blocking
from tests.service.harness import MODEL, PAIRS, ServerProcess

QUERIES = {name: array[200:230].copy() for name, array in PAIRS.items()}
QUERIES["image"][::3] = np.nan
QUERIES["text"][1::3] = np.nan
IDS = [f"é {i}" for i in range(400)]


@pytest.fixture(scope="module")
def server(tmp_path_factory, model_path):
    server = ServerProcess(tmp_path_factory.mktemp("congruence") / "data", model_path)
    server.wait_until_ready()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def model_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "tiny.ccq"
    MODEL.save(path)
    return path


@pytest.fixture(scope="module")
def clients(server):
    """Both, of a real server, each of which has indexed a collection of its own."""
    with asyncio.Runner() as runner, Client(server.url) as threads:
        tasks = Blocking(AsyncClient(server.url), runner)
        clients = dict(zip(KINDS, (threads, tasks), strict=True))
        for name, client in clients.items():
            client.collections.create(name, "tiny")
            client.collection(name).index(IDS, PAIRS, [{"n": i} for i in range(400)], batch_items=37)
        yield {name: client.collection(name) for name, client in clients.items()}
        tasks.close()


@pytest.fixture(scope="module")
def raw(server):
    """A collection that was indexed, and is searched, by plain HTTP."""
    http = httpx.Client(base_url=f"{server.url}/collections", timeout=30)
    assert http.put("/raw", json={"model": "tiny"}).status_code == 201
    items = [
        {"id": IDS[i], "features": {name: array[i].tolist() for name, array in PAIRS.items()}, "payload": {"n": i}}
        for i in range(400)
    ]
    assert http.post("/raw/index", json={"items": items}).status_code == 200
    yield http
    http.close()


def of_library(database, metric, k=20):
    index = CodeIndex(MODEL)
    index.add(IDS, MODEL.encode(PAIRS if database == "pair" else {database: PAIRS[database]}))
    hits = index.search(QUERIES, k, metric=metric)
    return hits.ids.tolist(), hits.distances


def of_http(http, database, metric, k=20):
    found = []
    for i in range(30):
        query = {name: array[i].tolist() for name, array in QUERIES.items() if not np.isnan(array[i]).any()}
        body = {"query": query, "database": database, "metric": metric, "limit": k}
        found.append(http.post("/raw/search", json=body).json()["results"])
    return [[hit["id"] for hit in hits] for hits in found], np.array(
        [[hit["distance"] for hit in hits] for hits in found]
    )


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("database", ["image", "text", "pair"])
def test_all_answer_the_same(clients, raw, database, metric):
    ids, distances = of_library(database, metric)
    raw_ids, raw_distances = of_http(raw, database, metric)
    assert raw_ids == ids
    np.testing.assert_allclose(raw_distances, distances, rtol=1e-5, atol=1e-5)
    for client in clients.values():
        batch = client.search_batch(QUERIES, database=database, metric=metric, limit=20)
        assert [hits.ids for hits in batch] == ids
        np.testing.assert_allclose([hits.distances for hits in batch], distances, rtol=1e-5, atol=1e-5)
        for i in range(0, 30, 7):
            query = {name: array[i] for name, array in QUERIES.items() if not np.isnan(array[i]).any()}
            hits = client.search(query, database=database, metric=metric, limit=20)
            assert hits.ids == ids[i]
            # One query alone goes the way that the plain request went: to the last bit.
            assert hits.distances.tolist() == raw_distances[i].astype(np.float32).tolist()
            pages = client.search_iter(query, database=database, metric=metric, page=90)
            assert [hit.id for hit in pages][:20] == ids[i]


def test_all_hold_the_same(clients, raw):
    page = raw.get("/raw/items", params={"limit": 1000, "with_codes": True}).json()["items"]
    codes = {name: MODEL.encode({name: array}) for name, array in PAIRS.items()} | {"pair": MODEL.encode(PAIRS)}
    for client in clients.values():
        listed = list(client.items(page=150, with_codes=True))
        assert [item.id for item in listed] == IDS
        for item, plain in zip(listed, page, strict=True):
            assert (item.id, item.payload, list(item.databases)) == (plain["id"], plain["payload"], plain["databases"])
            assert {name: base64.b64encode(row).decode() for name, row in item.codes.items()} == plain["codes"]
        for name, rows in codes.items():
            np.testing.assert_array_equal([item.codes[name] for item in listed], rows)


def test_batches_are_cut_to_what_the_service_takes(tmp_path, model_path):
    server = ServerProcess(
        tmp_path / "data", model_path, CCQ_MAX_BATCH_QUERIES="8", CCQ_MAX_BATCH_ITEMS="50", CCQ_MAX_BODY_BYTES="3000"
    )
    server.wait_until_ready()
    try:
        with Client(server.url) as client:
            assert client.index(IDS, PAIRS).requests > 8
            found = client.search_batch(QUERIES, database="pair", limit=20)
            assert [hits.ids for hits in found] == of_library("pair", "cosine")[0]
    finally:
        server.kill()


@pytest.mark.parametrize("name", [".", "..", "a/../b", "%2E", "a?b#c"])
def test_ids_that_paths_do_not_like_over_a_socket(server, name):
    with Client(server.url) as client:
        client.index([name], {"text": PAIRS["text"][:1]})
        assert client.get(name).id == name
        assert client.delete([name]).deleted == 1
