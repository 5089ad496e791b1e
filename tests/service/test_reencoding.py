"""A collection gets another model while it is used: all of it at once."""

import random
import threading

import numpy as np
import orjson
import pytest

from ccq_core import CCQ
from ccq_core.table import CodeTable
from service import errors, indexing
from service.collection import Collection
from service.indexing import prepare_items, store_items
from service.searching import Caches, search_together
from tests.core.conftest import make_pairs
from tests.service.harness import assert_problem
from tests.service.reencoded import (
    MODELS,
    N,
    assert_codes_are_of_the_model,
    assert_searches_are_those_of,
    encode_anew,
    exact,
    left_behind,
    search,
    tables_of,
    thing,
    tidy,
)


@pytest.mark.parametrize("keeping", ["float16", "int8"], indirect=True)
def test_all_codes_become_those_of_the_other_model(keeping, small):
    keeping.ok("POST", "/items/delete", {"ids": ["item-3", "item-80"]})
    listed = keeping.ok("GET", "/items?limit=1000")
    told = []
    done = encode_anew(keeping, "other", lambda *progress: told.append(progress))
    assert (done.items, done.before, done.after) == (N - 2, "tiny", "other")
    assert {phase for phase, _, _ in told} == {"encode", "load"}
    assert max(d for phase, d, _ in told if phase == "encode") == N - 2
    assert keeping.ok("GET", "/collections/default")["model"] == "other"
    # With the same versions, in the same order.
    assert keeping.ok("GET", "/items?limit=1000") == {**listed, "model": "other"}
    assert keeping.catalog.collection("default").view.version == 3
    for _ in range(2):
        assert_codes_are_of_the_model(keeping)
        assert_searches_are_those_of(keeping, "other")
        keeping.restart()
    assert search(keeping, query=exact(5), database="pair", limit=1, rescore=True)[0]["id"] == "item-5"
    tidy(keeping)
    assert len(tables_of(keeping)) == 2
    assert keeping.delete("/models/tiny").status_code == 204
    assert_problem(keeping.delete("/models/other"), 409, "model_in_use")


def test_what_results_were_ranked_anew_by_is_forgotten(keeping, small):
    def found():
        asked = {"query": exact(7), "database": ["image", "pair"], "limit": 40, "rescore": True}
        return [(hit["id"], hit["distance"]) for hit in search(keeping, **asked)]

    before = found()
    assert found() == before  # from memory
    encode_anew(keeping, "other")
    after = found()
    assert after != before
    keeping.restart()  # nothing is in memory
    assert found() == after


def test_there_and_back_and_there(keeping, small):
    before = search(keeping, query=exact(7))
    for model in ("other", "tiny", "other"):
        encode_anew(keeping, model)
        assert_codes_are_of_the_model(keeping)
    encode_anew(keeping, "tiny")
    assert search(keeping, query=exact(7)) == before
    tidy(keeping)
    keeping.restart()
    assert search(keeping, query=exact(7)) == before


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_written_meanwhile_is_there_with_the_right_codes(keeping, small, seed, tmp_path):
    rng = random.Random(seed)
    alive = dict.fromkeys(f"item-{i}" for i in range(N))
    added = 0

    def write(*_):
        nonlocal added
        for _ in range(rng.choice([0, 1, 3])):
            if rng.random() < 0.5 and added < 300:
                new = [thing(rng.randrange(N + added + 1)) for _ in range(rng.choice([1, 2, 7]))]
                new = list({one["id"]: one for one in new}.values())
                keeping.ok("POST", "/index", {"items": new})
                for one in new:
                    alive.pop(one["id"], None)
                    alive[one["id"]] = None
                added += len(new)
            elif alive:
                gone = rng.sample(list(alive), min(len(alive), rng.choice([1, 4])))
                keeping.ok("POST", "/items/delete", {"ids": gone})
                for item_id in gone:
                    del alive[item_id]
        if alive:
            keeping.put(f"/items/{rng.choice(list(alive))}/payload", {"n": 1})
        tidy(keeping)

    version = encode_anew(keeping, "other", write, write)
    assert version.items == len(alive)
    assert [one["id"] for one in keeping.ok("GET", "/items?limit=1000")["items"]] == list(alive)
    assert_codes_are_of_the_model(keeping)
    write()
    assert_codes_are_of_the_model(keeping)
    keeping.restart()
    assert [one["id"] for one in keeping.ok("GET", "/items?limit=1000")["items"]] == list(alive)
    assert_codes_are_of_the_model(keeping)
    assert not any(part.faults for part in left_behind(keeping, tmp_path).values())


def test_items_that_come_as_fast_as_they_are_encoded_do_not_keep_it_for_ever(keeping, small):
    n = N

    def write(phase, *_):
        nonlocal n
        if phase == "encode":
            keeping.ok("POST", "/index", {"items": [thing(i) for i in range(n, n + 20)]})
            n += 20

    done = encode_anew(keeping, "other", write)
    assert done.items == n < 1500
    assert_codes_are_of_the_model(keeping)


def test_items_that_were_encoded_before_are_encoded_again_to_be_stored_behind(keeping, monkeypatch):
    collection = keeping.catalog.collection("default")
    body = b'{"items": [%s]}' % b",".join(orjson.dumps(thing(i)) for i in (200, 201, 5))
    prepared = prepare_items(collection, body, keeping.settings)
    encode_anew(keeping, "other")
    calls = []
    original = indexing.encode_items
    monkeypatch.setattr(indexing, "encode_items", lambda *args: calls.append(1) or original(*args))
    store_items(collection, prepared)
    assert len(calls) == 1
    assert_codes_are_of_the_model(keeping)
    assert keeping.ok("GET", "/collections/default")["items"] == N + 2


