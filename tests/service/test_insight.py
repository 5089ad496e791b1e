"""What is in a collection, to be looked at: codeword usage and the map, against plain counts and NumPy's SVD."""

import numpy as np
import pytest

from service import insight
from service.schemas.insight import LatentMap, Usage
from tests.service.harness import MODEL, assert_problem, item
from tests.service.plain import Plain

USAGE = "/collections/default/usage"
MAP = "/collections/default/map"


def counted(service):
    """How often each codeword occurs, by looking at every row."""
    counts = np.zeros((2, 256), int)
    for _, codes in Plain(service).rows.values():
        for book in range(2):
            for word in codes[:, book]:
                counts[book, word] += 1
    return counts.tolist()


def test_usage_counts_every_live_row(filled):
    filled.ok("POST", "/items/delete", {"ids": ["item-2", "item-5", "item-7"]})
    found = filled.ok("GET", USAGE)
    Usage.model_validate(found)
    assert found["codebooks"] == counted(filled)
    assert (
        found["rows"]
        == sum(found["codebooks"][0])
        == sum(filled.ok("GET", "/collections/default")["databases"].values())
    )


def test_of_an_empty_collection_there_is_nothing(service):
    assert service.ok("GET", USAGE)["codebooks"] == np.zeros((2, 256), int).tolist()
    assert service.ok("GET", MAP) == {"model": "tiny", "version": 0, "rows": 0, "explained": [0, 0], "points": []}


def test_the_map_is_the_principal_plane_of_decoded_directions(filled):
    found = filled.ok("GET", MAP)
    LatentMap.model_validate(found)
    plain = Plain(filled)
    latent = np.concatenate([MODEL.decode(codes) for _, codes in plain.rows.values()]).astype(float)
    latent /= np.linalg.norm(latent, axis=1, keepdims=True)
    left, sizes, _ = np.linalg.svd(latent - latent.mean(axis=0), full_matrices=False)
    expected = left[:, :2] * sizes[:2]
    got = np.array([[point["x"], point["y"]] for point in found["points"]])
    assert np.allclose(np.abs(got), np.abs(expected), atol=2e-5)  # directions may point either way
    assert found["explained"] == pytest.approx(sizes[:2] ** 2 / (sizes**2).sum(), abs=1e-5)
    assert [(point["database"], point["id"]) for point in found["points"]] == [
        (name, plain.ids[label]) for name, (labels, _) in plain.rows.items() for label in labels.tolist()
    ]


def test_a_sample_has_of_every_database_its_share(filled):
    filled.ok("POST", "/index", {"items": [item(i, "image") for i in range(60, 360)]})
    points = filled.ok("GET", f"{MAP}?sample=42")["points"]
    assert len(points) == 42
    shares = [sum(point["database"] == name for point in points) for name in ("image", "text", "pair")]
    assert shares[0] > 30
    assert min(shares) >= 3
    assert len({(point["id"], point["database"]) for point in points}) == 42
    assert len(filled.ok("GET", f"{MAP}?sample=1")["points"]) == 1


def test_labels_are_text_or_numbers_of_the_payload_and_short(service):
    payloads = [
        {"a": {"b": "cat"}},
        {"a": [{"b": 7}]},
        {"a": {"b": True}},
        {"a": {"b": {}}},
        None,
        {"a": {"b": "x" * 500}},
    ]
    service.ok("POST", "/index", {"items": [{**item(i, "text"), "payload": p} for i, p in enumerate(payloads)]})
    labels = [point["label"] for point in service.ok("GET", f"{MAP}?label=a.b")["points"]]
    assert labels == ["cat", "7", None, None, None, "x" * 64]
    assert {point["label"] for point in service.ok("GET", MAP)["points"]} == {None}


def test_what_was_worked_out_is_kept_until_the_collection_changes(filled, monkeypatch):
    calls = []

    def counting(work):
        return lambda *args: calls.append(1) or work(*args)

    for name in ("usage", "latent_map"):
        monkeypatch.setattr(insight, name, counting(getattr(insight, name)))
    before = [filled.ok("GET", path) for path in (USAGE, MAP, USAGE, MAP, f"{MAP}?sample=5")]
    assert len(calls) == 3
    filled.ok("POST", "/index", {"items": [item(100)]})
    after = [filled.ok("GET", path) for path in (USAGE, MAP)]
    assert len(calls) == 5
    assert after[0]["rows"] == after[1]["rows"] == before[0]["rows"] + 3
    assert after[0]["version"] == before[0]["version"] + 1


def test_only_the_last_ones_are_kept(filled, monkeypatch):
    monkeypatch.setattr(insight, "_KEPT", 2)
    for sample in (1, 2, 3, 2):
        filled.ok("GET", f"{MAP}?sample={sample}")
    assert [key[-2] for key in filled.app.state.runtime.insight._known] == [3, 2]


@pytest.mark.parametrize("query", ["sample=0", "sample=2001", "sample=x", "label=", "label=" + "k" * 1001])
def test_what_a_map_cannot_be_is_refused(filled, query):
    assert_problem(filled.get(f"{MAP}?{query}"), 422, "invalid_request")


def test_directions_that_are_not_there_are_zeros():
    places, explained = insight.principal_plane(np.array([[1.0], [3.0]]))
    assert places.tolist() == [[-1, 0], [1, 0]]
    assert explained.tolist() == [1, 0]
    places, explained = insight.principal_plane(np.ones((3, 4)))
    assert not places.any()
    assert not explained.any()
