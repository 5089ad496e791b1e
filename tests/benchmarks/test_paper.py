"""The experiments of the paper on small data."""

import shutil
import subprocess
import sys
import time
import types
from dataclasses import replace
from pathlib import Path
from statistics import pstdev

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.paper import binarization, curves, search_time, semi, sensitivity, table, training
from benchmarks.paper.data import CROSS, TASKS, load_data, task_named
from benchmarks.paper.main import main
from benchmarks.paper.measures import map_score, precision_at, precision_recall, relevant_results
from benchmarks.paper.methods import DEFAULTS, PAPER, TrainedRival, ccq, methods, nearest, rival
from benchmarks.paper.plan import Plan
from benchmarks.paper.reference import read_json, read_wiki
from benchmarks.paper.resample import draw_origins, resample_images, resample_texts, semi_paired
from benchmarks.paper.results import Results, grouped, read_rows
from benchmarks.paper.synthetic import PairsOnDisk, SyntheticPairs
from benchmarks.paper.train_once import train_once
from ccq_core.evaluation import LabelledData, evaluate

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"
WIKI = SHARED / "data/wiki/wiki.npz"
needs_wiki = pytest.mark.skipif(not WIKI.exists(), reason="the Wiki data set is not beside the checkout (../shared)")


QUICK = {"iterations": 1, "effort": 0}


# -- measures --------------------------------------------------------------------------------------


def test_precision_recall_by_hand():
    # Ranks of the relevant: 1 and 4 of five; 2 of five; none.
    relevant = np.array([[1, 0, 0, 1, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0]], dtype=bool)
    first = precision_recall(relevant[:1], [0.0, 0.25, 0.5, 0.51, 1.0])
    assert first.tolist() == [1.0, 1.0, 1.0, 0.5, 0.5]
    assert precision_recall(relevant[1:2], [0.0, 0.5, 1.0]).tolist() == [0.5, 0.5, 0.5]
    assert precision_recall(relevant, [0.0, 1.0]).tolist() == [0.75, 0.5]  # the third has no recall


def test_precision_is_interpolated_from_the_right():
    # Precision 1/2 at the first relevant, 3/4 at the third: both levels get the better one further right.
    relevant = np.array([[0, 1, 1, 1]], dtype=bool)
    assert precision_recall(relevant, [0.0, 1 / 3, 2 / 3, 1.0]).tolist() == [0.75] * 4


def test_recall_levels_survive_rounding():
    relevant = np.zeros((1, 40), dtype=bool)
    relevant[0, ::4] = True  # ten relevant: recall .3 is the third of them, though .3 * 10 > 3 in binary
    assert precision_recall(relevant, [0.1 + 0.2])[0] == precision_recall(relevant, [0.3])[0]


def test_nothing_relevant_is_an_error():
    with pytest.raises(ValueError, match="no query has a relevant item"):
        precision_recall(np.zeros((2, 3), dtype=bool), [0.5])


def test_precision_at_by_hand():
    relevant = np.array([[1, 0, 1, 1], [0, 0, 0, 1]], dtype=bool)
    assert precision_at(relevant, [1, 2, 4]).tolist() == [0.5, 0.25, 0.5]


def test_relevant_results_looks_labels_up():
    ids = np.array([[2, 0], [1, 2]])
    assert relevant_results(ids, np.array([7, 8]), np.array([7, 8, 9])).tolist() == [[False, True], [True, False]]


def test_nearest_by_hand():
    database = np.array([[10.0, 0.0], [1.0, 1.0], [0.0, 3.0]])
    query = np.array([[1.0, 0.2]])
    assert nearest(query, database, 3, "cosine").tolist() == [[0, 1, 2]]
    assert nearest(query, database, 3, "euclidean").tolist() == [[1, 2, 0]]
    assert nearest(query, database, 1, "cosine").tolist() == [[0]]
    assert nearest(query, np.zeros((2, 2)), 2, "cosine").tolist() == [[0, 1]]  # ties by row


