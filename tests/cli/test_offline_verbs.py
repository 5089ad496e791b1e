"""Verbs that need no service: train, evaluate, encode, info."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from ccq_cli.main import VERBS, main
from ccq_core import CCQ
from tests.core.conftest import make_pairs


def ccq(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.fixture
def arrays(tmp_path):
    data = make_pairs(300)
    for name, array in data.items():
        np.save(tmp_path / f"{name}.npy", array)
    return [f"{name}={tmp_path / name}.npy" for name in data]


@pytest.fixture
def model_file(tmp_path, arrays):
    path = tmp_path / "m.ccq"
    result = ccq("train", *arrays, "-o", path, "--bits", 16, "--weights", "image=1,text=3", "--seed", 4)
    assert result.exit_code == 0, result.output
    assert "16 bits, image (12) + text (8), 300 objects" in result.output
    return path


def test_help_names_every_verb():
    result = ccq("--help")
    assert result.exit_code == 0
    for verb in VERBS:
        assert verb in result.output
        assert ccq(verb, "--help").exit_code == 0


def test_train_is_what_the_library_does(model_file):
    expected = CCQ(bits=16, weights={"image": 1.0, "text": 3.0}, seed=4).fit(make_pairs(300))
    assert model_file.read_bytes() == expected.to_bytes()


def test_train_from_npz(tmp_path):
    data = make_pairs(100)
    np.savez(tmp_path / "plain.npz", **data)
    np.savez(tmp_path / "split.npz", **{f"{n}_train": a for n, a in data.items()}, label_train=np.zeros(100))
    for name in ("plain", "split"):
        assert ccq("train", tmp_path / f"{name}.npz", "-o", tmp_path / f"{name}.ccq", "--bits", 8).exit_code == 0
    assert (tmp_path / "plain.ccq").read_bytes() == (tmp_path / "split.ccq").read_bytes()


def test_encode(model_file, arrays, tmp_path):
    result = ccq("encode", model_file, *arrays, "-o", tmp_path / "codes.npy")
    assert result.exit_code == 0, result.output
    codes = np.load(tmp_path / "codes.npy")
    assert (codes == CCQ.load(model_file).encode(make_pairs(300))).all()


def test_info(model_file):
    facts = json.loads(ccq("info", model_file, "--json").output)
    assert facts["bits"] == 16
    assert facts["bytes_per_item"] == 3
    assert [m["name"] for m in facts["modalities"]] == ["image", "text"]
    assert "bytes per item" in ccq("info", model_file).output


@pytest.fixture
def dataset(tmp_path):
    parts = {"train": make_pairs(200), "test": make_pairs(40, seed=1)}
    arrays = {f"{name}_{part}": array for part, data in parts.items() for name, array in data.items()}
    labels = {f"label_{part}": (data["image"][:, 0] > 2).astype(int) for part, data in parts.items()}
    np.savez(tmp_path / "d.npz", **arrays, **labels)
    return tmp_path / "d.npz"


def test_evaluate_json(dataset):
    result = ccq("evaluate", dataset, "--bits", 16, "--seeds", 2, "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert (report["bits"], report["seeds"]) == (16, 2)
    assert list(report["map"]) == [
        "image->image", "text->text", "image->text", "text->image", "image->pair", "text->pair",
    ]  # fmt: skip
    for score in report["map"].values():
        assert 0 < score["mean"] <= 1
        assert 0 <= score["std"] < 0.5


def test_evaluate_a_trained_model_and_metric(dataset, model_file):
    table = ccq("evaluate", dataset, "--model", model_file)
    assert "image -> pair" in table.output
    scores = [
        json.loads(ccq("evaluate", dataset, "--model", model_file, "--json", "--metric", m).stdout)["map"]
        for m in ("cosine", "euclidean")
    ]
    assert scores[0] != scores[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "nothing.npz", "-o", "m.ccq"], "nothing.npz: No such file"),
        (["train", "image", "-o", "m.ccq"], "No such file"),
        (["train", "image=a.npy", "text", "-o", "m.ccq"], "NAME=FILE.npy"),
        (["info", "broken.ccq"], "broken.ccq: no CCQ model"),
        (["evaluate", "broken.ccq"], "not a readable .npz file"),
        (["frobnicate"], "No such command"),
        (["health", "--url", "http://127.0.0.1:1"], "ccq serve"),
    ],
)
def test_errors_are_one_line_and_status_is_not_zero(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.ccq").write_bytes(b"hello world, this is no model")
    np.save(tmp_path / "a.npy", np.ones((3, 2)))
    result = ccq(*arguments)
    assert result.exit_code in (1, 2)
    assert words in result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "m.ccq").exists()


def test_bad_options_are_named(arrays, tmp_path):
    for options, words in (
        (["--bits", 12], "multiple of 8"),
        (["--weights", "text"], "NAME=VALUE"),
        (["--weights", "sound=2"], "'sound' is no modality"),
        (["--preprocess", "magic"], "unknown step 'magic'"),
    ):
        result = ccq("train", *arrays, "-o", tmp_path / "m.ccq", *options)
        assert result.exit_code != 0
        assert words in result.output
