"""Load, shortly; for longer by hand: `python -m tests.campaigns.load`. Speed and memory are not judged here."""

from tests.campaigns.load import KINDS, growth, run


def test_load_without_failures(tmp_path):
    load, memory = run(tmp_path / "data", seconds=3, connections=16)
    assert load.failures == {}
    assert set(load.taken) == set(KINDS)
    assert min(memory) > 10


def test_growth():
    assert growth([50] * 10 + [100] * 30) == 2.0
    assert growth([10, 20, 100, 100, 100, 100, 100, 100]) == 5.0
    assert growth([100] * 40) == 1.0
