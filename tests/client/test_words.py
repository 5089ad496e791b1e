"""What users read: warnings about searches that find nothing, and problems in the words of the client."""

import re
import warnings
from pathlib import Path

import httpx
import numpy as np
import pytest

from ccq_client import ApiError, EmptyDatabaseWarning, UnknownKeyWarning
from ccq_client.errors import CODES
from service.errors import (
    UnknownAliasError,
    UnknownCollectionError,
    UnknownJobError,
    UnknownModelError,
    UnknownSnapshotError,
)
from service.problems import kind_of
from tests.client.kinds import connected
from tests.service.harness import PAIRS


@pytest.mark.parametrize("verb", ["search", "search_batch", "search_groups", "search_iter"])
def test_a_search_of_an_empty_database_says_which_have_items(client, verb):
    client.index(["a", "b"], {"text": PAIRS["text"][:2]}, [{"n": 1}, None])
    query = {"text": PAIRS["text"][:1]} if verb == "search_batch" else {"text": PAIRS["text"][0]}
    more = {"group_by": "n"} if verb == "search_groups" else {}
    with pytest.warns(EmptyDatabaseWarning) as caught:
        list(getattr(client, verb)(query, **more))
    assert str(caught[0].message) == (
        "no results: database 'pair', the default, of collection 'default' has no items. Items are in 'text' (2): "
        "search with database='text'. An item is in 'pair' if it has several modalities"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(getattr(client, verb)(query, **more))  # once
        assert any(list(getattr(client, verb)(query, **more, database="text")))
        list(getattr(client, verb)(query, **more, database="text", filter={"must": [{"ids": ["c"]}]}))
    with pytest.warns(EmptyDatabaseWarning, match="databases 'image', 'pair' of collection 'default' have no items"):
        list(getattr(client, verb)(query, **more, database=["image", "pair"]))


def test_a_collection_without_items_says_so_once(client):
    with pytest.warns(EmptyDatabaseWarning, match="no results: collection 'default' has no items"):
        assert not client.search({"text": PAIRS["text"][0]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not client.search({"text": PAIRS["text"][0]})


@pytest.mark.parametrize("verb", ["search", "search_groups", "search_iter", "delete"])
def test_keys_that_are_misspelled_are_told_once(client, verb):
    payloads = [{"brand": "x", "stock": [{"shelf": 3}]}, {"Price": 4, "brand": "y"}]
    client.index(["a", "b"], {name: PAIRS[name][:2] for name in PAIRS}, payloads)

    def ask(*conditions, group_by="brand"):
        condition = {"must": [*conditions, {"must_not": [{"ids": ["a", "b"]}]}]}
        if verb == "delete":
            return client.delete(filter=condition).deleted
        more = {"group_by": group_by} if verb == "search_groups" else {}
        return len(list(getattr(client, verb)({"text": PAIRS["text"][0]}, **more, filter=condition)))

    typo = {"should": [{"key": "brnad", "match": {"value": "x"}}, {"key": "stock.shelv", "exists": True}]}
    with pytest.warns(UnknownKeyWarning) as caught:
        assert not ask(typo, {"key": "price", "range": {"gt": 1}})
    start = "nothing deleted" if verb == "delete" else "no results"
    words = f"{start}: of the first items of collection 'default' none has {{!r}} in its payload; did you mean {{!r}}?"
    assert [str(warning.message) for warning in caught] == [
        words.format("brnad", "brand"),
        words.format("price", "Price"),
        words.format("stock.shelv", "stock.shelf"),
    ]
    places = {Path(warning.filename) for warning in caught}  # that of the call, or of what runs the coroutine
    assert {place.name for place in places} <= {Path(__file__).name, "kinds.py", "events.py"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not ask(typo)
        for key in ("brand", "stock.shelf", "stock", "colour"):  # there, or like nothing that is
            assert not ask({"key": key, "exists": True})
        assert not ask({"key": "nearly brand", "exists": True})
        client.search({"text": PAIRS["text"][0]}, filter={"must_not": [{"key": "brandt", "exists": True}]})
    if verb == "search_groups":
        with pytest.warns(UnknownKeyWarning, match="'brands' in its payload; did you mean 'brand'"):
            assert not ask(group_by="brands")


@pytest.mark.parametrize("status", [403, 503])
def test_what_cannot_be_explained_is_no_error_and_takes_no_time(kind, status):
    asked = []

    def answer(request):
        asked.append(request.method)
        found = {"results": [], "next_cursor": None, "took_ms": 1.0}
        return httpx.Response(200, json=found) if request.method == "POST" else httpx.Response(status, json={})

    with connected(kind, httpx.MockTransport(answer), check_version=False) as client:
        condition = {"must": [{"key": "a", "exists": True}]}
        assert not client.search({"text": np.ones(3)}, filter=condition)
    assert asked == ["POST", "GET", "GET"]


SPOKEN = [UnknownAliasError, UnknownCollectionError, UnknownJobError, UnknownModelError, UnknownSnapshotError]


@pytest.mark.parametrize("cls", SPOKEN)
def test_problems_name_verbs_of_the_client(cls):
    error = cls("x")
    kind = kind_of(error)
    detail = str(error)
    shown = str(CODES[kind.code](kind.status, kind.code, kind.title, detail))
    assert re.search(r"; (GET|PUT) /", detail)  # the service speaks to those who speak HTTP
    assert not re.search(r"\b(GET|PUT|POST|DELETE) /", shown)
    assert "'x'; client." in shown


def test_keys_are_asked_for_as_arguments():
    detail = "expected an API key (Authorization: Bearer KEY, or X-API-Key: KEY), got none"
    error = ApiError(401, "unauthenticated", "No valid API key", detail)
    assert str(error) == (
        "No valid API key: expected an API key, got none; give a key by Client(api_key=...), or in the environment "
        "variable CCQ_API_KEY; `ccq keys create`, on the machine of the service, makes one"
    )
    assert error.detail == detail


@pytest.mark.parametrize(
    ("wrong", "shown", "told"),
    [
        ({"by_id": "x" * 600}, "by_id: ", "query_id"),
        ({"like": ["x" * 600]}, "like[0]", "query_by"),
        ({"like": ["x"], "unlike": ["y", "x" * 600]}, "unlike[1]", "query_by"),
    ],
)
def test_arguments_have_their_own_names(shared, wrong, shown, told):
    with pytest.raises(ApiError) as caught:
        shared.search(**wrong)
    assert shown in str(caught.value)
    assert told not in str(caught.value)
    assert told in caught.value.detail


def test_keys_of_writes_have_the_names_of_arguments(shared):
    with pytest.raises(ApiError, match="be: idempotency_key: "):
        shared.delete(["x"], idempotency_key="x" * 1000)