# -- methods ---------------------------------------------------------------------------------------


class SignsOfFeatures:
    """A rival as `benchmarks.rivals` has them: the signs of the first features are the bits."""

    supervised = True

    def __init__(self, bits=32, seed=0):
        self.bits, self.seed = bits, seed

    def fit(self, features, labels):
        assert set(features) == {"image", "text"}
        assert len(labels) == len(features["image"])
        self.means_ = {name: array.mean(axis=0) for name, array in features.items()}
        return self

    def project(self, features):
        ((name, array),) = features.items()
        padded = np.zeros((len(array), self.bits), dtype=np.float32)
        padded[:, :8] = (array - self.means_[name])[:, :8]
        return padded

    def encode(self, features):
        return np.packbits(self.project(features) > 0, axis=1)


def hamming(queries, database, r):
    distances = np.bitwise_count(queries[:, None] ^ database[None]).sum(axis=2, dtype=np.int64)
    ids = np.argsort(distances, axis=1, kind="stable")[:, :r]
    return ids, np.take_along_axis(distances, ids, axis=1)


@pytest.fixture(scope="module")
def data():
    train, test = SyntheticPairs(160, (16, 12), seed=1), SyntheticPairs(40, (16, 12), seed=2)
    (x, y), (q, z) = next(iter(train.blocks())), next(iter(test.blocks()))
    return LabelledData(x, q, y, z)


@pytest.fixture
def plan(data, tmp_path):
    found = {"Signs": rival("Signs", SignsOfFeatures, hamming), DEFAULTS: ccq(DEFAULTS, **QUICK)}
    return Plan({"tiny": data}, found, tmp_path, seeds=2, repeats=2, bits=(8,), say=lambda _: None)


def test_ccq_is_ranked_as_ccq_core_evaluates_it(data):
    trained = ccq(DEFAULTS, **QUICK).fit(data.train, data.train_labels, 16, 0)
    expected = evaluate(trained.model, data)
    names = {"image": "I", "text": "T", "pair": "IT"}
    for task, value in expected.items():
        query, database = task.split("->")
        # Ties are in another order.
        found = map_score(trained, data, task_named(f"{names[query]}->{names[database]}"))
        assert found == pytest.approx(value, abs=0.01)


def test_rivals_do_the_tasks_of_one_modality_and_see_labels(data):
    method = rival("Signs", SignsOfFeatures, hamming)
    assert method.supervised
    assert [task.name for task in method.tasks] == ["I->I", "T->T", "I->T", "T->I"]
    trained = method.fit(data.train, data.train_labels, 8, 0)
    assert map_score(trained, data, task_named("I->I")) > 0.3  # at random .1
    assert map_score(trained, data, task_named("I->I"), continuous=True) > 0.3


def test_equal_distances_come_in_an_order_of_the_seed(data):
    model = SignsOfFeatures(bits=8).fit(data.train, data.train_labels)
    queries, database = {"image": data.test["image"]}, {"image": data.train["image"]}
    a, b = (TrainedRival(model, hamming, seed).rank(queries, database, 160) for seed in (0, 1))
    again = TrainedRival(model, hamming, 0).rank(queries, database, 160)
    assert (a == again).all()
    assert (a != b).any()
    codes, asked = model.encode(database), model.encode(queries)
    for ids in (a, b):
        assert (np.sort(ids, axis=1) == np.arange(160)).all()
        distances = np.bitwise_count(asked[:, None] ^ codes[ids]).sum(axis=2)
        assert (np.diff(distances.astype(int), axis=1) >= 0).all()


