"""The model file against strangers: truncated, flipped, newer, foreign, and crafted files."""

import contextlib
import json
import math
import os
import pickle
import random
import stat
import struct
import threading
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from ccq_core import CCQ
from ccq_core.errors import (
    ModelCorruptError,
    ModelFileError,
    ModelFormatError,
    ModelTruncatedError,
    ModelVersionError,
)
from ccq_core.modelfile import _checksum, check_writable

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="module")
def data(model):
    return model.to_bytes()


def unpack(data):
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["ccq"])
    return header, safetensors.numpy.load(data)


def pack(header, arrays, *, sign=True):
    if sign:
        header = {**header, "checksum": _checksum(header, arrays)}
    return safetensors.numpy.save(arrays, metadata={"ccq": json.dumps(header)})


def test_round_trip_is_exact(model, pairs, tmp_path):
    path = tmp_path / "m.ccq"
    model.save(path)
    loaded = CCQ.load(path)
    assert loaded.to_bytes() == model.to_bytes() == path.read_bytes()
    assert (loaded.encode(pairs) == model.encode(pairs)).all()
    assert loaded.modalities == model.modalities
    assert loaded.losses_ == model.losses_
    assert loaded.bits == 16


def test_save_replaces_whole_and_leaves_nothing_behind(model, tmp_path):
    path = tmp_path / "m.ccq"
    path.write_bytes(b"old")
    model.save(path)
    assert CCQ.load(path).bits == 16
    assert os.listdir(tmp_path) == ["m.ccq"]
    with pytest.raises(FileNotFoundError):
        model.save(tmp_path / "nowhere" / "m.ccq")


def test_save_that_fails_keeps_the_old_file(model, tmp_path, monkeypatch):
    path = tmp_path / "m.ccq"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        model.save(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["m.ccq"]


def test_save_follows_links(model, tmp_path):
    (tmp_path / "real").mkdir()
    link, broken = tmp_path / "link.ccq", tmp_path / "broken.ccq"
    (tmp_path / "real" / "m.ccq").write_bytes(b"old")
    link.symlink_to(Path("real") / "m.ccq")
    broken.symlink_to(tmp_path / "real" / "new.ccq")
    for path in (link, broken):
        model.save(path)
        assert path.is_symlink()
        assert path.resolve().read_bytes() == model.to_bytes()
    assert sorted(os.listdir(tmp_path / "real")) == ["m.ccq", "new.ccq"]


def test_save_writes_into_pipes_and_devices(model, tmp_path):
    path, received = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: received.append(path.read_bytes()), daemon=True)
    reader.start()
    model.save(path)
    reader.join(timeout=20)
    assert received == [model.to_bytes()]
    assert stat.S_ISFIFO(path.stat().st_mode)
    for device in (os.devnull, "/dev/full"):
        link = tmp_path / Path(device).name
        link.symlink_to(device)  # a fault of `save` would cost the link, not the device
        if device == os.devnull:
            model.save(link)
        else:
            with pytest.raises(OSError, match=r"No space left on device: '.*/full'"):
                model.save(link)
        assert link.is_symlink()
        assert stat.S_ISCHR(link.stat().st_mode)


def test_save_takes_the_longest_name_and_names_no_other(model, tmp_path):
    model.save(tmp_path / ("x" * 255))
    cases = {
        "": FileNotFoundError,
        str(tmp_path / ("x" * 256)): OSError,
        str(tmp_path / "nowhere" / "m.ccq"): FileNotFoundError,
        str(tmp_path): IsADirectoryError,
        str(tmp_path / ("x" * 255) / "m.ccq"): NotADirectoryError,
    }
    for path, kind in cases.items():
        for refuse in (model.save, check_writable):
            with pytest.raises(kind) as caught:
                refuse(path)
            assert caught.value.filename == path
    assert os.listdir(tmp_path) == ["x" * 255]


def test_golden_files_of_every_version_load():
    expected = json.loads((GOLDEN / "expected.json").read_text())
    assert expected
    for name, facts in expected.items():
        model = CCQ.load(GOLDEN / name)
        features = {m: np.array(rows, dtype=np.float32) for m, rows in facts["features"].items()}
        assert model.encode(features).tolist() == facts["codes"]


@pytest.mark.parametrize("share", [0.0, 0.0001, 0.001, 0.01, 0.3, 0.9, 0.99999])
def test_truncated(data, share):
    with pytest.raises(ModelTruncatedError):
        CCQ.from_bytes(data[: int(share * len(data))])


def test_one_byte_short_or_long(data):
    with pytest.raises(ModelTruncatedError):
        CCQ.from_bytes(data[:-1])
    with pytest.raises(ModelFileError):
        CCQ.from_bytes(data + b"x")


def test_any_flipped_bit_is_noticed(data):
    rng = np.random.default_rng(0)
    length = 8 + struct.unpack("<Q", data[:8])[0]
    positions = [*range(8), *rng.integers(8, length, 150).tolist(), *rng.integers(length, len(data), 50).tolist()]
    for position in positions:
        broken = bytearray(data)
        broken[position] ^= 1 << int(rng.integers(8))
        with pytest.raises(ModelFileError):
            CCQ.from_bytes(bytes(broken))


