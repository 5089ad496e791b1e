"""Search within a modality beside exact search by the features, against the definition written out."""

import math

import numpy as np
import pytest

from ccq_core import CCQ, CodeIndex
from ccq_core.features import check_features
from ccq_core.neighbours import find_neighbours
from tests.core.conftest import make_pairs

DIMS = (12, 8, 6)


@pytest.fixture(scope="module")
def unseen():
    data = make_pairs(330, seed=77, dims=DIMS)
    for i, array in enumerate(data.values()):
        array[i::7] = np.nan
    return check_features(data)


def first(distances, k):
    return np.argsort(distances, kind="stable")[:k]


@pytest.mark.parametrize("settings", [{}, {"metric": "euclidean"}, {"norm": "none"}, {"bits": 8}])
def test_each_share_is_what_searches_give(unseen, settings):
    model = CCQ(**{"bits": 16, "iterations": 4, "seed": 2, **settings}).fit(make_pairs(400, dims=DIMS))
    told = []
    found = list(find_neighbours(model, unseen, lambda done, total: told.append((done, total))))
    assert [one.modality for one in found] == ["image", "text", "audio"]
    assert told[-1][0] == told[-1][1] == sum(one.objects for one in found)
    for one in found:
        x = unseen.arrays[one.modality][unseen.present[one.modality]]
        assert one.objects == len(x)
        z = model.project({one.modality: x}).astype(np.float64)
        unit = x / np.linalg.norm(x, axis=1, keepdims=True)
        index = CodeIndex(model)
        index.add(range(len(x)), model.encode({one.modality: x}))
        shares = {name: [] for name in ("codes", 4, 30, "floats")}
        for row in range(len(x)):
            others = np.delete(np.arange(len(x)), row)
            wanted = set(others[first(-(unit[others] @ unit[row]), 10)])
            if model.metric == "cosine":
                apart = -(z[others] @ z[row]) / np.linalg.norm(z[others], axis=1)
            else:
                apart = np.square(z[others] - z[row]).sum(axis=1)
            ranked = index.search({one.modality: x[[row]]}, k=len(x)).ids[0]
            ranked = ranked[ranked != row]
            by_floats = dict(zip(others.tolist(), apart.tolist(), strict=True))
            shares["codes"].append(len(wanted & set(ranked[:10])) / 10)
            shares["floats"].append(len(wanted & set(others[first(apart, 10)])) / 10)
            for times in (4, 30):
                anew = sorted(ranked[: math.ceil(11 * times)].tolist(), key=by_floats.__getitem__)
                shares[times].append(len(wanted & set(anew[:10])) / 10)
        assert one.codes == pytest.approx(np.mean(shares["codes"]))
        assert one.floats == pytest.approx(np.mean(shares["floats"]), abs=2e-3)  # float32 or float64
        for times in (4, 30):
            assert one.rescored[times] == pytest.approx(np.mean(shares[times]), abs=2e-3)
        assert 10 / len(x) < one.codes < one.rescored[4] <= one.rescored[30] + 0.01
        assert one.plain() == {
            "modality": one.modality,
            "objects": len(x),
            "codes": one.codes,
            "rescored_4": one.rescored[4],
            "rescored_30": one.rescored[30],
            "floats": one.floats,
        }


def test_another_metric_than_the_models(unseen):
    model = CCQ(bits=16, iterations=4, seed=2).fit(make_pairs(400, dims=DIMS))
    other, own = (next(find_neighbours(model, unseen, metric=metric)) for metric in ("euclidean", None))
    same = next(find_neighbours(model, unseen, metric="cosine"))
    assert own == same
    assert (other.codes, other.floats) != (own.codes, own.floats)


def test_the_preset_for_angles_keeps_those_of_the_smallest_modality(unseen):
    model = CCQ.preset("angles", bits=8, iterations=4).fit(make_pairs(400, dims=DIMS))
    *_, audio = find_neighbours(model, unseen)
    plain = CCQ(bits=8, iterations=4).fit(make_pairs(400, dims=DIMS))
    *_, by_default = find_neighbours(plain, unseen)
    assert audio.floats == pytest.approx(1, abs=1e-3)
    assert audio.rescored[30] == pytest.approx(1, abs=1e-3)
    assert by_default.floats < 0.95


def test_few_objects_have_no_ten_neighbours():
    data = make_pairs(12, seed=5)
    data["text"][10:] = np.nan
    model = CCQ(bits=8, iterations=2).fit(make_pairs(300))
    (image,) = find_neighbours(model, check_features(data))
    assert (image.modality, image.objects) == ("image", 12)
    assert image.rescored[4] == image.rescored[30] == image.floats  # all are looked at
    assert list(find_neighbours(model, check_features({name: x[:10] for name, x in data.items()}))) == []


def test_many_objects_ask_a_thousand_times():
    data = check_features({"image": make_pairs(1500, seed=3)["image"]})
    model = CCQ(bits=8, iterations=2).fit({"image": make_pairs(300)["image"]})
    told = []
    (image,) = find_neighbours(model, data, lambda done, total: told.append((done, total)))
    assert image.objects == 1500
    assert told[-1] == (1000, 1000)
    assert len(told) == 4
