"""Verbs that need no service: train, evaluate, encode, info."""

import json
import os
import subprocess
import sys

import click
import numpy as np
import pyarrow
import pytest
from click.testing import CliRunner
from pyarrow import parquet

from ccq_cli.main import VERBS, main
from ccq_core import CCQ, simd
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


@pytest.mark.parametrize(
    ("objects", "bits", "words"),
    [
        (1, 8, "note: 1 object is fewer than the 256 codewords of a codebook"),
        (255, 8, "note: 255 objects are fewer than the 256 codewords of a codebook"),
        (256, 8, ""),
        (256, 72, "note: 256 objects are few for 2,304 codewords"),
    ],
)
def test_train_says_where_objects_are_few(tmp_path, objects, bits, words):
    np.savez(tmp_path / "data.npz", **{name: array[:objects] for name, array in make_pairs(256).items()})
    told = ccq("train", tmp_path / "data.npz", "-o", tmp_path / "m.ccq", "--bits", bits, "--iterations", 1)
    assert told.exit_code == 0
    notes = " ".join(told.stderr.split())
    assert words in notes
    assert bool(words) == ("note:" in notes)


def test_train_from_npz(tmp_path):
    data = make_pairs(100)
    np.savez(tmp_path / "plain.npz", **data)
    np.savez(tmp_path / "split.npz", **{f"{n}_train": a for n, a in data.items()}, label_train=np.zeros(100))
    for name in ("plain", "split"):
        assert ccq("train", tmp_path / f"{name}.npz", "-o", tmp_path / f"{name}.ccq", "--bits", 8).exit_code == 0
    assert (tmp_path / "plain.ccq").read_bytes() == (tmp_path / "split.ccq").read_bytes()


def test_train_in_batches(tmp_path):
    data = make_pairs(300)
    np.save(tmp_path / "image1.npy", data["image"][:100])
    np.save(tmp_path / "image2.npy", data["image"][100:])
    np.save(tmp_path / "text.npy", data["text"])
    columns = {name: list(array) for name, array in data.items()}
    parquet.write_table(pyarrow.table({**columns, "id": np.arange(300)}), tmp_path / "data.parquet")
    files = [f"image={tmp_path}/image1.npy", f"image={tmp_path}/image2.npy", f"text={tmp_path}/text.npy"]
    expected = CCQ(bits=8, iterations=4).fit(data)
    for name, words in {"npy": [*files, "--batch-rows", 70], "parquet": [tmp_path / "data.parquet"]}.items():
        result = ccq("train", *words, "-o", tmp_path / f"{name}.ccq", "--bits", 8, "--iterations", 4)
        assert result.exit_code == 0, result.output
        assert "300 objects" in result.stderr
        assert CCQ.load(tmp_path / f"{name}.ccq").losses_ == pytest.approx(expected.losses_, rel=1e-4)
    result = ccq("train", *files, "-o", tmp_path / "x.ccq")
    assert result.exit_code == 1
    assert "--batch-rows" in result.stderr
    result = ccq("train", files[0], tmp_path / "data.parquet", "-o", tmp_path / "x.ccq")
    assert result.exit_code == 2
    assert "in batches, expected NAME=FILE.npy" in result.stderr


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
    assert "std" not in table.output  # of one model there is none
    scores = [
        json.loads(ccq("evaluate", dataset, "--model", model_file, "--json", "--metric", m).stdout)["map"]
        for m in ("cosine", "euclidean")
    ]
    assert scores[0] != scores[1]