def test_flipped_payload_says_damaged(data):
    broken = bytearray(data)
    broken[-1] ^= 1
    with pytest.raises(ModelCorruptError, match="checksum"):
        CCQ.from_bytes(bytes(broken))


def test_newer_version(data):
    header, arrays = unpack(data)
    with pytest.raises(ModelVersionError, match=r"version 2.*up to 1.*upgrade"):
        CCQ.from_bytes(pack({**header, "version": 2}, arrays))


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00" * 7, b"\x00" * 100, b"PK\x03\x04" + b"x" * 100, b"<!doctype html><html></html>", b"{}" * 50],
)
def test_foreign_files(content):
    with pytest.raises((ModelFormatError, ModelTruncatedError)):
        CCQ.from_bytes(content)


def test_pickles_are_never_executed(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "exploded",))

    for content in (pickle.dumps(Bomb()), pickle.dumps(Bomb(), protocol=0)):
        with pytest.raises(ModelFileError):
            CCQ.from_bytes(content)
    assert not (tmp_path / "exploded").exists()


def test_announced_sizes_are_checked_before_they_are_believed():
    header = json.dumps({"codebooks": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 1 << 42]}}).encode()
    with pytest.raises(ModelTruncatedError):
        CCQ.from_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(ModelFormatError):
        CCQ.from_bytes(struct.pack("<Q", 1 << 60) + b"{}")


def test_plain_safetensors_is_no_model():
    with pytest.raises(ModelFormatError, match="no CCQ model"):
        CCQ.from_bytes(safetensors.numpy.save({"x": np.zeros(3, np.float32)}))


def changed(header, arrays, kind):
    """A correctly signed file that lies."""
    header, arrays = json.loads(json.dumps(header)), dict(arrays)
    match kind:
        case "missing":
            del arrays["norm_levels"]
        case "extra":
            arrays["extra"] = np.zeros(3, np.float32)
        case "dtype":
            arrays["codebooks"] = arrays["codebooks"].astype(np.float64)
        case "shape":
            arrays["mapping.0"] = arrays["mapping.0"][:, :-1].copy()
        case "nan":
            arrays["codebooks"] = np.full_like(arrays["codebooks"], np.nan)
        case "huge":
            arrays["codebooks"] = arrays["codebooks"] * np.float32(1e30)
        case "bits":
            header["parameters"]["bits"] = 24
        case "bits text":
            header["parameters"]["bits"] = "16"
        case "bits real":
            header["parameters"]["bits"] = 16.0
        case "parameters":
            header["parameters"] = [1]
        case "weights":
            header["parameters"]["weights"] = [1]
        case "weights text":
            header["parameters"]["weights"] = "text"
        case "weights huge":
            header["parameters"]["weights"] = {"text": 10**400}
        case "tolerance":
            header["parameters"]["tolerance"] = float("inf")
        case "dim parameter":
            header["parameters"]["dim"] = "x"
        case "preprocess":
            header["parameters"]["preprocess"] = 3
        case "empty":
            arrays["codebooks"] = arrays["codebooks"][:, :, :0].copy()
            arrays |= {f"mapping.{i}": arrays[f"mapping.{i}"][:, :0].copy() for i in range(2)}
        case "bits huge":
            header["parameters"]["bits"] = 8 * 10**6
        case "unknown parameter":
            header["parameters"]["shell"] = "rm"
        case "no parameters":
            del header["parameters"]
        case "metric":
            header["parameters"]["metric"] = "hamming"
        case "effort":
            header["parameters"]["effort"] = 10**9
        case "two of a name":
            header["modalities"][1]["name"] = header["modalities"][0]["name"]
        case "reserved name":
            header["modalities"][0]["name"] = "pair"
        case "hostile name":
            header["modalities"][0]["name"] = "../../etc"
        case "weight":
            header["modalities"][0]["weight"] = -1
        case "step":
            header["modalities"][0]["steps"] = ["eval"]
        case "dim":
            header["modalities"][0]["dim"] = 13
        case "dim real":
            header["modalities"][0]["dim"] = 12.0
        case "dim bool":
            header["modalities"][0]["dim"] = True
        case "weight bool":
            header["modalities"][0]["weight"] = True
        case "weight huge":
            header["modalities"][0]["weight"] = 1e308
        case "steps text":
            header["modalities"][0]["steps"] = "zca,unit"
        case "steps none":
            header["modalities"][0]["steps"] += ["none"]
        case "modality":
            header["modalities"][0] = "image"
        case "modality key":
            header["modalities"][0]["path"] = "/etc"
        case "key":
            header["extra"] = 1
        case "losses digits":
            header["losses"] = "123"
        case "losses nan":
            header["losses"] = [float("nan")]
        case "losses text":
            header["losses"] = ["1"]
        case "losses object":
            header["losses"] = {"1": 1}
        case "losses huge":
            header["losses"] = [10**400]
        case "deep":
            header["losses"] = deep(500)
        case "no modality":
            header["modalities"] = []
        case "modalities":
            header["modalities"] = 3
        case "levels":
            arrays["norm_levels"] = arrays["norm_levels"][::-1].copy()
        case "losses":
            header["losses"] = "none"
        case "version text":
            header["version"] = "1"
        case "format":
            header["format"] = "other"
    return pack(header, arrays)


