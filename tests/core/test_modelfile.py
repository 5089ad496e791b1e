"""The model file against strangers: truncated, flipped, newer, foreign, and crafted files."""

import json
import os
import pickle
import struct
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
from ccq_core.modelfile import _checksum

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
        case "bits huge":
            header["parameters"]["bits"] = 8 * 10**6
        case "unknown parameter":
            header["parameters"]["shell"] = "rm"
        case "no parameters":
            del header["parameters"]
        case "metric":
            header["parameters"]["metric"] = "hamming"
        case "sweeps":
            header["parameters"]["sweeps"] = 10**9
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
        "no parameters", "metric", "sweeps", "two of a name", "reserved name", "hostile name", "weight", "step",
        "dim", "no modality", "modalities", "levels", "losses", "version text", "format",
    ],
)  # fmt: skip
def test_well_signed_lies_are_refused(data, kind):
    with pytest.raises(ModelFormatError):
        CCQ.from_bytes(changed(*unpack(data), kind))


def test_wrong_signature(data):
    header, arrays = unpack(data)
    with pytest.raises(ModelCorruptError):
        CCQ.from_bytes(pack({**header, "checksum": "0" * 64}, arrays, sign=False))
    with pytest.raises(ModelCorruptError):
        CCQ.from_bytes(pack({**header, "checksum": None}, arrays, sign=False))
