"""Searching: the same answers as the core gives on the same codes."""

import numpy as np
import pytest

from ccq_core import CodeIndex
from ccq_core.index import Hits
from ccq_core.table import CodeTable
from service.ranking import Job, deepen, rank
from service.schemas.search import SearchReply
from service.store.interface import CollectionRecord
from service.tables import Coder, View
from tests.service.harness import MODEL, PAIRS, InProcess, assert_problem, features, item

N = 300
KINDS = [("image",), ("text",), ("image", "text")]
METRICS = ["cosine", "euclidean"]
DATABASES = ["image", "text", "pair"]
CODER = Coder.of(CollectionRecord(1, "c", "m"), MODEL)


def members(database):
    """Numbers of the items in a database."""
    return [i for i in range(N) if database in KINDS[i % 3] or (database == "pair" and len(KINDS[i % 3]) > 1)]


def query_arrays(numbers, *modalities):
    return {name: PAIRS[name][numbers] for name in modalities or ("image", "text")}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    service = InProcess(tmp_path_factory.mktemp("search") / "data")
    service.create()
    for lo in range(0, N, 70):
        service.ok(
            "POST", "/index", {"items": [item(i, *KINDS[i % 3], even=i % 2 == 0) for i in range(lo, min(N, lo + 70))]}
        )
    yield service
    service.close()


@pytest.fixture(scope="module")
def codes(service):
    """Codes of each database as the service has them: ids and rows, in order of insertion."""
    view = service.catalog.collection("default").view
    return {name: table.arrays()[1] for name, table in view.tables.items()}


def expected(codes, database, queries, k, metric, allowed=range(N)):
    """Ids and distances by `CodeIndex`, of each query alone: matrix libraries round many at a time differently."""
    wanted = set(allowed)
    keep = [at for at, i in enumerate(members(database)) if i in wanted]
    index = CodeIndex(MODEL)
    index.add([f"item-{members(database)[at]}" for at in keep], codes[database][keep])
    alone = [{name: x[i : i + 1] for name, x in queries.items()} for i in range(len(next(iter(queries.values()))))]
    found = [index.search(query, k, metric=metric) for query in alone]
    return Hits(np.concatenate([hits.ids for hits in found]), np.concatenate([hits.distances for hits in found]))


def test_codes_are_those_that_the_core_makes(codes):
    assert np.array_equal(codes["image"], MODEL.encode({"image": PAIRS["image"][members("image")]}))
    assert np.array_equal(codes["pair"], MODEL.encode(query_arrays(members("pair"))))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("asked", [("image",), ("text",), ("image", "text")])
def test_results_are_those_of_the_core(service, codes, metric, database, asked):
    numbers = [301, 302, 303]
    want = expected(codes, database, query_arrays(numbers, *asked), 20, metric)
    body = {"queries": [features(i, *asked) for i in numbers], "database": database, "limit": 20, "metric": metric}
    reply = service.ok("POST", "/search", body)
    SearchReply.model_validate(reply)
    for q, hits in enumerate(reply["results"]):
        assert [hit["id"] for hit in hits] == want.ids[q].tolist()
        assert [np.float32(hit["distance"]) for hit in hits] == want.distances[q].tolist()
        for hit in hits:
            score = 1 - hit["distance"] if metric == "cosine" else -hit["distance"]
            assert hit["score"] == pytest.approx(score, abs=1e-6)
            assert hit["database"] == database
            assert hit["payload"]["n"] == int(hit["id"].removeprefix("item-"))


@pytest.mark.parametrize("metric", METRICS)
def test_one_query_and_a_batch_of_mixed_queries_agree(service, metric):
    queries = [features(301, "image"), features(302, "text"), features(303)]
    options = {"limit": 7, "metric": metric, "database": "image"}
    batch = service.ok("POST", "/search", {"queries": queries, **options})["results"]
    for query, results in zip(queries, batch, strict=True):
        alone = service.ok("POST", "/search", {"query": query, **options})["results"]
        # BLAS may round a batch differently from a single vector, so only distances are compared.
        assert [hit["distance"] for hit in alone] == pytest.approx([hit["distance"] for hit in results], abs=1e-5)


