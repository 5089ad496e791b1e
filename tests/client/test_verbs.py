"""Every verb, with both clients, against the service itself."""

import io
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccq_client import InputError, UnknownKeyWarning, errors
from ccq_core import CCQ
from tests.client.kinds import app_transport, connected
from tests.service.harness import MODEL, MODEL_FILE, PAIRS


def test_models(client, tmp_path):
    (tmp_path / "m.ccq").write_bytes(MODEL_FILE)
    for name, given_file in (
        ("path", tmp_path / "m.ccq"),
        ("text", str(tmp_path / "m.ccq")),
        ("bytes", MODEL_FILE),
        ("file", io.BytesIO(MODEL_FILE)),
        ("model", MODEL),
    ):
        model = client.models.upload(name, given_file)
        assert model == client.models.get(name)
        assert (model.size, model.bits, model.metric, model.collections) == (len(MODEL_FILE), 16, "cosine", ())
        assert {name: (m.dim, m.weight) for name, m in model.modalities.items()} == {"image": (12, 1), "text": (8, 5)}
        assert abs(model.created - datetime.now(UTC)) < timedelta(minutes=5)
    assert client.models.get("tiny").collections == ("default",)
    assert [model.name for model in client.models.list()] == ["bytes", "file", "model", "path", "text", "tiny"]
    assert client.models.file("bytes") == MODEL_FILE
    client.models.download("bytes", tmp_path / "copy.ccq")
    assert CCQ.load(tmp_path / "copy.ccq").bits == 16
    client.models.delete("bytes")
    with pytest.raises(errors.ModelNotFoundError):
        client.models.download("bytes", tmp_path / "gone.ccq")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.ccq", "data", "m.ccq"]
    with pytest.raises(errors.ModelFileError) as caught:
        client.models.upload("none", b"no model at all")
    assert caught.value.code == "model_format"
    with pytest.raises(InputError, match="got dict"):
        client.models.upload("none", {})


def test_collections(client):
    made = client.collections.create("shop", "tiny", indexes=["price"], keep="int8")
    assert (made.name, made.model, made.indexes, made.keep, made.state) == ("shop", "tiny", ("price",), "int8", "ready")
    assert made.databases == {"image": 0, "text": 0, "pair": 0}
    assert client.collections.get("shop") == made
    assert client.collections.create("shop", "tiny", indexes=[]).indexes == ()
    assert client.collections.create("shop", "tiny").keep == "int8"
    assert [found.name for found in client.collections.list()] == ["default", "shop"]
    shop = client.collection("shop")
    assert shop.index(["p1"], {"text": PAIRS["text"][:1]}).indexed == 1
    assert client.collections.get("shop").items == 1
    with pytest.raises(errors.ItemNotFoundError):
        client.get("p1")
    with pytest.raises(errors.ConflictError):
        client.models.delete("tiny")
    client.collections.delete("shop")
    for wrong in ("shop", "a/b", "..", "a?b", "ü"):
        with pytest.raises((errors.NotFoundError, errors.RequestError, InputError)):
            client.collections.get(wrong)
    for wrong in ("", "\udcff"):
        with pytest.raises(InputError):
            client.collections.get(wrong)


def test_search(filled):
    found = filled.search({"text": PAIRS["text"][7]}, database="image", limit=5)
    assert len(found) == 5
    assert found.ids == [hit.id for hit in found]
    assert found.distances.dtype == found.scores.dtype == np.float32
    assert found.distances.tolist() == sorted(found.distances.tolist())
    assert found[0].database == "image"
    assert found[0].payload["n"] == int(found.ids[0].removeprefix("item-"))
    assert filled.search({"text": PAIRS["text"][7]}, database="image", limit=2, offset=2).ids == found.ids[2:4]
    assert found[1:3] == found.hits[1:3]
    above = filled.search({"text": PAIRS["text"][7]}, database="image", score_threshold=found[2].score)
    assert above.ids == found.ids[:3]
    several = filled.search({"text": PAIRS["text"][7]}, database=["image", "text"], limit=40)
    assert {hit.database for hit in several} == {"image", "text"}
    assert [hit.payload for hit in filled.search(by_id="item-2", with_payload=False)] == [None] * 10
    parts = filled.search(by_id="item-2", with_payload=["even"], filter={"must": [{"key": "even", "exists": True}]})
    assert all(set(hit.payload) == {"even"} for hit in parts)
    assert filled.search(by_id="item-2", metric="euclidean")[0].score < 0


def test_search_by_examples_is_as_the_route_has_it(filled):
    found = filled.search(like=["item-2", {"text": PAIRS["text"][3]}], unlike=["item-5"], database="text")
    vector = PAIRS["text"][3].tolist()
    body = {"query_by": {"positive": ["item-2", {"text": vector}], "negative": ["item-5"]}, "database": "text"}
    raw = filled.request("POST", "/search", body)
    assert found.ids == [hit["id"] for hit in raw["results"]]
    assert not {"item-2", "item-5"} & set(found.ids)


