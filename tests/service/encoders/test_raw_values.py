"""Texts and images in requests: they count as what their encoders make of them, and what is wrong has its place."""

import numpy as np
import pytest

from service import gathering
from service.encoders.raw import encode_raw, has_raw
from service.metrics import REGISTRY
from tests.service.encoders.fakes import base64_of, letters, number_of, serving
from tests.service.harness import assert_problem, features, item

WORD = "a bad cabbage"
FILE = b"\x89PNG of a cat"


def search(service, **body):
    reply = service.ok("POST", "/search", {"with_payload": False, **body})
    return reply["results"]


def vector64(numbers):
    return base64_of(np.array(numbers, dtype="<f4").tobytes())


def encoder(service, modality="text"):
    return service.catalog.collection("default").encoders[modality]


# -- the same as features --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("raw", [WORD, {"text": WORD}])
@pytest.mark.parametrize("database", ["image", "text", "pair", ["image", "text"]])
def test_a_text_searches_as_its_features_do(encoding, raw, database):
    found = search(encoding, query={"text": raw}, database=database)
    assert found == search(encoding, query={"text": letters(WORD)}, database=database)
    assert len(found) == 10


def test_an_image_searches_as_its_features_do(encoding):
    found = search(encoding, query={"image": {"base64": base64_of(FILE)}}, database="text")
    assert found == search(encoding, query={"image": number_of(FILE)}, database="text")


def test_raw_values_and_features_go_together(encoding):
    raw = search(encoding, query={"text": WORD, "image": {"base64": base64_of(FILE)}}, database="pair")
    mixed = search(encoding, query={"text": {"text": WORD}, "image": number_of(FILE)}, database="pair")
    assert raw == mixed == search(encoding, query={"text": letters(WORD), "image": number_of(FILE)}, database="pair")


def test_every_form_of_a_search_takes_them(encoding):
    texts = [WORD, "face", "egg"]
    several = search(encoding, queries=[{"text": text} for text in texts], database="image")
    assert several == search(encoding, queries=[{"text": letters(text)} for text in texts], database="image")
    for form in (lambda x: {"positive": ["item-0", x, {"text": letters("face")}], "negative": [{"text": "egg"}]},):
        by = search(encoding, query_by=form({"text": WORD}), database="text")
        assert by == search(encoding, query_by=form({"text": letters(WORD)}), database="text")
    only = {"must": [{"key": "even", "match": {"value": True}}]}
    for more in ({"filter": only}, {"group_by": "even", "limit": 2}, {"offset": 5}, {"score_threshold": 0.1}):
        raw = search(encoding, query={"text": WORD}, database="text", **more)
        assert raw == search(encoding, query={"text": letters(WORD)}, database="text", **more)
        assert raw


def test_pages_by_cursor_go_on(encoding):
    whole = search(encoding, query={"text": WORD}, database="text", limit=30)
    got, cursor = [], None
    while True:
        body = {"query": {"text": WORD}, "database": "text", "limit": 7, "with_payload": False}
        reply = encoding.ok("POST", "/search", body if cursor is None else {**body, "cursor": cursor})
        got += reply["results"]
        cursor = reply["next_cursor"]
        if cursor is None or len(got) >= 30:
            break
    assert got[:30] == whole


def test_items_are_indexed_by_them(encoding):
    raw = {"id": "raw", "features": {"text": WORD, "image": {"base64": base64_of(FILE)}}}
    same = {"id": "same", "features": {"text": letters(WORD), "image": number_of(FILE)}}
    encoding.ok("POST", "/index", {"items": [raw, item(3), same]})
    for database in ("text", "image", "pair"):
        hits = search(encoding, query={"text": WORD}, database=database, limit=60)
        by_id = {hit["id"]: hit["distance"] for hit in hits}
        assert by_id["raw"] == by_id["same"]


def test_what_was_found_by_features_before_still_is(encoding):
    for value in (features(4, "text")["text"], vector64(features(4, "text")["text"])):
        assert search(encoding, query={"text": value}, database="text", limit=1)[0]["id"] == "item-4"


