"""Texts and images by the client: they arrive as they are, in every verb that takes features."""

import numpy as np
import pytest

from ccq_client import InputError, errors
from tests.client.kinds import app_transport, connected
from tests.service.encoders.conftest import BOTH
from tests.service.encoders.fakes import add_kinds, letters, number_of, write_tables
from tests.service.harness import MODEL_FILE

WORDS = ["cab", "face", "bead"]
FILES = [b"\x01\x02\x03", b"\xff\xfe", b"GIF89a"]


@pytest.fixture
def encoding(kind, tmp_path, monkeypatch):
    """A client of a collection with encoders, which has three items: `i` is the i-th word and file."""
    add_kinds(monkeypatch)
    file = write_tables(tmp_path)
    with connected(kind, app_transport(kind, tmp_path / "data", encoders=file)) as client:
        client.models.upload("tiny", MODEL_FILE)
        made = client.collections.create("default", "tiny", encoders=BOTH)
        assert made.encoders == BOTH
        done = client.index(["0", "1", "2"], {"text": WORDS, "image": FILES})
        assert (done.indexed, done.left_out) == (3, 0)
        yield client


def ranked(hits):
    return [(hit.id, hit.distance) for hit in hits]


@pytest.mark.parametrize("i", range(3))
def test_searches_find_what_was_indexed_by_the_same(encoding, i):
    for raw, features in (
        ({"text": WORDS[i]}, {"text": letters(WORDS[i])}),
        ({"image": FILES[i]}, {"image": number_of(FILES[i])}),
        ({"image": FILES[i], "text": letters(WORDS[i])}, {"image": number_of(FILES[i]), "text": letters(WORDS[i])}),
    ):
        database = "pair" if len(raw) == 2 else next(iter(raw))
        hits = encoding.search(raw, database=database)
        assert ranked(hits) == ranked(encoding.search(features, database=database))
        assert len(hits) == 3
        by = encoding.search(like=["0", raw], database=database)
        assert ranked(by) == ranked(encoding.search(like=["0", features], database=database))


def test_batches_of_texts_and_images(encoding):
    vectors = {"text": np.array([letters(word) for word in WORDS])}
    want = [ranked(hits) for hits in encoding.search_batch(vectors, database="text")]
    assert [ranked(hits) for hits in encoding.search_batch({"text": WORDS}, database="text")] == want
    assert [ranked(hits) for hits in encoding.search_batch([{"text": word} for word in WORDS], database="text")] == want
    files = encoding.search_batch({"image": tuple(FILES)}, database="image")
    assert [ranked(hits) for hits in files] == [ranked(encoding.search({"image": x}, database="image")) for x in FILES]


def test_absent_ones_are_none_and_arrays_go_beside_them(encoding):
    image = np.array([number_of(data) for data in FILES])
    image[2] = np.nan
    done = encoding.index(
        ["a", "b", "c", "d"], {"text": ["cab", None, None, "bead"], "image": np.vstack([image, image[2:]])}
    )
    assert (done.indexed, done.left_out) == (3, 1)
    assert encoding.get("a").databases == ("image", "text", "pair")
    assert encoding.get("b").databases == ("image",)
    assert encoding.get("d").databases == ("text",)
    with pytest.raises(errors.ItemNotFoundError):
        encoding.get("c")


def test_long_texts_count_towards_the_length_of_requests(encoding):
    texts = [f"cab {'é' * 5000}" for _ in range(6)]
    done = encoding.index([f"long-{i}" for i in range(6)], {"text": texts}, batch_bytes=25_000)
    assert (done.indexed, done.requests) == (6, 3)


def test_what_is_wrong_has_its_place(encoding):
    with pytest.raises(
        InputError, match=r"features\['text'\]: row 1: expected a text or the bytes of an image, got int"
    ):
        encoding.index(["a", "b"], {"text": ["cab", 5]})
    with pytest.raises(InputError, match="expected as many rows of each modality"):
        encoding.index(["a", "b"], {"text": ["cab", "bad"], "image": np.ones((3, 12))})
    with pytest.raises(errors.FeaturesError) as refused:
        encoding.search({"text": "xyz"})
    assert refused.value.code == "cannot_encode"
    with pytest.raises(errors.ServerError):
        encoding.search({"text": "boom"})
    with pytest.raises(errors.NotFoundError) as refused:
        encoding.collections.create("default", "tiny", encoders={"text": "none"})
    assert refused.value.code == "encoder_not_found"
    assert encoding.collections.create("default", "tiny", encoders={}).encoders == {}
    with pytest.raises(errors.FeaturesError, match="no encoder for 'text'"):
        encoding.search({"text": "cab"})
