"""Readers of published files, on tiny files of the same form."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.sparse import csr_array

from benchmarks.data import __main__ as commands
from benchmarks.data import load_flickr1m, load_nus_wide, save, training_sample, unlabelled_pairs
from ccq_core import CCQ
from ccq_core.evaluation import evaluate, load_dataset

ROOT = Path(__file__).parents[2]
SMALL = {"words": 5, "tags": 4, "concepts": 3, "kept": 2, "queries": 6}


def write_nus_wide(folder, n=40):
    rng = np.random.default_rng(0)
    words, tags = rng.integers(0, 9, (n, 5)), rng.integers(0, 2, (n, 4))
    labels = (rng.random((n, 3)) < [0.1, 0.4, 0.7]).astype(int)
    for name in ("Low_Level_Features", "NUS_WID_Tags", "Groundtruth/AllLabels", "Groundtruth/TrainTestLabels"):
        (folder / name).mkdir(parents=True)
    lines = "".join(" ".join(map(str, row)) + " \n" for row in words)  # a blank at the end, as published
    (folder / "Low_Level_Features/BoW_int.dat").write_text(lines)
    (folder / "NUS_WID_Tags/AllTags1k.txt").write_text("".join("\t".join(map(str, r)) + "\t\n" for r in tags))
    for concept, column in zip(("airport", "clouds", "person"), labels.T, strict=True):
        text = "".join(f"{value}\n" for value in column)
        (folder / f"Groundtruth/AllLabels/Labels_{concept}.txt").write_text(text)
    (folder / "Groundtruth/TrainTestLabels/Labels_airport_Test.txt").write_text("0\n")
    return words, tags, labels


def test_nus_wide(tmp_path):
    words, tags, labels = write_nus_wide(tmp_path)
    data = load_nus_wide(tmp_path, **SMALL)
    kept = labels[:, [2, 1]].any(axis=1)  # person is the most frequent, then clouds
    assert len(data.test_labels) == 6
    assert len(data.train_labels) == kept.sum() - 6
    found = np.concatenate([data.train["image"], data.test["image"]])
    assert sorted(found.tolist()) == sorted(words[kept].tolist())
    # Rows of all three still belong together.
    table = {tuple(w): (tuple(t), tuple(y)) for w, t, y in zip(words, tags, labels[:, [2, 1]], strict=True)}
    for features, found_labels in ((data.train, data.train_labels), (data.test, data.test_labels)):
        for w, t, y in zip(features["image"], features["text"], found_labels, strict=True):
            assert table[tuple(w)] == (tuple(t), tuple(y))
    again, other = load_nus_wide(tmp_path, **SMALL), load_nus_wide(tmp_path, **SMALL, seed=1)
    assert (again.test["image"] == data.test["image"]).all()
    assert (other.test["image"] != data.test["image"]).any()


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda f: (f / "NUS_WID_Tags/AllTags1k.txt").unlink(), FileNotFoundError, r"AllTags1k.txt .*got none"),
        (lambda f: (f / "BoW_int.dat").write_text("1"), FileNotFoundError, "expected one file BoW_int.dat"),
        (lambda f: (f / "NUS_WID_Tags/AllTags1k.txt").write_text("1 0 1\n"), ValueError, "expected 4 numbers a line"),
        (lambda f: (f / "NUS_WID_Tags/AllTags1k.txt").write_text("1 0 1 0\n1 0\n"), ValueError, "AllTags1k.*columns"),
        (lambda f: (f / "Low_Level_Features/BoW_int.dat").write_text("1 2 3 4 x"), ValueError, "not a table of numb"),
        (lambda f: (f / "NUS_WID_Tags/AllTags1k.txt").write_text("1 0 1 0\n"), ValueError, "same length, got 40 lines"),
        (lambda f: (f / "Groundtruth/AllLabels/Labels_clouds.txt").unlink(), FileNotFoundError, "3 files .*got 2"),
        (lambda f: (f / "Groundtruth/AllLabels/Labels_clouds.txt").write_text("1\n"), ValueError, "clouds.*40 lines"),
        (lambda f: (f / "Groundtruth/AllLabels/Labels_clouds.txt").write_text("2\n" * 40), ValueError, "0 or 1"),
    ],
)
def test_broken_nus_wide_is_named(tmp_path, change, error, words):
    write_nus_wide(tmp_path)
    change(tmp_path)
    with pytest.raises(error, match=words):
        load_nus_wide(tmp_path, **SMALL)


def test_too_few_pairs_for_the_queries(tmp_path):
    write_nus_wide(tmp_path, n=5)
    with pytest.raises(ValueError, match="more than 6 objects"):
        load_nus_wide(tmp_path, **SMALL)
    with pytest.raises(FileNotFoundError, match="no such folder"):
        load_nus_wide(tmp_path / "none", **SMALL)


def write_flickr1m(folder):
    rng = np.random.default_rng(1)
    sizes = {"labelled": (20, 20, 10), "unlabelled": (10, 20, 7)}
    names = {"labelled": ("00001", "00002", "00003_0"), "unlabelled": ("00003_1", "00004", "00005")}
    arrays = {}
    (folder / "text").mkdir()
    for kind in sizes:
        (folder / "image" / kind).mkdir(parents=True)
        pieces = [rng.standard_normal((size, 6)).astype(np.float32) for size in sizes[kind]]
        for name, piece in zip(names[kind], pieces, strict=True):
            np.save(folder / f"image/{kind}/combined-{name}-of-00100.npy", piece)
        tags = rng.integers(0, 3, (sum(sizes[kind]), 4))
        sparse = csr_array(tags)
        np.savez(
            folder / f"text/text_all_2000_{kind}.npz",
            data=sparse.data, indices=sparse.indices, indptr=sparse.indptr, shape=np.array(tags.shape),
        )  # fmt: skip
        arrays[kind] = {"image": np.concatenate(pieces), "text": (tags > 0).astype(np.float32)}
    arrays["labels"] = rng.integers(0, 2, (50, 3)).astype(np.float64)
    np.save(folder / "labels.npy", arrays["labels"])
    return arrays


FLICKR = {"features": 6, "tags": 4}


def test_flickr1m(tmp_path):
    arrays = write_flickr1m(tmp_path)
    data = load_flickr1m(tmp_path, **FLICKR, concepts=3, queries=8)
    assert len(data.test_labels) == 8
    rows = {tuple(x): i for i, x in enumerate(arrays["labelled"]["image"])}
    seen = []
    for features, labels in ((data.train, data.train_labels), (data.test, data.test_labels)):
        at = [rows[tuple(x)] for x in features["image"]]
        assert (features["text"] == arrays["labelled"]["text"][at]).all()
        assert (labels == arrays["labels"][at]).all()
        seen += at
    assert sorted(seen) == list(range(50))


def test_unlabelled_pairs_come_in_batches_again_and_again(tmp_path):
    arrays = write_flickr1m(tmp_path)["unlabelled"]
    pairs = unlabelled_pairs(tmp_path, **FLICKR, batch=8)
    assert len(pairs) == 37
    for _ in range(2):
        batches = list(pairs)
        assert [len(batch["image"]) for batch in batches] == [8, 2, 8, 8, 4, 7]
        for name in ("image", "text"):
            assert (np.concatenate([batch[name] for batch in batches]) == arrays[name]).all()
            assert batches[0][name].dtype == np.float32


def sparse_file(folder, **changes):
    arrays = {"data": np.ones(1), "indices": np.zeros(1, int), "indptr": np.array([0, 1]), "shape": np.array([1, 4])}
    kept = {name: array for name, array in {**arrays, **changes}.items() if array is not None}
    np.savez(folder / "text/text_all_2000_labelled.npz", **kept)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda f: (f / "labels.npy").unlink(), FileNotFoundError, r"labels\.npy"),
        (lambda f: (f / "labels.npy").write_bytes(b"hello"), ValueError, r"labels\.npy: not a readable"),
        (lambda f: (f / "labels.npy").write_bytes(b"PK\x03\x04junk"), ValueError, r"labels\.npy: not a readable"),
        (
            lambda f: (f / "text/text_all_2000_unlabelled.npz").replace(f / "labels.npy"),
            ValueError,
            "expected one array",
        ),
        (lambda f: np.save(f / "labels.npy", np.ones((50, 2))), ValueError, r"shape \(n, 3\) of 0 and 1"),
        (lambda f: np.save(f / "labels.npy", np.full((50, 3), 2)), ValueError, "0 and 1"),
        (lambda f: np.save(f / "labels.npy", np.ones((49, 3))), ValueError, "got 50, 50 and 49"),
        (lambda f: np.save(f / "image/labelled/combined-00002-of-00100.npy", np.ones((2, 5))), ValueError, r"\(n, 6\)"),
        (lambda f: [p.unlink() for p in (f / "image/labelled").iterdir()], FileNotFoundError, r"combined-\*\.npy"),
        (lambda f: sparse_file(f, indptr=None), ValueError, "'indptr' is missing"),
        (lambda f: sparse_file(f, shape=np.array([1, 9])), ValueError, r"expected shape \(n, 4\), got \(1, 9\)"),
        (lambda f: sparse_file(f, indices=np.array([7])), ValueError, "not a sparse matrix"),
        (lambda f: sparse_file(f, indptr=np.array([0, 1, 1])), ValueError, "not a sparse matrix"),
        (lambda f: sparse_file(f, data=np.array([{}])), ValueError, "not a readable"),
    ],
)
def test_broken_flickr1m_is_named(tmp_path, change, error, words):
    write_flickr1m(tmp_path)
    change(tmp_path)
    with pytest.raises(error, match=words):
        load_flickr1m(tmp_path, **FLICKR, concepts=3, queries=8)


def test_unlabelled_files_of_different_lengths(tmp_path):
    write_flickr1m(tmp_path)
    (tmp_path / "image/unlabelled/combined-00005-of-00100.npy").unlink()
    with pytest.raises(ValueError, match="got 30 and 37"):
        unlabelled_pairs(tmp_path, **FLICKR)


def test_the_papers_protocol_end_to_end(tmp_path):
    write_flickr1m(tmp_path)
    data = load_flickr1m(tmp_path, **FLICKR, concepts=3, queries=8)
    sample = training_sample(data, 30, seed=2)
    rows = {tuple(x): tuple(t) for x, t in zip(data.train["image"], data.train["text"], strict=True)}
    assert len({tuple(x) for x in sample["image"]}) == 30
    assert all(rows[tuple(x)] == tuple(t) for x, t in zip(sample["image"], sample["text"], strict=True))
    with pytest.raises(ValueError, match="at most 42 training objects"):
        training_sample(data, 43)
    scores = evaluate(CCQ(bits=8).fit(sample), data, r=10)
    assert set(scores) >= {"image->text", "text->pair"}
    save(data, tmp_path / "saved.npz")
    again = load_dataset(tmp_path / "saved.npz")
    assert (again.train["text"] == data.train["text"]).all()
    assert (again.test_labels == data.test_labels).all()


def test_command_explains_what_is_missing(tmp_path):
    command = [sys.executable, "-m", "benchmarks.data", "save", "nus-wide", str(tmp_path), str(tmp_path / "o.npz")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Error: " in done.stderr
    assert "BoW_int.dat" in done.stderr
    assert not (tmp_path / "o.npz").exists()


def test_evaluate_command_follows_the_paper(tmp_path, monkeypatch):
    nus_wide, flickr1m = tmp_path / "nus-wide", tmp_path / "flickr1m"
    for folder, write in ((nus_wide, write_nus_wide), (flickr1m, write_flickr1m)):
        folder.mkdir()
        write(folder)
    small = partial(load_flickr1m, **FLICKR, concepts=3, queries=8)
    monkeypatch.setitem(commands.LOADERS, "nus-wide", partial(load_nus_wide, **SMALL))
    monkeypatch.setitem(commands.LOADERS, "flickr1m", small)
    monkeypatch.setattr(commands, "unlabelled_pairs", partial(unlabelled_pairs, **FLICKR))
    for folder in (nus_wide, flickr1m):
        arguments = ["evaluate", folder.name, str(folder), "--bits", "8", "--seeds", "2", "--preprocess", "zscore,unit"]
        done = CliRunner().invoke(commands.main, arguments)
        assert done.exit_code == 0, done.output
        lines = [line.split(",") for line in done.output.splitlines()]
        assert lines[0] == ["bits", "task", "mean", "std"]
        assert [line[1] for line in lines[1:]][2:4] == ["image->text", "text->image"]
        assert all(0 < float(line[2]) <= 1 for line in lines[1:])