def test_a_search_that_was_spelled_before_is_spelled_again(keeping, monkeypatch):
    want, swapped = None, []
    original = Collection.read

    def read(self, **rest):
        if not swapped:
            swapped.append(True)
            encode_anew(keeping, "other")
        return original(self, **rest)

    with monkeypatch.context() as patch:
        patch.setattr(Collection, "read", read)
        got = search(keeping, query=exact(7, "text"))
    assert swapped
    want = search(keeping, query=exact(7, "text"))
    assert got == want
    assert_searches_are_those_of(keeping, "other")


def test_cursors(keeping):
    body = {"query": exact(7), "database": "pair", "limit": 3}
    page = keeping.ok("POST", "/search", body)
    listed = keeping.ok("GET", "/items?limit=10")
    encode_anew(keeping, "other")
    problem = assert_problem(keeping.post("/search", {**body, "cursor": page["next_cursor"]}), 422, "invalid_request")
    assert "model before" in problem["detail"]
    assert keeping.ok("GET", f"/items?limit=10&cursor={listed['next_cursor']}")["items"][0]["id"] == "item-10"


def test_what_cannot_be_encoded_anew(keeping):
    refused = errors.ReencodeError
    with pytest.raises(refused, match="has model 'tiny' already"):
        encode_anew(keeping, "tiny")
    with pytest.raises(errors.UnknownModelError):
        encode_anew(keeping, "nothing")
    pairs = make_pairs(400)
    turned = CCQ(bits=16, iterations=1, seed=1).fit({"text": pairs["text"], "image": pairs["image"]})
    narrow = CCQ(bits=16, iterations=1, seed=1).fit({"text": pairs["text"], "image": pairs["image"][:, :7]})
    for name, model in {"turned": turned, "narrow": narrow}.items():
        keeping.request("PUT", f"/models/{name}", content=model.to_bytes())
        with pytest.raises(refused, match=r"image \(12\), text \(8\) in this order; '.*' is of text \(8\), image"):
            encode_anew(keeping, name)
    keeping.put("/collections/plain", {"model": "tiny"})
    with pytest.raises(refused, match="'plain' keeps no features"):
        encode_anew(keeping, "other", name="plain")
    tidy(keeping)
    assert tables_of(keeping) == ["codes_1", "codes_2", "gone_1", "gone_2"]
    assert_codes_are_of_the_model(keeping)


def test_every_search_is_of_one_model_while_they_change(keeping, small):
    """Searchers, writers and models that change: all distances of a reply are those of one of the models."""
    collection = keeping.catalog.collection("default")
    some = list(range(2, N, 3))
    fixed = [f"item-{i}" for i in some]
    wanted = {i: [_distances(i, some, model) for model in MODELS] for i in some}
    caches = Caches.of(keeping.settings)
    stop, wrong, rounds = threading.Event(), [], {"search": 0, "write": 0}

    def again(name, work):
        rng = random.Random(name)
        try:
            while not stop.is_set():
                work(rng)
                rounds[name] += 1
        except Exception as error:
            wrong.append(error)

    def look(rng):
        i = rng.choice(some)
        body = {"query": exact(i), "database": "pair", "limit": 1000, "filter": {"must": [{"ids": fixed}]}}
        ((_, answer),) = search_together(collection, [orjson.dumps(body)], keeping.settings, caches)
        if isinstance(answer, Exception):
            raise answer
        got = {hit["id"]: hit["distance"] for hit in answer.reply["results"]}
        assert any(got == pytest.approx(distances, abs=1e-4) for distances in wanted[i]), (i, got, wanted[i])

    def put(rng):
        one = thing(rng.choice([0, 1, *some, *range(200, 230)]))
        prepared = prepare_items(collection, b'{"items": [%s]}' % orjson.dumps(one), keeping.settings)
        store_items(collection, prepared)
        if rng.random() < 0.2:
            collection.delete_ids([f"item-{rng.randrange(200, 230)}"])

    threads = [
        threading.Thread(target=again, args=args) for args in (("search", look), ("search", look), ("write", put))
    ]
    for thread in threads:
        thread.start()
    for turn in range(12):
        encode_anew(keeping, ["other", "tiny"][turn % 2])
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert min(rounds.values()) > 20, rounds
    assert_codes_are_of_the_model(keeping)


def _distances(query, numbers, name):
    """The distances between a query and the pairs of some numbers, by one of the models."""
    model = MODELS[name]
    tables = model.distance_tables({key: np.array([value], dtype=np.float32) for key, value in exact(query).items()})
    things = [exact(i) for i in numbers]
    table = CodeTable(model.code_width)
    features = {key: np.array([one[key] for one in things], dtype=np.float32) for key in things[0]}
    table.append(np.array(numbers, dtype=np.int64), model.encode(features))
    ((labels, keys),) = table.view().search(tables, len(numbers))
    distances = tables.distances_of(keys, np.zeros(len(keys), dtype=np.intp))
    return {f"item-{i}": float(distance) for i, distance in zip(labels.tolist(), distances, strict=True)}


def test_codes_that_were_given_for_the_model_before_are_refused(keeping):
    """They mean nothing to the new model; and they came before it was there."""
    collection = keeping.catalog.collection("default")
    page = keeping.ok("GET", "/items?with_codes=true&with_features=true&limit=1")["items"]
    given = [{"id": "given", "codes": page[0]["codes"], "features": page[0]["features"]}]
    body = {"items": given, "model_checksum": keeping.ok("GET", "/models/tiny")["checksum"]}
    prepared = prepare_items(collection, orjson.dumps(body), keeping.settings)
    encode_anew(keeping, "other")
    with pytest.raises(errors.CollectionConflictError, match="codes of one model mean nothing to another"):
        store_items(collection, prepared)
    assert keeping.get("/items/given").status_code == 404