def test_the_defaults_are_pair_ten_and_the_metric_of_the_model(service):
    explicit = {"query": features(301), "database": "pair", "limit": 10, "metric": "cosine", "with_payload": True}
    results = service.ok("POST", "/search", {"query": features(301)})["results"]
    assert results == service.ok("POST", "/search", explicit)["results"]
    assert len(results) == 10


def test_without_payloads(service):
    results = service.ok("POST", "/search", {"query": features(301), "with_payload": False})["results"]
    assert all(set(hit) == {"id", "database", "distance", "score"} for hit in results)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("databases", [["image", "text"], ["text", "image"], ["pair", "image", "text"]])
def test_a_merged_ranking_is_the_sorted_union(service, codes, metric, databases):
    query = query_arrays([305], "text")
    union = []
    for order, database in enumerate(databases):
        hits = expected(codes, database, query, N, metric)
        union += [
            (distance, int(found.removeprefix("item-")), order, database)
            for found, distance in zip(hits.ids[0], hits.distances[0].tolist(), strict=True)
        ]
    union.sort()
    body = {"query": features(305, "text"), "database": databases, "limit": 60, "metric": metric}
    results = service.ok("POST", "/search", body)["results"]
    assert len(results) == 60
    got = [
        (float(np.float32(hit["distance"])), int(hit["id"].removeprefix("item-")), hit["database"]) for hit in results
    ]
    assert [row[0] for row in got] == [row[0] for row in union[:60]]
    assert [row[1:] for row in got] == [(row[1], row[3]) for row in union[:60]]


def test_ties_in_a_merged_ranking_are_broken_by_insertion_first():
    """The same codes in two databases: the older item comes first, and of one item the database named first."""
    code = MODEL.encode({"image": PAIRS["image"][:1]})
    held = {"image": [2, 3, 5], "text": [1, 3, 4]}
    views = {}
    for database, labels in held.items():
        table = CodeTable(MODEL.code_width)
        table.append(np.array(labels, dtype=np.int64), np.repeat(code, len(labels), axis=0))
        views[database] = table.view()
    view = View(1, 5, views, CODER)
    points = MODEL.project({"text": PAIRS["text"][:2]})
    for databases in (("image", "text"), ("text", "image")):
        want = [(1, "text"), (2, "image"), *((3, name) for name in databases), (4, "text"), (5, "image")]
        for limit in (1, 3, 6, 9):
            (rankings,) = rank(view, [Job("cosine", points, databases, limit)])
            assert len(rankings) == 2
            for ranking in rankings:
                got = [(seq, databases[at]) for seq, at in zip(ranking.seqs, ranking.databases, strict=True)]
                assert got == want[:limit]
        ((left, _),) = rank(view, [Job("cosine", points, databases, 4, exclude=(3,))])
        assert left.seqs.tolist() == [1, 2, 4, 5]


def test_a_ranking_is_deepened_until_nothing_more_qualifies():
    codes = MODEL.encode({"image": PAIRS["image"][:20]})
    table = CodeTable(MODEL.code_width)
    table.append(np.arange(1, 21), codes)
    view = View(1, 20, {"image": table.view()}, CODER)
    points = MODEL.project({"image": PAIRS["image"][:1]})

    def deepened(most=None, **rest):
        job = Job("cosine", points, ("image",), 3, **rest)
        ((first,),) = rank(view, [job])
        found = list(deepen(view, job, first, most))
        for shorter in found:
            assert shorter.seqs.tolist() == found[-1].seqs[: len(shorter)].tolist()
        assert not any(ranking.complete for ranking in found[:-1])
        return [len(ranking) for ranking in found], found[-1]

    lengths, last = deepened()
    assert (lengths, last.complete) == ([3, 6, 12, 20], True)
    lengths, longest = deepened(most=7)
    assert (lengths, longest.complete) == ([3, 6, 7], False)
    lengths, cut = deepened(least_score=last.scores[8])
    assert cut.complete
    assert len(cut) == lengths[-1] == np.count_nonzero(last.scores >= last.scores[8])
    assert lengths[:-1] == [3, 6]
    assert deepened(exclude=(1, 2), allowed=np.array([1, 2, 3, 4, 5, 6]))[0] == [3, 4]


