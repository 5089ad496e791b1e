import json
from pathlib import Path

import numpy as np
import pytest

from ccq_core import CCQ, mean_average_precision
from ccq_core.datasets import load_emoji
from ccq_core.errors import InvalidInputError
from ccq_core.evaluation import LabelledData, evaluate, load_dataset, tasks
from ccq_core.metrics import relevance
from tests.core.conftest import make_pairs

SHARED = Path(__file__).parents[3] / "shared"
needs_wiki = pytest.mark.skipif(
    not (SHARED / "data/wiki/wiki.npz").exists(), reason="the Wiki data set is not beside the checkout (../shared)"
)


def test_average_precision_by_hand():
    relevant = np.array([[1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 0, 0]], dtype=bool)
    assert mean_average_precision(relevant) == pytest.approx(((1 + 2 / 3) / 2 + 0 + 1 / 2) / 3)
    assert mean_average_precision(np.ones((3, 50), dtype=bool)) == 1.0
    assert mean_average_precision(np.empty((0, 5), dtype=bool)) == 0.0


def test_relevance_of_single_and_multiple_labels_agree():
    rng = np.random.default_rng(0)
    q, r = rng.integers(0, 4, 6), rng.integers(0, 4, (6, 9))
    assert (relevance(q, r) == relevance(np.eye(4)[q], np.eye(4)[r])).all()
    both = relevance(np.array([[1, 1, 0]]), np.array([[[0, 1, 1], [0, 0, 1]]]))
    assert both.tolist() == [[True, False]]


def test_tasks_in_the_order_of_the_paper():
    assert [f"{a}->{b}" for a, b in tasks(("image", "text"))] == [
        "image->image", "text->text", "image->text", "text->image", "image->pair", "text->pair",
    ]  # fmt: skip
    assert len(tasks(("a", "b", "c"))) == 12
    assert tasks(("a",)) == [("a", "a")]


def labelled(n=300, q=60, missing=False):
    train, test = make_pairs(n, seed=0), make_pairs(q, seed=1)
    labels = [(data["image"][:, 0] > 2).astype(int) for data in (train, test)]
    if missing:
        train["text"][::3] = np.nan
        test["image"][::4] = np.nan
    return LabelledData(train, test, *labels)


@pytest.mark.parametrize("missing", [False, True])
def test_evaluate_against_brute_force(missing):
    data = labelled(missing=missing)
    model = CCQ(bits=16).fit(data.train)
    result = evaluate(model, data, r=20)
    assert list(result) == [f"{a}->{b}" for a, b in tasks(model.modalities)]
    rows = np.flatnonzero(~np.isnan(data.train["text"]).any(axis=1))
    asked = np.flatnonzero(~np.isnan(data.test["image"]).any(axis=1))
    y = model.decode(model.encode({"text": data.train["text"][rows]}))
    z = model.project({"image": data.test["image"][asked]})
    cosine = (z @ y.T) / np.linalg.norm(y, axis=1)
    top = rows[np.argsort(-cosine, axis=1, kind="stable")[:, :20]]
    expected = mean_average_precision(data.test_labels[asked][:, None] == data.train_labels[top])
    assert result["image->text"] == pytest.approx(expected, abs=0.01)  # the norm byte may swap near neighbours


def test_missing_modality_is_named():
    data = labelled()
    model = CCQ(bits=8).fit(make_pairs(50, dims=(12, 8, 3)))
    with pytest.raises(InvalidInputError, match="audio"):
        evaluate(model, data)


def write(path, **changes):
    data = labelled()
    arrays = {
        "image_train": data.train["image"],
        "text_train": data.train["text"],
        "label_train": data.train_labels,
        "image_test": data.test["image"],
        "text_test": data.test["text"],
        "label_test": data.test_labels,
        "note_train": np.array(["not", "a", "modality"]),
    }
    np.savez(path, **{k: v for k, v in {**arrays, **changes}.items() if v is not None})
    return path