# -- where encoders work ---------------------------------------------------------------------------------------------


def test_encoders_work_in_threads_and_features_need_none(encoding, monkeypatch):
    used = encoder(encoding)._encoder
    looked = []
    found = gathering.search_together

    def watched(*args, quick=False):
        looked.append(quick)
        return found(*args, quick=quick)

    monkeypatch.setattr(gathering, "search_together", watched)
    search(encoding, query={"text": letters(WORD)}, database="text")
    assert looked == [True]
    assert not used.calls
    search(encoding, query={"text": WORD}, database="text")
    assert looked == [True, True, False]
    assert used.calls == [[WORD]]
    assert not any(thread.name == "MainThread" for thread in used.threads)


def test_many_values_come_in_parts_and_a_fault_keeps_its_place(encoding):
    used = encoder(encoding)._encoder
    texts = ["a " * (i + 1) for i in range(70)]
    search(encoding, queries=[{"text": text} for text in texts], database="text", limit=1)
    assert [len(call) for call in used.calls] == [32, 32, 6]
    texts[50] = "xyz"
    response = encoding.post("/search", {"queries": [{"text": text} for text in texts]})
    problem = assert_problem(response, 422, "cannot_encode")
    assert problem["errors"][0]["pointer"] == "#/queries/50/text"


def test_what_encoders_do_is_measured(encoding):
    def sample(name):
        return REGISTRY.get_sample_value(name, {"encoder": "letters"}) or 0

    names = ("ccq_encoded_total", "ccq_encoder_seconds_count")
    before = [sample(name) for name in names]
    search(encoding, queries=[{"text": WORD}] * 40, database="text", limit=1)
    encoding.post("/search", {"query": {"text": "xyz"}})  # not encoded
    assert [sample(name) - count for name, count in zip(names, before, strict=True)] == [40, 2]


def test_nothing_is_copied_where_there_is_nothing_raw(encoding):
    encoders = encoding.catalog.collection("default").encoders
    objects = [features(i) for i in range(3)]
    assert encode_raw(objects, lambda i: (i,), encoders) is objects
    assert encode_raw([{"text": WORD}], lambda i: (i,), {}) == [{"text": WORD}]
    assert not has_raw(objects, encoders)
    assert not has_raw([{"text": WORD}], {})
    assert has_raw([features(1), {"text": WORD}], encoders)


# -- what is a text --------------------------------------------------------------------------------------------------


def test_a_string_is_features_only_if_it_is_base64_of_as_many_numbers(encoding):
    used = encoder(encoding)._encoder
    assert search(encoding, query={"text": vector64(features(4, "text")["text"])}, database="text", limit=1)
    assert not used.calls
    short = vector64([1.0])  # base64 as well, but as short as a word
    assert_problem(encoding.post("/search", {"query": {"text": short}}), 422, "cannot_encode")
    assert used.calls == [[short]]


def test_long_base64_of_another_length_is_no_text(encoding):
    for dim in (12, 128):
        response = encoding.post("/search", {"query": {"text": vector64([0.25] * dim)}})
        assert f"expected 8 numbers, got {dim}" in assert_problem(response, 422, "invalid_features")["detail"]
        assert not encoder(encoding)._encoder.calls
    text = vector64([0.25] * 128)
    search(encoding, query={"text": {"text": text}}, database="text")
    assert encoder(encoding)._encoder.calls == [[text]]


# -- what is wrong ---------------------------------------------------------------------------------------------------

NO_IMAGE = 'expected features or {"base64": base64 of an image file}, got'


