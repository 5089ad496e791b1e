"""A training that was ended goes on from its checkpoint, to the same bytes as one that was not."""

import numpy as np
import pytest

from ccq_core import CCQ, checkpoint
from ccq_core.files import read_npz
from tests.core.conftest import make_pairs


class Ended(Exception):
    pass


@pytest.fixture(autouse=True)
def after_every_iteration(monkeypatch):
    monkeypatch.setattr(checkpoint, "PAUSE", 0.0)


@pytest.fixture(scope="module")
def batches():
    """Three batches; each object lacks one of its modalities now and then."""
    data = make_pairs(700, seed=5)
    for i, array in enumerate(data.values()):
        array[i::9] = np.nan
    return [{name: array[lo : lo + 250] for name, array in data.items()} for lo in range(0, 700, 250)]


def end_after(iteration):
    def callback(progress):
        if progress.iteration == iteration:
            raise Ended

    return callback


@pytest.mark.parametrize("ends", [(5,), (2, 3, 8), (12,)])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"effort": 1},
        {"effort": 1, "codebook_solver": "cg", "tolerance": 0.0},
        {"norm": "none"},
        {"effort": 0, "start": "identity", "preprocess": "zscore"},
    ],
)
def test_the_model_is_the_same_to_the_last_byte(batches, tmp_path, settings, ends):
    settings = {"bits": 16, "iterations": 12, "seed": 4, **settings}
    expected = CCQ(**settings).fit(batches)
    file = tmp_path / "state"
    for iteration in ends:
        if iteration <= len(expected.losses_):
            with pytest.raises(Ended):
                CCQ(**settings).fit(batches, callback=end_after(iteration), checkpoint=file)
    seen = []
    model = CCQ(**settings).fit(batches, callback=lambda progress: seen.append(progress.iteration), checkpoint=file)
    assert model.losses_ == expected.losses_
    assert model.to_bytes() == expected.to_bytes()
    # What an iteration came to is written down after its callback.
    last = max((i for i in ends if i <= len(expected.losses_)), default=1)
    assert seen == list(range(last, len(expected.losses_) + 1))


def test_arrays_in_memory_too_and_time_counts_on(batches, tmp_path):
    data = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
    file = tmp_path / "state"
    times = []

    def callback(progress):
        times.append(progress.seconds)
        if len(times) == 4:
            raise Ended

    with pytest.raises(Ended):
        CCQ(bits=16, seed=1).fit(data, callback=callback, checkpoint=file)
    model = CCQ(bits=16, seed=1).fit(data, callback=lambda progress: times.append(progress.seconds), checkpoint=file)
    assert model.to_bytes() == CCQ(bits=16, seed=1).fit(data).to_bytes()
    assert times[4] > times[2]


def test_a_training_that_has_ended_is_only_finished(batches, tmp_path):
    file = tmp_path / "state"
    settings = {"bits": 8, "iterations": 3, "tolerance": 0.0}
    first = CCQ(**settings).fit(batches, checkpoint=file)
    seen = []
    assert CCQ(**settings).fit(batches, callback=seen.append, checkpoint=file).to_bytes() == first.to_bytes()
    assert seen == []


@pytest.mark.parametrize("change", ["bits", "seed", "data", "damage", "nothing", "foreign"])
def test_a_file_of_another_training_is_passed_over(batches, tmp_path, change):
    file = tmp_path / "state"
    with pytest.raises(Ended):
        CCQ(bits=16, iterations=8, seed=1).fit(batches, callback=end_after(4), checkpoint=file)
    settings = {"bits": 8 if change == "bits" else 16, "iterations": 8, "seed": 2 if change == "seed" else 1}
    if change == "data":
        batches = [batches[0], batches[2], batches[1]]
        batches[0] = {name: array * np.float32(1.01) for name, array in batches[0].items()}
    if change == "damage":
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    if change == "nothing":
        file.write_bytes(b"")
    if change == "foreign":
        with file.open("wb") as out:
            np.savez(out, codes=np.zeros(3))
    seen = []
    model = CCQ(**settings).fit(batches, callback=lambda progress: seen.append(progress.iteration), checkpoint=file)
    assert seen[0] == 1
    assert model.to_bytes() == CCQ(**settings).fit(batches).to_bytes()


def test_not_more_often_than_is_worth_it(batches, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "PAUSE", 1e9)
    file = tmp_path / "state"
    CCQ(bits=16, iterations=4).fit(batches, checkpoint=file)
    assert len(read_npz(file)["losses"]) == 1
