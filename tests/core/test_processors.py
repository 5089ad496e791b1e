"""How many processors a process has, by its affinity and its control groups."""

import os
import subprocess
import sys

import pytest

from ccq_core.processors import _quotas, processors


@pytest.fixture
def groups(tmp_path):
    """A process in the group a/b."""
    (tmp_path / "own").write_text("3:cpuset:/\n0::/a/b\n")
    (tmp_path / "fs/a/b").mkdir(parents=True)
    return tmp_path / "fs"


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({}, []),
        ({"a/b": "max 100000"}, []),
        ({"a/b": "200000 100000"}, [2]),
        ({"a/b": "150000 100000"}, [2]),
        ({"a/b": "1000 100000"}, [1]),
        ({"a/b": "max 100000", "a": "300000 50000", ".": "100000 100000"}, [6, 1]),
        ({"a/b": "", "a": "4"}, []),
        ({"a/b": "100000 0", "a": "\xff"}, []),
    ],
)
def test_quotas_of_a_group_and_of_those_around_it(groups, bounds, expected):
    for group, text in bounds.items():
        (groups / group / "cpu.max").write_text(text, encoding="latin-1")
    assert _quotas(groups.parent / "own", groups) == expected


@pytest.mark.parametrize("own", [None, "", "9:cpu:/\n", "0::/gone\n"])
def test_no_groups_of_this_kind(groups, own):
    path = groups.parent / "own"
    path.unlink()
    if own is not None:
        path.write_text(own)
    assert _quotas(path, groups) == []


def test_the_group_of_a_container_is_the_outermost(tmp_path):
    (tmp_path / "own").write_text("0::/\n")
    (tmp_path / "cpu.max").write_text("400000 100000")
    assert _quotas(tmp_path / "own", tmp_path) == [4]


def test_threads_are_as_many_as_processors():
    assert processors() <= (os.cpu_count() or 1)
    script = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); from ccq_core import simd; "
        "print(simd.get_threads())"
    )
    env = {name: value for name, value in os.environ.items() if name != "CCQ_THREADS"}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
    done = subprocess.run(
        [sys.executable, "-c", "from ccq_core import simd; print(simd.get_threads())"],
        env=env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == f"{processors()}\n"
