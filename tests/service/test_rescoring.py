"""Kept features: what is kept, and results that are ranked anew by it."""

import numpy as np
import pytest

from ccq_core import CCQ
from ccq_core.features import check_features
from service.kept import KeptLayout
from service.latents import LatentCache
from tests.service.harness import DIMS, MODEL, PAIRS, InProcess, assert_problem, features, item

N = 120


def exact(query, database, numbers, metric="cosine"):
    """Numbers of items in the order of their exact distances, and the scores."""
    names = list(DIMS) if database == "pair" else [database]
    z = MODEL.project({name: PAIRS[name][numbers] for name in names}).astype(np.float64)
    (q,) = MODEL.project({name: np.array([vector]) for name, vector in query.items()}).astype(np.float64)
    if metric == "cosine":
        scores = z @ q / np.linalg.norm(z, axis=1) / np.linalg.norm(q)
    else:
        scores = -np.square(z - q).sum(axis=1)
    order = np.argsort(-scores, kind="stable")
    return [numbers[i] for i in order], scores[order]


@pytest.fixture(scope="module", params=["float16", "int8"])
def kept(request, tmp_path_factory):
    service = InProcess(tmp_path_factory.mktemp("kept") / "data")
    service.create("other")
    service.put("/collections/default", {"model": "tiny", "keep": request.param})
    service.ok("POST", "/index", {"items": [item(i) for i in range(N)]})
    yield service
    service.close()


def search(service, **body):
    return service.ok("POST", "/search", {"rescore": True, **body})["results"]


@pytest.mark.parametrize("database", ["image", "text", "pair"])
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_rescored_results_are_those_of_exact_search(kept, database, metric):
    for i in range(200, 210):
        query = features(i, "text")
        order, scores = exact(query, database, list(range(N)), metric)
        hits = search(kept, query=query, database=database, metric=metric, limit=10, oversampling=12)
        assert np.allclose([hit["score"] for hit in hits], scores[:10], atol=0.02 * np.abs(scores).max())
        assert len({hit["payload"]["n"] for hit in hits} & set(order[:10])) >= 9
        assert all(hit["score"] == pytest.approx(
            1 - hit["distance"] if metric == "cosine" else -hit["distance"], abs=1e-5) for hit in hits)  # fmt: skip


def test_rescoring_finds_more_of_what_is_nearest_than_codes_do(kept):
    right = {False: 0, True: 0}
    for i in range(200, 240):
        order, _ = exact(features(i, "text"), "image", list(range(N)))
        for rescore in right:
            body = {"query": features(i, "text"), "database": "image", "limit": 10, "rescore": rescore}
            hits = kept.ok("POST", "/search", body)["results"]
            right[rescore] += len({hit["payload"]["n"] for hit in hits} & set(order[:10]))
    assert right[True] > 0.99 * 40 * 10 > right[False] + 20


def test_pages_thresholds_batches_and_several_databases(kept):
    query = {"query": features(300), "database": ["image", "text", "pair"], "oversampling": 40}
    whole = search(kept, **query, limit=12)
    assert [(hit["id"], hit["database"]) for hit in whole[5:]] == [
        (hit["id"], hit["database"]) for hit in search(kept, **query, offset=5, limit=7)
    ]
    alone = {
        (hit["id"], name): hit["distance"]
        for name in query["database"]
        for hit in search(kept, **{**query, "database": name}, limit=N)
    }
    assert all(hit["distance"] == alone[hit["id"], hit["database"]] for hit in whole)
    least = whole[6]["score"]
    assert search(kept, **query, limit=12, score_threshold=least) == [hit for hit in whole if hit["score"] >= least]
    both = search(
        kept, queries=[features(300), features(301)], database=["image", "text", "pair"], oversampling=40, limit=12
    )
    assert [hit["id"] for hit in both[0]] == [hit["id"] for hit in whole]
    assert len(both[1]) == 12
    only = search(kept, **query, filter={"must": [{"ids": ["item-3", "item-4"]}]})
    assert {hit["id"] for hit in only} == {"item-3", "item-4"}