def test_pages_and_iteration_give_all_in_order(filled):
    every = filled.search(by_id="item-2", database="text", limit=100)
    assert len(every) == 39
    assert every.next_cursor is None
    first = filled.search(by_id="item-2", database="text", limit=25)
    second = filled.search(by_id="item-2", database="text", limit=25, cursor=first.next_cursor)
    assert first.ids + second.ids == every.ids
    assert [hit.id for hit in filled.search_iter(by_id="item-2", database="text", page=7)] == every.ids
    assert list(filled.search_iter(by_id="item-2", database="text", page=7, score_threshold=1.5)) == []


def test_iteration_ends_where_the_service_ends_it(kind, tmp_path):
    with connected(kind, app_transport(kind, tmp_path / "data", max_limit=20)) as client:
        client.models.upload("tiny", MODEL_FILE)
        client.collections.create("default", "tiny")
        client.index(range(30), {"text": PAIRS["text"][:30]})
        query = {"text": PAIRS["text"][0]}
        with pytest.raises(errors.RequestError, match="cursor"):
            list(client.search_iter(query, database="text", page=8))
        few = client.search_iter(query, database="text", page=8, filter={"must": [{"ids": ["1", "2"]}]})
        assert sorted(hit.id for hit in few) == ["1", "2"]


def test_batches(filled):
    queries = {name: array[:5].copy() for name, array in PAIRS.items()}
    queries["image"][1] = np.nan
    found = filled.search_batch(queries, database=["image", "text"], limit=3)
    assert len(found) == 5
    spelled = [
        {name: array[i] for name, array in queries.items() if not (name == "image" and i == 1)} for i in range(5)
    ]
    again = filled.search_batch(spelled, database=["image", "text"], limit=3)
    for query, hits, same in zip(spelled, found, again, strict=True):
        assert hits.ids == same.ids
        assert hits.ids == filled.search(query, database=["image", "text"], limit=3).ids
    assert filled.search_batch([]) == []
    queries["text"][1] = np.nan
    with pytest.raises(InputError, match=r"queries\[1\]: expected features of one modality"):
        filled.search_batch(queries)


def test_groups(filled):
    found = filled.search_groups({"text": PAIRS["text"][7]}, group_by="even", group_size=4, database="text")
    assert sorted(group.key for group in found) == [False, True]
    for group in found:
        assert [hit.payload["even"] for hit in group] == [group.key] * 4
    assert filled.search_groups(by_id="item-2", group_by="even", limit=1, offset=1)[0].key in (False, True)


def test_rescoring(client):
    client.collections.create("kept", "tiny", keep="float16")
    kept = client.collection("kept")
    kept.index(range(100), {name: array[:100] for name, array in PAIRS.items()})
    latents = MODEL.project({"text": PAIRS["text"][:1]})[0], MODEL.project({"image": PAIRS["image"][:100]})
    exact = 1 - latents[1] @ latents[0] / np.linalg.norm(latents[0]) / np.linalg.norm(latents[1], axis=1)
    found = kept.search({"text": PAIRS["text"][0]}, database="image", limit=5, rescore=True, oversampling=20)
    assert found.ids == [str(i) for i in np.argsort(exact)[:5]]
    np.testing.assert_allclose(found.distances, np.sort(exact)[:5], atol=2e-3)


def test_items(filled):
    item = filled.get("item-5")
    assert (item.id, item.payload, item.databases) == ("item-5", {"n": 5, "even": False}, ("image", "text", "pair"))
    listed = list(filled.items(page=7))
    assert [found.id for found in listed] == [f"item-{i}" for i in range(60)]
    assert listed[5] == item
    page = filled.item_page(limit=50)
    assert (len(page), filled.item_page(cursor=page.next_cursor)[0].id) == (50, "item-50")
    changed = filled.set_payload("item-5", {"new": [1, None]}, if_match=item.version)
    assert changed.version > item.version
    assert filled.get("item-5").payload == {"new": [1, None]}
    with pytest.raises(errors.VersionMismatchError) as caught:
        filled.set_payload("item-5", None, if_match=item.version)
    assert caught.value.status == 412
    assert filled.set_payload("item-5", None).id == "item-5"
    assert filled.get("item-5").payload is None
    assert filled.delete(["item-5", "nobody"]).deleted == 1
    assert filled.delete([]).deleted == 0
    assert filled.delete(filter={"must": [{"key": "n", "range": {"lt": 10}}]}).deleted == 9
    with pytest.raises(errors.ItemNotFoundError, match="item-5"):
        filled.get("item-5")


