"""Indexing, reading and deleting items."""

import base64

import pytest

from service.schemas.items import DeleteReply, IndexReply, ItemPage, StoredItem
from tests.service.harness import MODEL, PAIRS, InProcess, assert_problem, features, item


def ids(service, path="/items", **query):
    return [found["id"] for found in service.get(path, params=query).json()["items"]]


def stored_codes(service, item_id):
    """The item's code rows by database; in memory they are what the store has."""
    collection = service.catalog.collection("default")
    with collection.read() as (view, snapshot):
        seq = snapshot.item(item_id).seq
        parts = [(seqs, data) for seqs, data in snapshot.codes() if seq in seqs]
        assert len(parts) == 1
        codes = collection.view.coder.layout.unpack(parts[0][1])
        at = parts[0][0].tolist().index(seq)
        in_memory = view.codes(seq)
    stored = {
        database: codes.rows[at, i].tolist()
        for i, database in enumerate(collection.view.coder.layout.databases)
        if codes.present[at, i]
    }
    assert {database: row.tolist() for database, row in in_memory.items()} == stored
    return stored


def test_items_are_encoded_for_each_modality_and_for_the_pair(service):
    reply = service.ok("POST", "/index", {"items": [item(0), item(1, "image"), item(2, "text")]})
    IndexReply.model_validate(reply)
    assert reply["indexed"] == 3
    both = {name: array[:1] for name, array in PAIRS.items()}
    assert stored_codes(service, "item-0") == {
        "image": MODEL.encode({"image": both["image"]})[0].tolist(),
        "text": MODEL.encode({"text": both["text"]})[0].tolist(),
        "pair": MODEL.encode(both)[0].tolist(),
    }
    assert stored_codes(service, "item-1") == {"image": MODEL.encode({"image": PAIRS["image"][1:2]})[0].tolist()}
    assert stored_codes(service, "item-2") == {"text": MODEL.encode({"text": PAIRS["text"][2:3]})[0].tolist()}


def test_base64_and_lists_mean_the_same(service):
    vector = PAIRS["image"][5]
    encoded = base64.b64encode(vector.astype("<f4").tobytes()).decode()
    items = [
        {"id": "list", "features": {"image": vector.tolist()}},
        {"id": "base64", "features": {"image": encoded}},
    ]
    service.ok("POST", "/index", {"items": items})
    assert stored_codes(service, "list") == stored_codes(service, "base64")


def test_an_item_comes_back_with_its_payload_and_databases(service):
    service.ok("POST", "/index", {"items": [item(0, title="naïve ☃"), {"id": "x", "features": features(1, "text")}]})
    first = service.ok("GET", "/items/item-0")
    assert first == {
        "id": "item-0",
        "version": 1,
        "payload": {"n": 0, "title": "naïve ☃"},
        "databases": ["image", "text", "pair"],
    }
    StoredItem.model_validate(first)
    assert service.ok("GET", "/items/x") == {"id": "x", "version": 1, "payload": None, "databases": ["text"]}


def test_an_integer_id_means_its_decimal_string(service):
    service.ok("POST", "/index", {"items": [{"id": 7, "features": features(0)}]})
    service.ok("POST", "/index", {"items": [{"id": "7", "features": features(1, "text")}]})
    assert service.ok("GET", "/items/7")["databases"] == ["text"]
    assert service.ok("POST", "/items/delete", {"ids": [7]})["deleted"] == 1


def test_a_known_id_is_replaced_and_counts_as_newly_inserted(service):
    service.ok("POST", "/index", {"items": [item(0), item(1), item(2)]})
    service.ok("POST", "/index", {"items": [{**item(1, "text"), "payload": {"new": True}}]})
    assert ids(service) == ["item-0", "item-2", "item-1"]
    assert service.ok("GET", "/items/item-1") == {
        "id": "item-1",
        "version": 2,
        "payload": {"new": True},
        "databases": ["text"],
    }
    assert service.ok("GET", "/collections/default")["databases"] == {"image": 2, "text": 3, "pair": 2}