def test_load_dataset(tmp_path):
    data = load_dataset(write(tmp_path / "d.npz"))
    assert set(data.train) == set(data.test) == {"image", "text"}
    matrix = load_dataset(write(tmp_path / "m.npz", label_train=np.eye(300), label_test=np.eye(60, 300)))
    assert matrix.train_labels.shape == (300, 300)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"label_train": None}, "'label_train' is missing"),
        ({"image_test": None}, "for the same names"),
        ({"label_train": np.zeros(7)}, "label_train: expected shape"),
        ({"label_test": np.full((60, 2), 2)}, "0 and 1"),
        ({"label_train": np.eye(300)}, "do not fit together"),
    ],
)
def test_bad_datasets_are_named(tmp_path, changes, words):
    with pytest.raises(InvalidInputError, match=words):
        load_dataset(write(tmp_path / "d.npz", **changes))


def test_files_that_are_no_dataset(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_dataset(tmp_path / "none.npz")
    for name, content in (("a.npz", b""), ("b.npz", b"PK\x03\x04junk"), ("c.npz", b"hello")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InvalidInputError, match="npz"):
            load_dataset(tmp_path / name)
    np.save(tmp_path / "d.npy", np.zeros(3))
    with pytest.raises(InvalidInputError, match="it is a NumPy array"):
        load_dataset(tmp_path / "d.npy")
    np.savez(tmp_path / "e.npz", image_train=np.array([{"a": 1}], dtype=object))
    with pytest.raises(InvalidInputError):
        load_dataset(tmp_path / "e.npz")


def mean_over_seeds(data, seeds, **settings):
    runs = [evaluate(CCQ.preset(seed=seed, **settings).fit(data.train), data) for seed in range(seeds)]
    return {task: float(np.mean([run[task] for run in runs])) for task in runs[0]}


BITS = (8, 16, 32, 64)


@pytest.fixture(scope="module")
def paper():
    """The paper's MAP of CCQ on Wiki by task and code length."""
    table = json.loads((SHARED / "paper/map_table.json").read_text())["map"]["Wiki"]
    names = {"I": "image", "T": "text", "IT": "pair"}
    return {
        ("->".join(names[n] for n in task.split("->")), bits): row["CCQ"][str(bits)]
        for task, row in table.items()
        for bits in BITS
    }


def on_wiki(seeds, **settings):
    data = load_dataset(SHARED / "data/wiki/wiki.npz")
    found = {bits: mean_over_seeds(data, seeds, bits=bits, **settings) for bits in BITS}
    return {(task, bits): score for bits, scores in found.items() for task, score in scores.items()}


@needs_wiki
def test_wiki_defaults_beat_the_paper(paper):
    ours = on_wiki(2, name="default")
    assert set(ours) == set(paper)
    assert sum(ours[cell] >= value for cell, value in paper.items()) >= 22
    assert min(ours[cell] - value for cell, value in paper.items()) > -0.005
    assert np.exp(np.mean([np.log(ours[cell] / value) for cell, value in paper.items()])) > 1.055


@needs_wiki
def test_wiki_paper_preset_reproduces_the_paper(paper):
    ours = on_wiki(2, name="paper")
    assert np.mean([abs(ours[cell] - value) for cell, value in paper.items()]) < 0.01
    assert max(abs(ours[cell] - value) for cell, value in paper.items()) < 0.05


def emoji_data():
    emoji = load_emoji()
    return LabelledData(dict(emoji.train.features), dict(emoji.test.features), emoji.train.labels, emoji.test.labels)


def loss_without_norms(data):
    byte, none = (mean_over_seeds(data, 3, name="default", bits=32, norm=norm) for norm in ("byte", "none"))
    return np.mean(list(byte.values())) - np.mean(list(none.values()))


@needs_wiki
def test_codes_without_norms_lose_little_on_wiki():
    assert loss_without_norms(load_dataset(SHARED / "data/wiki/wiki.npz")) < 0.01


def test_codes_without_norms_lose_nothing_on_emoji():
    assert loss_without_norms(emoji_data()) < 0.002


def test_emoji_are_found_across_modalities():
    scores = mean_over_seeds(emoji_data(), 2, name="default", bits=32)
    assert scores["image->text"] > 0.58
    assert scores["text->image"] > 0.58
    assert scores["text->pair"] > 0.66