def test_facets(filled):
    found = filled.facets("even", filter={"must": [{"key": "n", "range": {"lt": 15}}]})
    assert [(facet.value, facet.count) for facet in found] == [(True, 8), (False, 7)]
    assert (found.total, found.missing, len(filled.facets("n", limit=3))) == (15, 0, 3)


def test_snapshots(filled, tmp_path):
    made = filled.snapshots.create()
    assert made.collections == {"default": 60}
    assert filled.snapshots.list() == [made]
    filled.snapshots.download(made, tmp_path / "s.tar")
    assert (tmp_path / "s.tar").stat().st_size == made.size
    filled.snapshots.delete(made)
    with pytest.raises(errors.SnapshotNotFoundError):
        filled.snapshots.delete(made.name)


def test_the_server(client):
    assert client.ready() is True
    assert client.version()
    assert client.limits().dimensions == {"default": {"image": 12, "text": 8}}
    assert client.limits().max_batch_items == 10_000


def test_arguments_are_refused_before_anything_is_sent(shared):
    vector = PAIRS["text"][0]
    for wrong, words in (
        ({}, "exactly one of features, by_id and like"),
        ({"features": {"text": vector}, "by_id": "x"}, "exactly one of"),
        ({"by_id": "x", "unlike": ["y"]}, "unlike: expected examples of like"),
        ({"like": "item-1"}, "like: expected a list"),
        ({"like": [True]}, "expected an id"),
        ({"features": {}}, "expected features by modality"),
        ({"features": vector}, "the query: expected features by modality"),
        (
            {"features": {"text": np.zeros((2, 8))}},
            r"text: expected one vector of numbers, got an array of shape \(2, 8\)",
        ),
        ({"features": {"text": ["a"]}}, "text: expected an array of numbers"),
        ({"by_id": "x", "filter": {"must": [{1, 2}]}}, "cannot be written as JSON"),
    ):
        with pytest.raises(InputError, match=words):
            shared.search(**wrong)
    with pytest.raises(TypeError, match="unexpected option 'databse': did you mean 'database'"):
        shared.search(by_id="x", databse="text")
    with pytest.raises(TypeError, match="rescore"):
        shared.search_groups(by_id="x", group_by="n", rescore=True)
    for wrong in ({}, {"ids": ["x"], "filter": {}}, {"ids": "x"}):
        with pytest.raises(InputError):
            shared.delete(**wrong)


@settings(max_examples=20, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40))
def test_an_item_of_any_id_is_that_item(shared, name):
    shared.index([name], {"text": PAIRS["text"][:1]}, [{"name": name}])
    assert shared.get(name).payload == {"name": name}
    assert shared.set_payload(name, {"again": name}).id == name
    assert shared.search(by_id=name, database="text").ids.count(name) == 0
    assert shared.delete([name]).deleted == 1


@pytest.mark.parametrize("name", [".", "..", "...", "a/../b", "/", "%2E", "a?b#c", " ", "\n"])
def test_an_item_with_an_id_that_paths_do_not_like(shared, name):
    shared.index([name], {"text": PAIRS["text"][:1]})
    assert shared.get(name).id == name
    assert shared.set_payload(name, {"n": 1}).id == name
    assert shared.delete([name]).deleted == 1


def test_a_closed_client_says_so(client, kind):
    client.close()
    with pytest.raises(InputError, match="the client is closed: make another"):
        client.get("x")


def test_queries_of_a_batch_without_modalities_are_told(client):
    with pytest.raises(InputError, match=r"^queries\[0\]: expected features by modality"):
        client.search_batch(PAIRS["text"][:2])


def test_items_that_match_are_listed_and_counted(filled):
    even = {"must": [{"key": "even", "match": {"value": True}}]}
    want = [f"item-{i}" for i in range(0, 60, 2)]
    assert [item.id for item in filled.items(filter=even, page=7)] == want
    page = filled.item_page(filter=even, limit=4, with_codes=True)
    assert ([item.id for item in page], page.total, page.model) == (want[:4], 30, "tiny")
    assert all(item.codes for item in page)
    rest = filled.item_page(filter=even, limit=100, cursor=page.next_cursor)
    assert [item.id for item in rest] == want[4:]
    some = {"must": [{"ids": ["item-5", "item-3"]}]}
    assert [item.id for item in filled.items(filter=some)] == ["item-3", "item-5"]
    assert filled.item_page(limit=2).total == filled.count() == 60
    assert filled.count(even) == filled.count(filter=even) == 30
    for ask in (filled.count, lambda given: list(filled.items(filter=given))):
        with pytest.warns(UnknownKeyWarning, match="no items: .*'evne'.* did you mean 'even'"):
            assert not ask({"must": [{"key": "evne", "match": {"value": True}}]})
        filled._connection._seen.clear()