@pytest.mark.parametrize(
    "kind",
    [
        "missing", "extra", "dtype", "shape", "nan", "huge", "bits", "bits text", "bits huge", "unknown parameter",
        "no parameters", "metric", "effort", "two of a name", "reserved name", "hostile name", "weight", "step",
        "dim", "no modality", "modalities", "levels", "losses", "version text", "format", "bits real", "parameters",
        "weights", "weights text", "weights huge", "dim parameter", "preprocess", "empty", "dim real", "dim bool",
        "weight bool", "weight huge", "steps text", "steps none", "modality", "modality key", "key", "losses digits",
        "losses text", "losses object", "losses huge", "deep",
    ],
)  # fmt: skip
def test_well_signed_lies_are_refused(data, kind):
    with pytest.raises(ModelFormatError):
        CCQ.from_bytes(changed(*unpack(data), kind))


@pytest.mark.parametrize("kind", ["losses nan", "tolerance"])
def test_headers_that_are_no_json_are_refused(data, kind):
    with pytest.raises(ModelCorruptError, match="JSON"):
        CCQ.from_bytes(changed(*unpack(data), kind))


def deep(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


def mutated(value, rng):
    """The JSON value with one part, at random, replaced or left out."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.1:
        numbers = [0, -1, 1, 2, 3.5, 1e308, 5e-324, math.inf, -math.inf, 10**400]
        others = [None, True, "", "x", "1", "pair", "zca", [], {}, [value], {"x": value}, deep(100)]
        return rng.choice(numbers + others)
    key = rng.choice(list(value) if isinstance(value, dict) else range(len(value)))
    if rng.random() < 0.15:
        del value[key]
    else:
        value[key] = mutated(value[key], rng)
    return value


@pytest.mark.parametrize("seed", range(3))
def test_any_change_of_the_header_is_refused_or_harmless(data, seed):
    """Signed anew, so that only the checks of the contents stand between the header and the model."""
    rng = random.Random(seed)
    outcomes = {True: 0, False: 0}
    for _ in range(200):
        header, arrays = unpack(data)
        for _ in range(rng.randint(1, 2)):
            header = mutated(header, rng)
        file = pack(header, arrays, sign=isinstance(header, dict))
        try:
            loaded = CCQ.from_bytes(file)
        except ModelFileError as error:
            assert len(str(error)) < 500  # noqa: PT017
            outcomes[False] += 1
        else:
            assert CCQ.from_bytes(loaded.to_bytes()).to_bytes() == loaded.to_bytes()
            assert np.isfinite(loaded.project({name: np.ones((1, p)) for name, p in loaded.dims.items()})).all()
            outcomes[True] += 1
    assert min(outcomes.values()) > 10  # both happen


@pytest.mark.parametrize("seed", range(3))
def test_any_change_of_the_outer_header_is_refused_or_harmless(data, seed):
    rng = random.Random(seed)
    length = struct.unpack("<Q", data[:8])[0]
    for _ in range(200):
        outer = json.dumps(mutated(json.loads(data[8 : 8 + length]), rng)).replace("Infinity", "1e999").encode()
        with contextlib.suppress(ModelFileError):
            CCQ.from_bytes(struct.pack("<Q", len(outer)) + outer + data[8 + length :])


@pytest.mark.parametrize("levels", [*range(100, 1100, 100), 100_000])
def test_headers_of_any_depth_are_refused(data, levels):
    """Some are too deep to be read, some only too deep for the checksum."""
    text = '{"format": "ccq-model", "version": 1, "checksum": "", "losses": ' + "[" * levels + "]" * levels + "}"
    with pytest.raises(ModelFileError):
        CCQ.from_bytes(safetensors.numpy.save({"x": np.zeros(3, np.float32)}, metadata={"ccq": text}))


@pytest.mark.parametrize(
    "offset", [b"1e999", b"1e3", b'"8"', b"true", b"-1", b"NaN", b"null", b"9" * 5000, b"[" * 100_000]
)
def test_hostile_offsets(offset):
    header = b'{"codebooks": {"dtype": "F32", "shape": [2], "data_offsets": [0, ' + offset + b"]}}"
    with pytest.raises(ModelFormatError):
        CCQ.from_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 8)


def test_wrong_signature(data):
    header, arrays = unpack(data)
    with pytest.raises(ModelCorruptError):
        CCQ.from_bytes(pack({**header, "checksum": "0" * 64}, arrays, sign=False))
    with pytest.raises(ModelCorruptError):
        CCQ.from_bytes(pack({**header, "checksum": None}, arrays, sign=False))