@pytest.mark.parametrize(
    ("modality", "value", "reason"),
    [
        ("text", "xyz", "expected one of the letters abcdefgh, got 'xyz' (encoder letters)"),
        ("text", {"text": "xyz"}, "expected one of the letters abcdefgh, got 'xyz' (encoder letters)"),
        ("text", "", "expected one of the letters"),
        ("text", {"text": 5}, "expected features or {\"text\": a text}, got {'text': 5}"),
        ("text", {"base64": "AAAA"}, 'expected features or {"text": a text}, got'),
        ("text", {"text": "a", "base64": "AAAA"}, 'expected features or {"text": a text}, got'),
        ("text", {}, 'expected features or {"text": a text}, got {}'),
        ("image", {"text": "a cat"}, NO_IMAGE),
        ("image", {"base64": ["AAAA"]}, NO_IMAGE),
        ("image", {"base64": "no base64"}, "expected base64 of an image file, got 'no base64'"),
        ("text", "a" * 10_001, "expected a text of at most 10000 characters, got 10001"),
        ("image", {"base64": "AAAA" * 2000}, "expected an image file of at most 5000 bytes, got 6000"),
    ],
)
def test_a_value_that_cannot_be_encoded_is_named(tmp_path, monkeypatch, modality, value, reason):
    service = serving(tmp_path, monkeypatch, max_image_bytes=5000)
    try:
        service.create()
        encoders = {"text": "letters", "image": "bytes"}
        service.ok("PUT", "/collections/default", {"model": "tiny", "encoders": encoders})
        problem = assert_problem(service.post("/search", {"query": {modality: value}}), 422, "cannot_encode")
        assert problem["detail"].startswith(f"query.{modality}: {reason}")
        assert problem["errors"][0]["pointer"] == f"#/query/{modality}"
        items = {"items": [item(0), {"id": "b", "features": {modality: value}}]}
        problem = assert_problem(service.post("/index", items), 422, "cannot_encode")
        assert problem["errors"][0]["pointer"] == f"#/items/1/features/{modality}"
        assert service.ok("GET", "/collections/default")["items"] == 0
    finally:
        service.close()


def test_without_an_encoder_features_are_expected(filled):
    response = filled.post("/search", {"query": {"text": {"text": "a red car"}}})
    detail = assert_problem(response, 422, "invalid_features")["detail"]
    assert "expected a list of 8 numbers or a base64 string" in detail
    assert "the collection has no encoder for 'text'" in detail
    response = filled.post("/search", {"query": {"text": "a red car"}})
    detail = assert_problem(response, 422, "invalid_features")["detail"]
    assert "no encoder that takes a string for 'text'" in detail


def test_an_unknown_modality_is_still_unknown(encoding):
    response = encoding.post("/search", {"query": {"sound": {"text": "a"}}})
    assert_problem(response, 422, "unknown_modality")


def test_an_encoder_that_fails_is_the_servers_matter(encoding, caplog):
    problem = assert_problem(encoding.post("/search", {"query": {"text": "boom"}}), 500, "encoder_failed")
    assert "fire" not in problem["detail"]
    assert "the model is on fire" in caplog.text
    response = encoding.post("/index", {"items": [{"id": "b", "features": {"text": "boom"}}]})
    assert_problem(response, 500, "encoder_failed")
    assert len(search(encoding, query={"text": WORD})) == 10


@pytest.mark.parametrize(
    "given",
    [
        np.zeros((1, 7), np.float32),
        np.zeros((2, 8), np.float32),
        np.zeros(8, np.float32),
        np.full((1, 8), np.nan, np.float32),
        np.array([["a"] * 8]),
        None,
    ],
)
def test_what_an_encoder_gives_is_checked(encoding, monkeypatch, given):
    monkeypatch.setattr(encoder(encoding)._encoder, "encode", lambda values: given)
    assert_problem(encoding.post("/search", {"query": {"text": "a"}}), 500, "encoder_failed")


def test_one_searchs_fault_is_no_matter_of_those_beside_it(encoding):
    import asyncio

    async def together():
        bodies = [{"query": {"text": text}, "database": "text"} for text in (WORD, "xyz", "boom", "face")]
        return await asyncio.gather(*(encoding.client.post("/search", json=body) for body in bodies))

    assert [response.status_code for response in encoding.run(together())] == [200, 422, 500, 200]