def test_rivals_are_found_if_they_are_there(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert set(methods()) == {DEFAULTS, PAPER}
    package, module = types.ModuleType("benchmarks.rivals"), types.ModuleType("benchmarks.rivals.hamming")
    package.RIVALS, package.REPLICAS, module.hamming_search = {"Signs": SignsOfFeatures}, {}, hamming
    monkeypatch.setattr("importlib.util.find_spec", lambda _: object())
    monkeypatch.setitem(sys.modules, "benchmarks.rivals", package)
    monkeypatch.setitem(sys.modules, "benchmarks.rivals.hamming", module)
    assert list(methods()) == ["Signs", DEFAULTS, PAPER]


# -- results ---------------------------------------------------------------------------------------


def test_results_keep_rows_and_add_none_twice(tmp_path):
    path = tmp_path / "deep/r.csv"
    results = Results(path, ("a", "b"))
    results.add([{"a": 1, "b": 0.5, "value": 1 / 3}, {"a": 1, "b": 2.0, "value": 4.0}])
    results.add([{"a": 1, "b": 0.5, "value": 9.0}])
    assert path.read_text() == "a,b,value\n1,0.5,0.333333\n1,2,4\n"
    again = Results(path, ("a", "b"))
    assert {"a": "1", "b": 2.0} in again
    assert {"a": 2, "b": 2.0} not in again
    assert again.rows == results.rows == read_rows(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [("a,c,value\n1,2,3\n", "expected the columns a,b,value, got a,c,value"), ("a,b,value\n1,2\n", "line 2 has 2")],
)
def test_files_of_another_form_are_named(tmp_path, content, words):
    (tmp_path / "r.csv").write_text(content)
    with pytest.raises(ValueError, match=words):
        Results(tmp_path / "r.csv", ("a", "b"))


def test_an_interrupted_run_goes_on_to_the_same_file(plan):
    table.run(plan)
    path = plan.output / "map.csv"
    whole = path.read_bytes()
    assert whole.count(b"\n") == 1 + 2 * (4 + 6)  # seeds, tasks of both methods
    # Within a line, before its end, at the end of a line in the middle of a run, within the header.
    for cut in (len(whole) // 2, len(whole) - 1, whole.index(b"\n", 200) + 1, 3):
        path.write_bytes(whole[:cut])
        table.run(plan)
        assert path.read_bytes() == whole, cut


def test_nothing_is_measured_twice(plan):
    table.run(plan)
    said = []
    table.run(Plan(plan.data, plan.methods, plan.output, 3, 2, (8,), said.append))
    assert said == [f"map: tiny, {name}, 8 bits, seed 2" for name in plan.methods]


# -- experiments -----------------------------------------------------------------------------------


def test_map_has_what_evaluate_would_say(plan, data):
    table.run(plan)
    scores = grouped(read_rows(plan.output / "map.csv"), "task", "method", "bits", "seed")
    model = ccq(DEFAULTS, **QUICK).fit(data.train, data.train_labels, 8, 1).model
    assert scores["I->T", DEFAULTS, "8", "1"][0] == pytest.approx(evaluate(model, data)["image->text"], abs=0.03)
    assert ("I->IT", "Signs", "8", "1") not in scores


def test_curves_start_high_and_end_at_the_share_of_relevant_items(plan, data, monkeypatch):
    monkeypatch.setattr(curves, "BITS", (8,))
    curves.run(plan)
    values = grouped(read_rows(plan.output / "curves.csv"), "method", "bits", "task", "curve", "x")
    share = relevant_results(np.tile(np.arange(160), (40, 1)), data.test_labels, data.train_labels).mean()
    for method in plan.methods:
        assert values[method, "8", "I->T", curves.TOP, "160"][0] == pytest.approx(share, abs=1e-5)
        recall = [values[method, "8", "T->I", curves.RECALL, f"{x:.6g}"][0] for x in curves.LEVELS]
        assert all(np.diff(recall) <= 0)
        assert recall[0] > 2 * share
    before = (plan.output / "curves.csv").read_bytes()
    (plan.output / "curves.csv").write_bytes(before[: len(before) // 3])
    curves.run(plan)
    assert (plan.output / "curves.csv").read_bytes() == before


def test_binarization_measures_both_kinds_of_vectors(plan):
    binarization.run(plan)
    scores = grouped(read_rows(plan.output / "binarization.csv"), "method", "task", "vectors")
    assert len(scores) == 2 * (4 + 6)
    assert all(len(values) == 2 for values in scores.values())
    assert min(scores["Signs", "I->I", "continuous"]) > 0.3
    assert scores["Signs", "I->I", "continuous"] != scores["Signs", "I->I", "codes"]


def test_lambda_reaches_the_model(plan, monkeypatch):
    monkeypatch.setattr(sensitivity, "LAMBDAS", (0.1, 200.0))
    monkeypatch.setattr(sensitivity, "BITS", 8)
    sensitivity.run(replace(plan, repeats=1))
    scores = grouped(read_rows(plan.output / "lambda.csv"), "task", "method", "lambda")
    assert set(scores) == {(task, DEFAULTS, weight) for task in ("I->T", "T->I") for weight in ("0.1", "200")}
    assert scores["T->I", DEFAULTS, "0.1"] != scores["T->I", DEFAULTS, "200"]


def test_search_time_measures_everyone(tmp_path, monkeypatch):
    monkeypatch.setattr(search_time, "_TRAINING", 600)
    monkeypatch.setattr(search_time, "_SECONDS", 0.01)
    search_time.run(Plan({}, {}, tmp_path, say=lambda _: None), sizes=(300,))
    times = grouped(read_rows(tmp_path / "search-time.csv"), "method", "items")
    codes = np.zeros((3, 4), dtype=np.uint8)
    assert set(times) == {(name, "300") for name in (DEFAULTS, *search_time.hamming_scans(codes))}
    assert all(values[0] > 0 for values in times.values())


def test_mean_milliseconds():
    asked = []
    taken = search_time.mean_milliseconds(lambda q: (asked.append(q), time.sleep(0.002)), 5)
    assert 2 <= taken < 200
    assert asked == [0, 1, 0, 1, 2, 3, 4]  # two that do not count
    asked.clear()
    search_time.mean_milliseconds(lambda q: (asked.append(q), time.sleep(0.002)), 5, seconds=0.0)
    assert asked == [0, 1, 0]


def test_training_measures_a_fresh_process(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    said = []
    plan = Plan({}, {DEFAULTS: ccq(DEFAULTS)}, tmp_path, say=said.append)
    monkeypatch.setattr(training, "contestants", lambda _: [DEFAULTS, "nobody"])
    training.run(plan, sizes=(700, 701), dims=(8, 6))
    rows = read_rows(tmp_path / "training.csv")
    assert [(row["method"], row["items"]) for row in rows] == [(DEFAULTS, "700"), (DEFAULTS, "701")]
    for row in rows:
        assert 0 < float(row["seconds"]) < 60
        assert 10 < float(row["start_mb"]) < float(row["peak_mb"]) < 2000
    # What failed is not kept, and not tried with more pairs.
    assert [line for line in said if "nobody" in line] == [
        "training: nobody, 700 pairs of 8 + 6 dimensions", "training: nobody, 700 pairs: failed, 1: KeyError: 'nobody'"
    ]  # fmt: skip
    assert not (tmp_path / "training-data").exists()


def test_trainings_that_take_too_long_are_given_up(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    said = []
    plan = Plan({}, {DEFAULTS: ccq(DEFAULTS)}, tmp_path, say=said.append)
    monkeypatch.setattr(training, "contestants", lambda _: [DEFAULTS])
    training.run(plan, sizes=(400, 500), dims=(4, 4), limit=0.001)
    assert [row["note"] for row in read_rows(tmp_path / "training.csv")] == ["given up after 0.001 s"]
    assert not any("500" in line for line in said)


def test_pairs_on_disk_are_the_same_whole_and_in_batches(tmp_path):
    pairs = PairsOnDisk(tmp_path, 10_700, (5, 3), batch=4_000)
    pairs.write()
    whole, batches = pairs.features(0, 10_700), list(pairs)
    assert [len(batch["text"]) for batch in batches] == [4000, 4000, 2700]
    for name, dim in (("image", 5), ("text", 3)):
        assert whole[name].shape == (10_700, dim)
        assert (np.concatenate([batch[name] for batch in batches]) == whole[name]).all()
        assert (SyntheticPairs(10_700, (5, 3)).features(9_000, 10_500)[name] == whole[name][9_000:10_500]).all()
    assert len(pairs.labels()) == 10_700
    assert train_once(DEFAULTS, 8, PairsOnDisk(tmp_path, 300, (5, 3)))["seconds"] > 0


# -- resampling ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def histograms():
    rng = np.random.default_rng(5)
    return {"image": rng.multinomial(900, rng.dirichlet(np.ones(20), 30)) / 900, "text": rng.dirichlet(np.ones(6), 30)}


def test_resampled_rows_are_distributions_around_their_origins(histograms):
    origins = np.repeat([3, 17], 2000)
    for resample, name, squared in (
        (lambda x, rng: resample_images(x, origins, rng, words=50), "image", lambda p: (1 - p @ p) / 50),
        (lambda x, rng: resample_texts(x, origins, rng, concentration=40), "text", lambda p: (1 - p @ p) / 41),
    ):
        made = resample(histograms[name], np.random.default_rng(0))
        assert made.shape == (4000, histograms[name].shape[1])
        assert made.sum(axis=1) == pytest.approx(1)
        assert (made >= 0).all()
        for at, origin in ((slice(2000), 3), (slice(2000, None), 17)):
            p = histograms[name][origin]
            assert made[at].mean(axis=0) == pytest.approx(p, abs=0.02)
            assert np.square(made[at] - p).sum(axis=1).mean() == pytest.approx(squared(p), rel=0.1)
        assert (made == resample(histograms[name], np.random.default_rng(0))).all()
        assert (made != resample(histograms[name], np.random.default_rng(1))).any()
    assert (resample_images(histograms["image"], origins, np.random.default_rng(0), words=50) * 50 % 1 < 1e-9).all()


def test_rows_that_are_no_distribution_are_named():
    rows = np.array([[0.5, 0.5], [0.5, 0.6]])
    with pytest.raises(ValueError, match="image: row 1 is no distribution"):
        resample_images(rows, np.array([0]), np.random.default_rng(0))
    with pytest.raises(ValueError, match="text: row 0 is no distribution"):
        resample_texts(rows[:, ::-1] * [[-1], [1]], np.array([1]), np.random.default_rng(0))


def test_origins_come_once_before_any_comes_twice():
    drawn = draw_origins(10, 25, np.random.default_rng(0))
    assert sorted(drawn[:10]) == sorted(drawn[10:20]) == list(range(10))
    assert len(set(drawn[20:])) == 5
    assert (draw_origins(10, 7, np.random.default_rng(0)) == drawn[:7]).all()
    assert draw_origins(10, 0, np.random.default_rng(0)).shape == (0,)


def test_semi_paired_features(histograms):
    made = semi_paired(histograms, pairs=12, unpaired=40, seed=3)
    image, text = (np.isnan(made[name]).all(axis=1) for name in ("image", "text"))
    assert not np.isnan(made["image"][~image]).any()
    assert image.tolist() == [False] * 52 + [True] * 40
    assert text.tolist() == [False] * 12 + [True] * 40 + [False] * 40
    more = semi_paired(histograms, pairs=30, unpaired=40, seed=3)
    assert (more["image"][:12] == made["image"][:12]).all()
    assert (more["text"][-40:] == made["text"][-40:]).all()
    assert (semi_paired(histograms, 12, 40, seed=4)["image"][0] != made["image"][0]).any()
    # Both features of a pair are of one origin: nearer to it than to the others, nearly always.
    near = [
        np.square(more[name][:30, None] - histograms[name][None]).sum(axis=2).argmin(axis=1)
        for name in ("image", "text")
    ]
    assert (near[0] == near[1]).mean() > 0.8


def test_semi_needs_wiki_and_says_so(plan):
    said = []
    semi.run(Plan(plan.data, plan.methods, plan.output, say=said.append))
    assert said == ["semi: left out, it resamples Wiki (--wiki FILE)"]


def test_semi_on_small_data(histograms, tmp_path, monkeypatch):
    labels = np.arange(30) % 3
    monkeypatch.setattr(semi, "PAIRS", (20, 40))
    monkeypatch.setattr(semi, "BITS", 8)
    monkeypatch.setattr(semi, "UNPAIRED", 50)
    data = LabelledData(histograms, histograms, labels, labels)
    plan = Plan({"Wiki": data}, {DEFAULTS: ccq(DEFAULTS, **QUICK)}, tmp_path, repeats=1, say=lambda _: None)
    semi.run(plan)
    rows = read_rows(tmp_path / "semi.csv")
    assert {(row["unpaired"], row["pairs"]) for row in rows} == {(u, p) for u in ("50", "0") for p in ("20", "40")}
    assert len(rows) == 4 * len(TASKS)


# -- figures and report ----------------------------------------------------------------------------


def write_rows(path, keys, values, rows):
    Results(path, keys, values).add([dict(zip((*keys, *values), row, strict=True)) for row in rows])


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Made-up results of every experiment."""
    folder = tmp_path_factory.mktemp("measured")
    cells = [(name, seed, task.name) for name in ("CVH", DEFAULTS) for seed in (0, 1) for task in TASKS]
    rows = [("Wiki", name, bits, seed, task, 0.2 + seed / 100) for name, seed, task in cells for bits in (8, 32)]
    write_rows(folder / "map.csv", table.KEYS, ("value",), rows)
    points = [(curve, x) for curve in (curves.RECALL, curves.TOP) for x in (0.0, 0.5, 1.0)]
    rows = [("Wiki", DEFAULTS, 16, task, curve, x, 1 - x / 2) for task in ("I->T", "T->I") for curve, x in points]
    write_rows(folder / "curves.csv", curves.KEYS, ("value",), rows)
    kinds = ((binarization.CONTINUOUS, 0.3), (binarization.CODES, 0.24))
    rows = [("Wiki", name, 32, seed, task, kind, value) for name, seed, task in cells for kind, value in kinds]
    write_rows(folder / "binarization.csv", binarization.KEYS, ("value",), rows)
    rows = [("Wiki", DEFAULTS, 32, weight, 0, task, weight / 400) for weight in (0.1, 5.0, 200.0) for task in CROSS]
    write_rows(folder / "lambda.csv", sensitivity.KEYS, ("value",), rows)
    objects = [(unpaired, pairs, seed) for unpaired in (0, 10_000) for pairs in semi.PAIRS for seed in (0,)]
    rows = [("Wiki", DEFAULTS, 32, u, p, seed, "I->T", 0.2 + p / 1e5 + u / 1e6) for u, p, seed in objects]
    write_rows(folder / "semi.csv", semi.KEYS, ("value",), rows)
    write_rows(folder / "search-time.csv", search_time.KEYS, ("value",), [(DEFAULTS, 32, n, n / 90) for n in (1, 9)])
    rows = [(DEFAULTS, 32, 64, 64, n, n / 9, 30.0, 50.0 + n, "") for n in (10, 100)]
    rows += [("QCH", 32, 64, 64, 10, "", "", "", "given up")]
    write_rows(folder / "training.csv", training.KEYS, training.VALUES, rows)
    return folder


@pytest.fixture(scope="module")
def drawn(measured):
    figures = pytest.importorskip("benchmarks.paper.figures", reason="figures need matplotlib (extra bench)")
    return figures.draw_all(measured)


def test_every_figure_is_written(drawn):
    assert set(drawn) == {
        "map-wiki", "curves-wiki", "binarization-wiki", "semi", "lambda", "search-time", "training",
    }  # fmt: skip
    for path in drawn.values():
        assert path.read_text().rstrip().endswith("</svg>")
        assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_figures_are_the_same_each_time(drawn, measured, tmp_path):
    from benchmarks.paper.figures import draw_all

    shutil.copy(measured / "search-time.csv", tmp_path)
    assert draw_all(tmp_path)["search-time"].read_bytes() == drawn["search-time"].read_bytes()


def test_lines_are_means_with_deviations(measured):
    figures = pytest.importorskip("benchmarks.paper.figures", reason="figures need matplotlib (extra bench)")
    style = pytest.importorskip("benchmarks.paper.style")
    _, (panel,) = style.new_figure(1, 1)
    figures._line(panel, [(2.0, [1.0, 3.0]), (1.0, [4.0, 4.0])], style.look("CCQ"), "CCQ")
    line, _, (bars,) = panel.containers[0]
    assert line.get_xydata().tolist() == [[1.0, 4.0], [2.0, 2.0]]
    assert [segment[:, 1].tolist() for segment in bars.get_segments()] == [[4.0, 4.0], [1.0, 3.0]]


@pytest.fixture
def report():
    return pytest.importorskip("benchmarks.paper.report", reason="the report draws with matplotlib (extra bench)")


def test_comparison_by_hand(report):
    ours = {("I->I", 8): 0.25, ("I->I", 16): 0.1, ("T->T", 8): 0.39996, ("I->IT", 8): 0.9}
    theirs = {("I->I", 8): 0.20, ("I->I", 16): 0.2, ("T->T", 8): 0.4, ("T->I", 8): 0.5}
    found = report.compare(ours, theirs)
    assert (found.cells, found.reached) == (3, 2)  # .39996 is printed as .4
    assert found.difference == pytest.approx((0.05 - 0.1 - 0.00004) / 3)
    assert found.absolute == pytest.approx((0.05 + 0.1 + 0.00004) / 3)
    assert found.ratio == pytest.approx((1.25 * 0.5 * 0.9999) ** (1 / 3))
    assert report.compare(ours, {}) is None


def test_map_table_by_hand(report):
    scores = {("I->T", "CCQ", 8): [0.2, 0.4], ("I->T", "CVH", 8): [0.1], ("I->T", "CCQ", 16): [0.5]}
    lines = report.map_table(scores, {("I->T", "CCQ", 8): 0.3, ("I->T", "CVH", 8): 0.2}).splitlines()
    assert lines[0] == "| task | method | 8 bits | 16 bits |"
    assert f"| I→T | CCQ | **0.3000 ± {pstdev([0.2, 0.4]):.4f}** / 0.3000 | 0.5000 ± 0.0000 |" in lines
    assert "| I→T | CVH | 0.1000 ± 0.0000 / 0.2000 | - |" in lines


def test_comparison_table_takes_each_methods_own_column(report):
    scores = {("I->T", name, 8): [value] for name, value in (("CCQ", 0.4), ("CCQ-paper", 0.2), ("CVH", 0.1), ("X", 1))}
    lines = report.comparison_table(scores, {("I->T", "CCQ", 8): 0.2, ("I->T", "CVH", 8): 0.1}).splitlines()
    assert "| CCQ | 1 | 1 | +0.2000 | 0.2000 | 2.0000 |" in lines
    assert "| CCQ-paper | 1 | 1 | +0.0000 | 0.0000 | 1.0000 |" in lines
    assert "| CVH | 1 | 1 | +0.0000 | 0.0000 | 1.0000 |" in lines
    assert "| X | - | - | - | - | - |" in lines


def test_report_is_written_with_its_figures(measured, drawn, report, tmp_path):
    target = tmp_path / "docs/paper.md"
    report.write(measured, target, drawn, report.read_reference(None))
    text = target.read_text()
    assert "## Wiki" in text
    assert "| I→T | CCQ | 0.2050 ± 0.0050 / 0.2338 | 0.2050 ± 0.0050 / 0.2371 |" in text
    assert "| CVH | 8 | 4 | " in text  # cells in which .205 reaches the paper's CVH: counted by hand
    assert "| CCQ | I→T | 0.215 (+0.010) |" in text  # semi: 500 pairs
    assert "| Wiki | CCQ | I→T | 0.013 | 0.500 | 0.205 |" in text  # lambda: 5 and 200; the rival is CVH
    assert "| Wiki | CVH | 0.300 | 0.240 | 20.0% |" in text
    assert "| CCQ | 0.0111 | 0.1 |" in text  # search time
    assert "| CCQ | 1.11 s, 60 MB | 11.1 s, 150 MB |" in text
    assert "| QCH | given up | - |" in text
    for name in drawn:
        assert f"(paper/{name}.svg)" in text
        assert (target.parent / f"paper/{name}.svg").exists()


def test_reference_is_the_papers_table(tmp_path):
    wiki = read_wiki()
    assert len(wiki) == 4 * 7 * 4 + 2 * 4
    assert wiki["T->I", "QCH", 32] == 0.4411
    (tmp_path / "t.json").write_text('{"map": {"Wiki": {"I->T": {"CCQ": {"8": 0.5}}}}}')
    assert read_json(tmp_path / "t.json", "Wiki") == {("I->T", "CCQ", 8): 0.5}
    for broken in ("{}", "[", '{"map": {"Wiki": {"I->T": 3}}}', '{"map": {"Wiki": {"I->T": {"CCQ": {"x": 1}}}}}'):
        (tmp_path / "t.json").write_text(broken)
        with pytest.raises(ValueError, match=r"t\.json: expected"):
            read_json(tmp_path / "t.json", "Wiki")


@pytest.mark.skipif(not (SHARED / "paper/map_table.json").exists(), reason="the paper is not beside the checkout")
def test_reference_agrees_with_the_paper():
    assert read_wiki() == read_json(SHARED / "paper/map_table.json", "Wiki")


# -- the driver ------------------------------------------------------------------------------------


def test_driver_helps():
    command = [sys.executable, "-m", "benchmarks.paper", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for word in ("binarization", "search-time", "--wiki", "--seeds"):
        assert word in done.stdout


def driver(*arguments):
    return CliRunner().invoke(main, arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "EXPERIMENT"),
        (("nothing",), "'nothing' is not one of"),
        (("map", "--methods", "XYZ"), "no 'XYZ' among"),
        (("map", "--bits", "8,x"), "whole numbers"),
        (("map", "--wiki", "none.npz"), "'none.npz' does not exist"),
    ],
)
def test_driver_refuses(arguments, words):
    done = driver(*arguments)
    assert done.exit_code == 2
    assert words in done.output


def test_driver_measures_emoji_and_explains_a_broken_file(tmp_path):
    arguments = ("map", "--methods", DEFAULTS, "--bits", "8", "--seeds", "1", "--output", str(tmp_path))
    done = driver(*arguments)
    assert done.exit_code == 0, done.output
    assert "map: emoji, CCQ, 8 bits, seed 0" in done.output
    scores = {row["task"]: float(row["value"]) for row in read_rows(tmp_path / "map.csv")}
    assert scores["I->T"] > 0.5
    (tmp_path / "map.csv").write_text("a,b\n")
    done = driver(*arguments)
    assert done.exit_code == 1
    assert "Error: " in done.output
    assert "move the file away" in done.output


@needs_wiki
def test_wiki_runs(tmp_path, monkeypatch):
    data = {"Wiki": load_data(WIKI)["Wiki"]}
    plan = Plan(data, {DEFAULTS: ccq(DEFAULTS)}, tmp_path, seeds=1, repeats=1, bits=(8,), say=lambda _: None)
    table.run(plan)
    monkeypatch.setattr(curves, "BITS", (8,))
    curves.run(plan)
    scores = {row["task"]: float(row["value"]) for row in read_rows(tmp_path / "map.csv")}
    assert scores["T->I"] > 0.38
    assert scores["I->T"] > 0.25
    points = grouped(read_rows(tmp_path / "curves.csv"), "task", "curve", "x")
    assert points["I->T", curves.TOP, "2173"][0] == pytest.approx(0.108, abs=0.01)