@pytest.mark.parametrize("oversampling", [1, 1.5, 4, 100])
@pytest.mark.parametrize("names", [["image"], ["image", "text", "pair"]])
def test_pages_are_parts_of_one_order(kept, oversampling, names):
    """Blocks of (limit + 1) times the oversampling, as codes rank them, and each in the order of exact distances."""
    body = {"query": features(321), "database": names, "limit": 7, "oversampling": oversampling}
    by_codes = kept.ok("POST", "/search", {"query": body["query"], "database": names, "limit": 1000})["results"]
    keys = [(hit["id"], hit["database"]) for hit in by_codes]
    distances = {
        (hit["id"], hit["database"]): hit["distance"]
        for hit in search(kept, **{**body, "limit": 1000, "oversampling": 1})
    }
    rows = int(np.ceil(8 * oversampling))
    expected = [
        key for lo in range(0, len(keys), rows) for key in sorted(keys[lo : lo + rows], key=distances.__getitem__)
    ]
    pages = [search(kept, **body, offset=offset) for offset in range(0, len(keys) + 7, 7)]
    assert pages[-1] == []
    found = [hit for page in pages for hit in page]
    assert [(hit["id"], hit["database"]) for hit in found] == expected
    assert all(hit["distance"] == distances[hit["id"], hit["database"]] for hit in found)


def test_a_page_reads_no_more_than_its_blocks(kept, monkeypatch):
    asked = []
    whole = LatentCache.keys

    def counted(self, key, items, seqs, *rest):
        asked.append(len(seqs))
        return whole(self, key, items, seqs, *rest)

    monkeypatch.setattr(LatentCache, "keys", counted)
    for offset, rows in (
        (0, 22),
        (12, 22),
        (13, 44),
        (22, 22),
        (34, 22),
        (35, 44),
        (110, 10),
        (119, 10),
        (120, 10),
        (200, 0),
    ):
        search(kept, query=features(300), database="image", limit=10, oversampling=2, offset=offset)
        assert asked.pop() == rows, offset
    assert not asked


def test_the_last_block_ends_where_searches_do(tmp_path):
    service = InProcess(tmp_path / "data", max_limit=50)
    service.create("other")
    service.put("/collections/default", {"model": "tiny", "keep": "float16"})
    service.ok("POST", "/index", {"items": [item(i) for i in range(N)]})
    query = {"query": features(300), "database": "image"}
    pages = [search(service, **query, limit=10, oversampling=3, offset=offset) for offset in range(0, 41, 10)]
    found = [hit["id"] for page in pages for hit in page]
    assert len(set(found)) == len(found) == 50
    by_codes = service.ok("POST", "/search", {**query, "limit": 50})["results"]
    assert set(found[:33]) == {hit["id"] for hit in by_codes[:33]}
    assert len(set(found) - {hit["id"] for hit in by_codes}) <= 1
    service.close()


def test_what_is_in_memory_makes_no_difference(tmp_path):
    """Without a cache, with one for a few rows that push each other out, and with one for all: the same replies."""
    replies = []
    for size in (0, 700, 1 << 20):
        service = InProcess(tmp_path / str(size), rescore_cache_bytes=size)
        service.create("other")
        service.put("/collections/default", {"model": "tiny", "keep": "int8"})
        service.ok("POST", "/index", {"items": [item(i, *(["image"] if i % 5 == 0 else [])) for i in range(N)]})
        found = []
        for turn in range(2):
            for metric in ("cosine", "euclidean"):
                for database in ("image", "text", "pair", ["pair", "text"], ["image", "text", "pair"]):
                    for limit in (1, 3, 20):
                        both = {"database": database, "metric": metric, "limit": limit, "oversampling": 7}
                        found.append(search(service, query=features(150 + limit), **both))
                        found.append(search(service, queries=[features(i) for i in range(150, 155)], **both))
            if turn == 0:  # the same items anew are others
                service.ok("POST", "/index", {"items": [item(i) for i in range(0, N, 7)]})
                service.ok("POST", "/items/delete", {"ids": ["item-1", "item-2"]})
        replies.append(found)
        service.close()
    assert replies[0] == replies[1] == replies[2]


@pytest.mark.parametrize("dim", [8, 17, 24, 30])
def test_a_latent_vector_does_not_depend_on_the_others(dim):
    dims = {"image": 40, "text": 30}
    rng = np.random.default_rng(0)
    x = {name: rng.standard_normal((300, dim)).astype(np.float32) for name, dim in dims.items()}
    model = CCQ(bits=8, dim=dim, iterations=1, effort=0).fit(x)
    layout = KeptLayout("float16", dims)
    records = [layout.pack(check_features({name: array[:2] for name, array in x.items()}))[i % 2] for i in range(300)]
    for database in ("image", "text", "pair"):
        _, alone = layout.latents(records[:2], database, model)
        for n in (2, 3, 63, 64, 65, 129, 300):
            has, found = layout.latents(records[:n], database, model)
            assert has.all()
            assert np.array_equal(found.numbers, alone.numbers[np.arange(n) % 2]), (database, n)
            assert np.array_equal(found.scales, alone.scales[np.arange(n) % 2])


