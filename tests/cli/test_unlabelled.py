"""`ccq evaluate` of data without labels."""

import json

import numpy as np
import pytest

from ccq_cli import unlabelled
from ccq_core import CCQ
from ccq_core.features import check_features
from ccq_core.neighbours import find_neighbours
from ccq_core.partners import find_partners
from tests.cli.bulk import ok, refused
from tests.core.conftest import make_pairs

QUICK = ["--bits", 16, "--iterations", 2, "--effort", 0]


@pytest.fixture
def arrays(tmp_path):
    """Words that name files of 300 pairs."""
    for name, array in make_pairs(300).items():
        np.save(tmp_path / f"{name}.npy", array)
    return [f"{name}={tmp_path / name}.npy" for name in ("image", "text")]


def test_a_model_is_tried_on_all_that_is_given(arrays, files):
    model = CCQ.load(files / "m.ccq")
    data = make_pairs(300)
    for metric in ("cosine", "euclidean"):
        said = json.loads(ok("evaluate", *arrays, "--model", files / "m.ccq", "--metric", metric, "--json"))
        expected = [one.plain() for one in find_partners(model, check_features(data), metric=metric)]
        assert said["evaluation"] == expected
        assert said["neighbours"] == [
            one.plain() for one in find_neighbours(model, check_features(data), metric=metric)
        ]
        assert (said["bits"], said["seeds"]) == (16, 1)
    z = model.project({"image": data["image"]})
    missed = np.square(z - model.decode(model.encode({"image": data["image"]}))).sum() / np.square(z).sum()
    assert said["quantization_error"]["image"] == pytest.approx(missed, rel=1e-4)


def test_a_tenth_is_held_out_of_the_training(arrays):
    said = json.loads(ok("evaluate", *arrays, "--seeds", 2, *QUICK, "--json"))
    assert said["seeds"] == 2
    assert [(one["query"], one["database"], one["objects"]) for one in said["evaluation"]] == [
        ("image", "text", 30), ("text", "image", 30),
    ]  # fmt: skip
    runs = [json.loads(ok("evaluate", *arrays, "--seeds", 1, "--seed", n, *QUICK, "--json")) for n in (0, 1)]
    ranks = [run["evaluation"][0]["codes"]["mean_rank"] for run in runs]
    assert said["evaluation"][0]["codes"]["mean_rank"] == pytest.approx(np.mean(ranks))
    train, test = unlabelled.read(arrays).divided(0.1, 0)
    assert len(train["image"]) == 270
    assert not {row.tobytes() for row in train["image"]} & {row.tobytes() for row in test["image"]}


def test_only_what_has_several_modalities_is_held_out(tmp_path):
    data = make_pairs(100)
    data["image"][:60] = np.nan
    np.savez(tmp_path / "d.npz", **data)
    _, test = unlabelled.read([str(tmp_path / "d.npz")]).divided(1.0, 0)
    assert np.array_equal(test["image"], data["image"][60:])


def test_a_file_that_is_divided_stays_so(tmp_path):
    parts = {"train": make_pairs(200), "test": make_pairs(40, seed=1)}
    arrays = {f"{name}_{part}": array for part, data in parts.items() for name, array in data.items()}
    np.savez(tmp_path / "d.npz", **arrays)
    said = ok("evaluate", tmp_path / "d.npz", "--seeds", 1, *QUICK)
    assert "16 bits, cosine, 1 model; 40 objects, each sought among all of them by another" in said
    assert "recall@10" in said
    assert "neighbours: recall@10 by" in said
    assert "text: codes leave" in said
    np.savez(tmp_path / "half.npz", **arrays, label_train=np.zeros(200))
    assert "array 'label_test' is missing" in refused("evaluate", tmp_path / "half.npz")
    assert "-r is for data with labels" in refused("evaluate", tmp_path / "d.npz", "-r", 10)


def test_one_modality_has_no_partners_but_an_error(arrays):
    said = ok("evaluate", arrays[0], "--seeds", 1, *QUICK)
    assert "1 model; one modality" in said
    assert "image: codes leave" in said
    assert "recall@1 " not in said
    assert "neighbours: recall@10 by" in said


def test_what_cannot_be_measured_is_told(arrays, files, tmp_path):
    assert "no modality 'text', which this model" in refused("evaluate", arrays[0], "--model", files / "m.ccq")
    np.save(tmp_path / "few.npy", np.ones((9, 4)))
    assert "expected 10 objects or more" in refused("evaluate", f"image={tmp_path / 'few.npy'}")
    said = refused("evaluate", arrays[0], f"text={tmp_path / 'few.npy'}")
    assert "the modalities have different numbers of rows: {'image': 300, 'text': 9}" in said