def test_ties_are_broken_by_insertion_then_by_the_order_of_databases(bare):
    bare.create()
    same = features(0)
    bare.ok("POST", "/index", {"items": [{"id": name, "features": same} for name in ("z", "a", "m")]})
    bare.ok("POST", "/index", {"items": [{"id": "a", "features": same}]})
    hits = bare.ok("POST", "/search", {"query": same})["results"]
    assert [hit["id"] for hit in hits] == ["z", "m", "a"]
    only = bare.ok("POST", "/search", {"query": same, "database": "text", "limit": 2})["results"]
    assert [hit["id"] for hit in only] == ["z", "m"]


@pytest.mark.parametrize("metric", METRICS)
def test_a_filter_gives_what_searching_only_the_matching_items_gives(service, codes, metric):
    allowed = [i for i in range(N) if i % 2 == 0 and i >= 40]
    want = expected(codes, "image", query_arrays([310], "text"), 30, metric, allowed)
    condition = {"must": [{"key": "even", "match": {"value": True}}, {"key": "n", "range": {"gte": 40}}]}
    body = {"query": features(310, "text"), "database": "image", "limit": 30, "metric": metric, "filter": condition}
    assert [hit["id"] for hit in service.ok("POST", "/search", body)["results"]] == want.ids[0].tolist()


def test_a_filter_that_few_items_match_gives_all_of_them(service):
    wanted = [f"item-{i}" for i in (2, 5, 8)]
    body = {"query": features(310), "limit": 3, "filter": {"must": [{"ids": wanted}]}}
    assert sorted(hit["id"] for hit in service.ok("POST", "/search", body)["results"]) == wanted
    nothing = {"query": features(310), "filter": {"must": [{"key": "n", "range": {"lt": 0}}]}}
    assert service.ok("POST", "/search", nothing)["results"] == []
    everything = {"query": features(310), "limit": N, "filter": {}}
    assert len(service.ok("POST", "/search", everything)["results"]) == len(members("pair"))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("number", "own"), [(2, "pair"), (3, "image"), (4, "text")])
def test_by_a_stored_item(service, codes, metric, number, own):
    row = codes[own][members(own).index(number)]
    tables = MODEL.distance_tables_latent(MODEL.decode(row[None]), metric=metric)
    view = service.catalog.collection("default").view
    for database in DATABASES:
        ((labels, keys),) = view.tables[database].search(tables, N)
        keep = labels != number + 1  # labels are sequence numbers, which start at 1
        want = [f"item-{label - 1}" for label in labels[keep][:15]]
        body = {"query_id": f"item-{number}", "database": database, "limit": 15, "metric": metric}
        hits = service.ok("POST", "/search", body)["results"]
        assert [hit["id"] for hit in hits] == want
        assert [np.float32(hit["distance"]) for hit in hits] == tables.distances(keys[None])[0][keep][:15].tolist()


def test_by_a_stored_item_leaves_it_out_of_a_merged_ranking_and_is_not_short(service):
    body = {"query_id": "item-2", "database": ["image", "text", "pair"], "limit": 2 * N}
    hits = service.ok("POST", "/search", body)["results"]
    assert len(hits) == sum(len(members(name)) for name in DATABASES) - 3
    assert "item-2" not in {hit["id"] for hit in hits}
    condition = {"must": [{"ids": ["item-2", "item-5"]}]}
    few = service.ok("POST", "/search", {"query_id": "item-2", "limit": 1, "filter": condition})["results"]
    assert [hit["id"] for hit in few] == ["item-5"]


def test_by_an_unknown_item(service):
    problem = assert_problem(service.post("/search", {"query_id": "nobody"}), 404, "item_not_found")
    assert problem["errors"] == [{"pointer": "#/query_id", "detail": "query_id: no item 'nobody'"}]


def test_an_empty_collection_gives_no_results(bare):
    bare.create()
    assert bare.ok("POST", "/search", {"query": features(0)})["results"] == []
    assert bare.ok("POST", "/search", {"queries": [features(0)] * 2, "database": DATABASES})["results"] == [[], []]