@pytest.mark.parametrize("kind", ["float16", "int8"])
def test_no_number_changes_its_sign_by_being_kept(kind):
    layout = KeptLayout(kind, {"v": 4})
    for tiny in (1e-45, 2.5e-43, 1e-40, 1.2e-38, 1e-30):
        x = np.array([[tiny, -tiny, tiny / 2, 0]], np.float32)
        (found,) = layout.unpack(layout.pack(check_features({"v": x}))).arrays["v"]
        assert ((np.sign(found) == np.sign(x[0])) | (found == 0)).all()
        assert (np.abs(found) <= 1.5 * tiny).all()
        assert found[0] == -found[1]


@pytest.mark.parametrize("kind", ["float16", "int8"])
def test_an_item_at_the_border_of_what_can_be_mapped_spoils_no_search(tmp_path, kind):
    """What is kept of it is rounded, and may lie beyond."""
    rng = np.random.default_rng(0)
    x = {"image": 1e-3 * rng.standard_normal((300, 3)), "text": 1e-3 * rng.standard_normal((300, 2))}
    service = InProcess(tmp_path / "data")
    model = CCQ(bits=16, iterations=2).fit(x).to_bytes()
    assert service.request("PUT", "/models/small", content=model).status_code == 201
    service.put("/collections/default", {"model": "small", "keep": kind})

    def index(item_id, row):
        return service.post("/index", {"items": [{"id": item_id, "features": {"image": row.tolist()}}]}).status_code

    for i in range(12):
        direction = rng.standard_normal(3)
        taken, refused = 1e3, 1e17
        while refused / taken > 1 + 1e-7:
            middle = np.sqrt(taken * refused)
            taken, refused = (middle, refused) if index(f"far-{i}", direction * middle) == 200 else (taken, middle)
    assert index("near", x["image"][0]) == 200
    for metric in ("cosine", "euclidean"):
        body = {"query": {"text": x["text"][0].tolist()}, "database": "image", "metric": metric}
        assert len(search(service, **body, limit=13)) == 13
    service.close()


def test_a_distance_does_not_depend_on_the_other_candidates(tmp_path):
    """Though a matrix library sums wide features otherwise for another number of rows."""
    x = np.random.default_rng(0).standard_normal((150, 700)).astype(np.float32)
    service = InProcess(tmp_path / "data", rescore_cache_bytes=0)
    model = CCQ(bits=16, dim=32, preprocess="none", iterations=2, effort=0).fit({"v": x}).to_bytes()
    assert service.request("PUT", "/models/wide", content=model).status_code == 201
    service.put("/collections/default", {"model": "wide", "keep": "float16"})
    service.ok(
        "POST", "/index", {"items": [{"id": str(i), "features": {"v": row.tolist()}} for i, row in enumerate(x)]}
    )
    seen = {}
    for limit in range(1, 100):
        for hit in search(service, query={"v": x[0].tolist()}, limit=limit, oversampling=1, database="v"):
            assert seen.setdefault(hit["id"], hit["distance"]) == hit["distance"]
    service.close()


@pytest.mark.parametrize("database", ["image", ["image", "pair"]])
def test_where_nothing_matches_nothing_is_found(kept, database):
    nothing = {"database": database, "filter": {"must": [{"ids": ["no-such-item"]}]}}
    assert search(kept, query=features(1), **nothing) == []
    assert search(kept, queries=[features(1), features(2)], **nothing) == [[], []]


def test_equal_distances_are_in_the_order_of_insertion(tmp_path):
    service = InProcess(tmp_path / "data")
    service.create("other")
    service.put("/collections/default", {"model": "tiny", "keep": "int8"})
    service.ok("POST", "/index", {"items": [{**item(n % 20), "id": f"i{n}"} for n in range(120)]})
    hits = search(service, query=features(201), database="image", limit=100, oversampling=2)
    alike = [[int(hit["id"][1:]) for hit in hits if int(hit["id"][1:]) % 20 == kind] for kind in range(20)]
    assert all(found == sorted(found) for found in alike)
    assert sorted(map(len, alike)) == [0] * 3 + [4] + [6] * 16
    service.close()