def test_a_model_is_told_from_data(model_file):
    for words in ([f"image={model_file}"], [model_file]):
        said = ccq("train", *words, "-o", "m.ccq").output
        assert "file: it is a safetensors file, as models are" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "nothing.npz", "-o", "m.ccq"], "nothing.npz: No such file"),
        (["train", "image", "-o", "m.ccq"], "No such file"),
        (["train", "image=a.npy", "text", "-o", "m.ccq"], "NAME=FILE.npy"),
        (["info", "broken.ccq"], "broken.ccq: no CCQ model"),
        (["evaluate", "broken.ccq"], "broken.ccq: not a readable .npz file: it is text"),
        (["info", "a.npy"], "a.npy: no CCQ model: it is a NumPy array, a file .npy"),
        (["encode", "a.npy", "image=a.npy", "-o", "m.ccq"], "a.npy: no CCQ model: it is a NumPy array, a file .npy"),
        (
            ["train", "image=a.npz", "-o", "m.ccq"],
            "a.npz: not a readable .npy file: it is a zip archive, as files .npz",
        ),
        (["train", "a.npy", "-o", "m.ccq"], "'a.npy': expected NAME=FILE.npy, as in image=a.npy"),
        (["train", "image=empty", "-o", "m.ccq"], "empty: not a readable .npy file: it is empty"),
        (["info", "empty"], "empty: the file is empty"),
        (["frobnicate"], "No such command"),
        (["health", "--url", "http://127.0.0.1:1"], "ccq serve"),
    ],
)
def test_errors_are_one_line_and_status_is_not_zero(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.ccq").write_bytes(b"hello world, this is no model")
    np.save(tmp_path / "a.npy", np.ones((3, 2)))
    np.savez(tmp_path / "a.npz", image=np.ones((3, 2)))
    (tmp_path / "empty").touch()
    result = ccq(*arguments)
    assert result.exit_code in (1, 2)
    assert words in result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "m.ccq").exists()


def test_steps_by_modality(arrays, tmp_path):
    steps = ["--preprocess", "image=rff,center", "--preprocess", "text=zca,unit"]
    assert ccq("train", *arrays, "-o", tmp_path / "m.ccq", "--iterations", 2, *steps).exit_code == 0
    assert CCQ.load(tmp_path / "m.ccq").preprocess == {"image": "rff,center", "text": "zca,unit"}


def test_train_as_wide_as_the_features(arrays, tmp_path):
    options = (["--dim", "full"], ["--dim", 8], ["--preset", "angles"])
    for name, given in zip("abc", options, strict=True):
        assert ccq("train", *arrays, "-o", tmp_path / f"{name}.ccq", "--iterations", 2, *given).exit_code == 0
    wide, eight, angles = (CCQ.load(tmp_path / f"{name}.ccq") for name in "abc")
    assert np.array_equal(wide.codebooks_, eight.codebooks_)
    assert (wide.dim, angles.dim, angles.mapping, angles.preprocess) == ("full", "full", "procrustes", "l2")


def test_bad_options_are_named(arrays, tmp_path):
    for options, words in (
        (["--bits", 12], "Invalid value for '--bits': expected 8 to 128, by 8, got 12: try 8 or 16"),
        (["--bits", 45], "got 45: try 40 or 48"),
        (["--bits", 0], "got 0: try 8\n"),
        (["--bits", 1000], "got 1000: try 128\n"),
        (["--bits", "many"], "'many' is not a valid integer"),
        (["--dim", 0], "Invalid value for '--dim': 0 is not in the range x>=1"),
        (["--dim", "wide"], "'wide' is not a valid integer"),
        (["--effort", 4], "Invalid value for '--effort': 4 is not in the range 0<=x<=3"),
        (["--iterations", 0], "Invalid value for '--iterations'"),
        (["--mapping-ridge", -1], "Invalid value for '--mapping-ridge'"),
        (["--seed", -1], "Invalid value for '--seed'"),
        (["--weights", "text"], "NAME=VALUE"),
        (["--weights", "sound=2"], "'sound' is no modality"),
        (["--preprocess", "magic"], "unknown step 'magic'"),
        (["--preprocess", "zca", "--preprocess", "unit"], "'zca': expected MODALITY=STEPS"),
        (["--preprocess", "text=zca", "--preprocess", "text=unit"], "'text=unit': expected MODALITY=STEPS, each"),
        (["--preprocess", "text=zca"], "no entry for modality 'image'"),
        (["--preprocess", "text=zca", "--preprocess", "image=magic"], "unknown step 'magic'"),
    ):
        result = ccq("train", *arrays, "-o", tmp_path / "m.ccq", *options)
        assert result.exit_code == (2 if "Usage" in result.output else 1)
        assert words in result.output