def test_listing_goes_page_by_page_in_order_of_insertion(filled):
    seen, cursor, pages = [], None, 0
    while cursor is not None or pages == 0:
        page = filled.get("/items", params={"limit": 25, **({"cursor": cursor} if cursor else {})}).json()
        ItemPage.model_validate(page)
        seen += [found["id"] for found in page["items"]]
        cursor, pages = page["next_cursor"], pages + 1
    assert pages == 3
    assert seen == [f"item-{i}" for i in range(60)]
    assert ids(filled, limit=60) == seen
    assert filled.get("/items", params={"limit": 60}).json()["next_cursor"] is None


def test_delete_one(filled):
    assert filled.delete("/items/item-3").status_code == 204
    assert_problem(filled.get("/items/item-3"), 404, "item_not_found")
    assert_problem(filled.delete("/items/item-3"), 404, "item_not_found")
    assert filled.ok("GET", "/collections/default")["items"] == 59


def test_delete_by_ids_passes_over_the_unknown(filled):
    reply = filled.ok("POST", "/items/delete", {"ids": ["item-3", "nobody", "item-4", "item-3"]})
    DeleteReply.model_validate(reply)
    assert reply["deleted"] == 2
    assert filled.ok("GET", "/collections/default")["items"] == 58
    assert filled.ok("POST", "/items/delete", {"ids": []})["deleted"] == 0


def test_delete_by_filter(filled):
    condition = {"must": [{"key": "n", "range": {"lt": 30}}], "must_not": [{"key": "even", "match": {"value": True}}]}
    assert filled.ok("POST", "/items/delete", {"filter": condition})["deleted"] == 15
    assert ids(filled, limit=100) == [f"item-{i}" for i in range(60) if i >= 30 or i % 2 == 0]
    assert filled.ok("POST", "/items/delete", {"filter": condition})["deleted"] == 0


@pytest.mark.parametrize(
    "condition",
    [
        {},
        {"must": []},
        {"must": [{}]},
        {"must_not": [{"should": []}]},
        {"must_not": [{"ids": []}]},
        {"must_not": [{"key": "n", "match": {"any": []}}]},
        {"must": [{"must_not": [{"ids": []}]}]},
        {"should": [{"key": "n", "match": {"value": 1}}, {"must_not": [{"ids": []}]}]},
    ],
)
def test_a_filter_with_a_part_that_says_nothing_deletes_nothing(filled, condition):
    problem = assert_problem(filled.post("/items/delete", {"filter": condition}), 422, "invalid_request")
    assert problem["errors"][0]["pointer"] == "#/filter"
    assert filled.ok("GET", "/collections/default")["items"] == 60


def test_everything_survives_a_restart(filled):
    filled.ok("POST", "/items/delete", {"ids": ["item-5", "item-59"]})
    before = filled.get("/items", params={"limit": 100}).json()
    query = {"query": features(3), "database": ["image", "text", "pair"], "limit": 200}
    results = filled.ok("POST", "/search", query)["results"]
    filled.restart()
    assert filled.get("/items", params={"limit": 100}).json() == before
    assert filled.ok("POST", "/search", query)["results"] == results
    filled.ok("POST", "/index", {"items": [item(59)]})  # numbers are not used twice, also after the last was deleted
    assert ids(filled, limit=100)[-1] == "item-59"


def test_collections_do_not_see_each_other(filled):
    filled.create("other")
    filled.ok("POST", "/collections/other/index", {"items": [item(0, place="other")]})
    assert ids(filled, "/collections/other/items") == ["item-0"]
    assert filled.ok("GET", "/items/item-0")["payload"] == {"n": 0, "even": True}
    assert filled.ok("GET", "/collections/default/items/item-0") == filled.ok("GET", "/items/item-0")
    assert filled.delete("/collections/other/items/item-0").status_code == 204
    assert filled.get("/items/item-0").status_code == 200


def test_the_default_collection_is_a_setting(tmp_path):
    service = InProcess(tmp_path, default_collection="mine")
    try:
        service.create("mine")
        service.ok("POST", "/index", {"items": [item(0)]})
        assert ids(service, "/collections/mine/items") == ["item-0"]
    finally:
        service.close()