def test_what_is_kept_follows_writes_and_restarts(tmp_path):
    service = InProcess(tmp_path / "data")
    service.create("other")
    service.put("/collections/default", {"model": "tiny", "keep": "float16"})
    service.ok("POST", "/index", {"items": [item(0), item(1, "image"), item(2, "text"), item(3)]})
    service.ok("POST", "/index", {"items": [{**item(5, "image"), "id": "item-3"}]})
    service.ok("POST", "/items/delete", {"ids": ["item-0"]})
    service.restart()
    assert service.ok("GET", "/collections/default")["keep"] == "float16"
    (best, *_) = search(service, query=features(5, "image"), database="image")
    assert (best["id"], best["score"]) == ("item-3", pytest.approx(1, abs=1e-3))
    assert [hit["id"] for hit in search(service, query=features(1), database="pair")] == []
    (table,) = [size for (size,) in service.app.state.runtime.store._connection.execute("SELECT count(*) FROM kept_2")]
    assert table == 3
    service.close()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"rescore": True, "cursor": "x"}, "no rescore together with cursor"),
        ({"rescore": True, "group_by": "n"}, "no rescore together with group_by"),
        ({"oversampling": 2}, "no oversampling without rescore"),
        ({"rescore": True, "oversampling": 0.5}, "greater than or equal to 1"),
        ({"rescore": True, "oversampling": 1000}, "less than or equal to 100"),
        ({"rescore": True, "oversampling": "NaN"}, "number"),
    ],
)
def test_bad_requests(kept, body, words):
    problem = assert_problem(kept.post("/search", {"query": features(0), **body}), 422, "invalid_request")
    assert words in problem["detail"]


def test_without_kept_features_nothing_is_ranked_anew(kept):
    body = {"query": features(0), "rescore": True}
    problem = assert_problem(kept.post("/collections/other/search", body), 422, "invalid_request")
    assert "'other' keeps no features" in problem["detail"]
    assert problem["errors"][0]["pointer"] == "#/rescore"


def test_how_features_are_kept_stays(kept):
    known = kept.ok("GET", "/collections/default")["keep"]
    assert kept.put("/collections/default", {"model": "tiny"}).json()["keep"] == known
    assert kept.put("/collections/default", {"model": "tiny", "keep": known}).status_code == 200
    problem = assert_problem(
        kept.put("/collections/default", {"model": "tiny", "keep": "none"}), 409, "collection_conflict"
    )
    assert f"exists with keep '{known}', not 'none'" in problem["detail"]
    assert_problem(kept.put("/collections/default", {"model": "tiny", "keep": "float8"}), 422, "invalid_request")


@pytest.mark.parametrize("kind", ["float16", "int8"])
@pytest.mark.parametrize("magnitude", [1e-30, 1.0, 1e14])
def test_records_hold_features_of_any_magnitude(kind, magnitude):
    rng = np.random.default_rng(0)
    given = {name: (magnitude * rng.standard_normal((50, dim))).astype(np.float32) for name, dim in DIMS.items()}
    given["image"][3:9] = np.nan
    given["text"][20:22] = np.nan
    given["image"][30] = 0
    layout = KeptLayout(kind, DIMS)
    checked = check_features(given)
    again = layout.unpack(layout.pack(checked))
    for name in DIMS:
        assert np.array_equal(again.present[name], checked.present[name])
        most = np.abs(checked.arrays[name]).max(axis=1, keepdims=True)
        error = np.abs(again.arrays[name] - checked.arrays[name])
        assert (error <= most * (0.51 / 127 if kind == "int8" else 1e-3)).all()


def test_damaged_records_are_told(kept):
    kept.restart()  # nothing is in memory yet
    store = kept.app.state.runtime.store
    record = kept.catalog.entry("default").record
    damage = f"UPDATE kept_{record.number} SET data = substr(data, 1, 20) WHERE seq = 5"
    whole = store._writer.run(lambda db: db.execute(f"SELECT data FROM kept_{record.number} WHERE seq = 5").get)
    store._writer.run(lambda db: db.execute(damage))
    body = {"query": features(4), "database": "image", "rescore": True, "limit": 100}
    assert "kept features" in assert_problem(kept.post("/search", body), 500, "storage_error")["detail"]
    store._writer.run(lambda db: db.execute(f"DELETE FROM kept_{record.number} WHERE seq = 5"))
    assert "missing" in assert_problem(kept.post("/search", body), 500, "storage_error")["detail"]
    store._writer.run(lambda db: db.execute(f"INSERT INTO kept_{record.number} VALUES (5, ?)", (whole,)))
    assert len(search(kept, **body)) == 100


def test_how_much_may_be_ranked_anew(tmp_path):
    service = InProcess(tmp_path / "data", max_results=200)
    service.create("other")
    service.put("/collections/default", {"model": "tiny", "keep": "float16"})
    body = {"queries": [features(i) for i in range(4)], "rescore": True, "limit": 9}
    assert service.post("/search", {**body, "oversampling": 5}).status_code == 200
    problem = assert_problem(service.post("/search", {**body, "oversampling": 6}), 422, "invalid_request")
    assert problem["detail"] == (
        "oversampling: expected at most 200 results to rank anew (CCQ_MAX_RESULTS), got 240: oversample less, or send "
        "fewer queries at a time"
    )
    service.close()