def test_numbers_out_of_range_are_told_before_anything_is_done():
    """Of every verb: a least or a most, or a reason, for each option that is a number."""
    without = {"search": {"score_threshold"}}  # any number
    seen = set()

    def look(name, command):
        for option in command.params:
            seen.add(option.type.name)
            if type(option.type) in (type(click.INT), type(click.FLOAT)):
                assert option.name in without.get(name, ()), f"{name}: {option.name}"

    context = click.Context(main)
    for name in VERBS:
        command = main.get_command(context, name)
        for each in getattr(command, "commands", {"": command}).values():
            look(name, each)
    assert {"integer range", "float range"} <= seen
    assert ccq("bench", "scan", "--n", 0).exit_code == 2
    assert "try 8 or 16" in ccq("demo", "--bits", 10).output


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (np.ones((2, 3, 4)), "image: expected shape (n, P), got (2, 3, 4)"),
        (np.full((4, 12), np.inf), "image: row 0: number 0: inf is infinite"),
        (np.where(np.arange(48).reshape(4, 12) == 25, np.nan, 1.0), "image: row 2: number 1: NaN in a row"),
        (np.ones((4, 13)), "image: expected 12 numbers, got 13"),
    ],
)
def test_faults_of_arrays_name_their_files(content, words, model_file, tmp_path):
    np.save(tmp_path / "a.npy", content)
    np.savez(tmp_path / "a.npz", image=content)
    data = {f"image={tmp_path / 'a.npy'}": "a.npy"}
    if content.ndim == 2:
        data[tmp_path / "a.npz"] = "a.npz"
    for source, name in data.items():
        encode, evaluate = ["encode", model_file, source, "-o", tmp_path / "c.npy"], ["evaluate", source]
        for verb in (encode, evaluate) if "13" not in words else (encode,):
            assert f"Error: {tmp_path / name}: {words}" in ccq(*verb).output


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (np.array(3.0), "expected shape (n, P), got ()"),
        (np.ones(12), "expected shape (n, P), got (12,)"),
        (np.ones((3, 4, 3)), "expected shape (n, P), got (3, 4, 3)"),
        (np.ones((3, 12)) * 1j, "expected numbers, got an array of 'complex128'"),
        (np.ones((3, 12), dtype=bool), "expected numbers"),
        (np.full((3, 12), "1"), "expected numbers"),
        (np.zeros(3, dtype=[("a", "f4"), ("b", "i4")]), "expected numbers"),
        ({"image": np.ones((3, 12))}, "not a readable .npy file"),
        (b"PK\x03\x04 and no more", "not a readable .npy file"),
        (b"\x93NUMPY\x01\x00\x10\x00{'descr': ((((( ", "not a readable .npy file"),
        (b"", "not a readable .npy file"),
    ],
)
def test_every_verb_refuses_what_is_no_array_of_vectors(content, words, model_file, tmp_path):
    path = tmp_path / "x.npy"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, dict):
        with path.open("wb") as file:
            np.savez(file, **content)
    else:
        np.save(path, content)
    verbs = [["train", "-o", tmp_path / "x.ccq"], ["encode", model_file, "-o", tmp_path / "codes.npy"], ["index"]]
    if words != "expected shape (n, P), got (12,)":  # one vector may be searched with
        verbs.append(["search"])
    for verb in verbs:
        result = ccq(*verb, f"image={path}")
        assert (result.exit_code, result.output.count("\n")) == (1, 1), result.output
        assert words in result.output
    assert not (tmp_path / "x.ccq").exists()


def test_names_are_printed_as_they_are(model_file):
    path = model_file.with_name("[bold]m[1] :cat: [red].ccq")
    path.write_bytes(model_file.read_bytes())
    assert path.name in ccq("info", path).output
    arrays = f"image={model_file.with_name('image.npy')}"
    assert path.name in ccq("train", arrays, "--bits", 8, "-o", path).output


@pytest.mark.parametrize("verb", ["train", "encode"])
def test_output_that_cannot_be_written_is_named_before_the_work(verb, model_file, arrays, tmp_path, monkeypatch):
    monkeypatch.setattr(CCQ, "fit", None)
    monkeypatch.setattr(CCQ, "encode", None)
    before = [] if verb == "train" else [model_file]
    for output in ("", tmp_path / "nowhere" / "file", tmp_path / ("x" * 256), "/proc/file"):
        result = ccq(verb, *before, *arrays, "-o", output)
        assert (result.exit_code, result.output.count("\n")) == (1, 1), result.output
        assert str(output) in result.output


def run(command, **environment):
    """A shell command, in which `ccq` is the one under test: its exit status and standard error."""
    line = f'set -o pipefail; ccq() {{ "{sys.executable}" -m ccq_cli "$@"; }}; {command}'
    result = subprocess.run(["bash", "-c", line], capture_output=True, timeout=60, env={**os.environ, **environment})
    return result.returncode, result.stderr.decode(), result.stdout.decode()


@pytest.mark.parametrize("command", ["info m.ccq", "info m.ccq --json", "--help", "info --help"])
def test_output_may_be_full_cut_short_or_closed(command, model_file, monkeypatch):
    monkeypatch.chdir(model_file.parent)
    assert run(f"ccq {command} > /dev/full") == (1, "Error: output: No space left on device\n", "")
    assert run(f"ccq {command} >&-")[:2] == (0, "")
    assert run(f"ccq {command} | true")[1] == ""


def test_output_to_a_device(model_file, arrays, tmp_path):
    status, errors, output = run(
        f"ccq encode {model_file} {' '.join(arrays)} -o /dev/stdout | tail -c 900 | base64 -w0"
    )
    assert (status, errors) == (0, "/dev/stdout: 300 items of 3 bytes\n")
    assert len(output) == 1200
    status, errors, _ = run(f"ccq encode {model_file} {' '.join(arrays)} -o /dev/full")
    assert (status, errors) == (1, "Error: /dev/full: No space left on device\n")


def test_a_terminal_that_cannot_show_everything(model_file, monkeypatch):
    monkeypatch.chdir(model_file.parent)
    model_file.rename("🐱.ccq")
    status, errors, output = run("ccq info 🐱.ccq", PYTHONIOENCODING="ascii")
    assert (status, errors) == (0, "")
    assert "?.ccq" in output


def test_info_without_a_model_tells_what_runs_here():
    facts = json.loads(ccq("info", "--json").output)
    assert facts["simd_level"] == simd.get_level()
    assert "portable" in facts["simd_levels"]


def test_bench_prints_the_rows_that_programs_read():
    options = [
        "--n",
        20_000,
        "--m",
        2,
        "--queries",
        3,
        "--metric",
        "cosine",
        "--level",
        "portable",
        "--plain",
        "--json",
    ]
    result = ccq("bench", "scan", *options)
    assert result.exit_code == 0, result.output
    (row,) = json.loads(result.stdout.splitlines()[-1])
    keys = {"level", "n", "m", "k", "queries", "threads", "metric", "ns_per_item", "read_ns_per_item", "faiss"}
    assert keys <= set(row)
    assert row["ns_per_item"] > 0
    assert row["read_ns_per_item"] > 0


def test_bench_encode_and_train_run():
    for verb in (["encode", "--n", 500, "--m", 2], ["train", "--n", 500, "--m", 2, "--iterations", 1]):
        rows = json.loads(ccq("bench", *verb, "--json").stdout.splitlines()[-1])
        assert all(0 < row["error"] < 1 for row in rows)
