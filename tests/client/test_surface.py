"""What users, type checkers and packages see of the client."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import ccq_client
from ccq_client import AsyncClient, AsyncItems, Client, Items
from ccq_client.generate import modules
from ccq_core import __version__

ROOT = Path(__file__).parents[2]

PROGRAM = """
import asyncio
from typing import assert_type

import numpy as np

from ccq_client import AsyncClient, Client, Group, Groups, Hit, Hits, Indexed, IndexingError, Item, Items, Job, Progress
from ccq_client.errors import ItemNotFoundError
from ccq_client.resources import Collection, Model
from ccq_client.results import Facets


def show(progress: Progress) -> None:
    print(progress.done / progress.total)


def main() -> None:
    x = np.zeros((3, 4), dtype=np.float16)
    with Client("http://127.0.0.1:8000", api_key="key", collection="shop", retries=3) as client:
        assert_type(client, Client)
        assert_type(client.models.upload("m", "m.ccq"), Model)
        assert_type(client.collections.create("shop", "m", keep="int8"), Collection)
        try:
            assert_type(client.index(np.arange(3), {"image": x}, [{"a": 1}, None, {}], progress=show), Indexed)
        except IndexingError as error:
            print(list(error.missing))
        client.index(["a", "b"], {"text": [[0.1, 0.2], [0.3, 0.4]]})
        only = {"must": [{"ids": ["a"]}]}
        hits = client.search({"text": [0.1, 0.2]}, database=["image", "text"], filter=only, limit=3)
        assert_type(hits, Hits)
        assert_type(hits[0], Hit)
        assert_type(hits.ids, list[str])
        print(hits.distances.mean(), [hit.score for hit in hits])
        assert_type(client.search_batch({"image": x}), list[Hits])
        groups = client.search_groups(by_id="a", group_by="k")
        assert_type(groups, Groups)
        assert_type(groups[0], Group)
        for hit in client.search_iter(like=["a", {"text": x[0]}], unlike=[7]):
            assert_type(hit, Hit)
        for item in client.items():
            assert_type(item, Item)
        assert_type(client.facets("k"), Facets)
        assert_type(client.collection("other"), Items)
        job = client.models.train("m2", {"image": x}, bits=64, weights={"text": 5.0})
        assert_type(client.jobs.wait(job, progress=lambda job: print(job.state)), Job)
        client.models.train("m3", collection="shop", held_out=0.2)
        assert_type(client.collections.reencode("shop", "m2"), Job)
        listed = list(client.items(with_codes=True, with_features=True))
        codes = [item.codes or {} for item in listed]
        client.index_codes([item.id for item in listed], codes, model_checksum="0" * 64)
        client.search(by_id="a", database=None, filter=None, score_threshold=None, with_payload=None, rescore=None)
        client.index_codes([1, 2, 3], {"image": x.astype(np.uint8)}, model_checksum="0" * 64)
        client.index([1, 2, 3], [item.features or {} for item in listed])
        try:
            client.set_payload("a", {"b": [1, None]}, if_match=client.get("a").version)
        except ItemNotFoundError as error:
            print(error.code)


async def other() -> None:
    async with AsyncClient() as client:
        assert_type(client, AsyncClient)
        assert_type(await client.search({"text": np.zeros(3)}), Hits)
        async for item in client.items():
            assert_type(item, Item)


main()
asyncio.run(other())
"""
WRONG = {
    'client.search({"text": [1.0]}, limt=3)': "limt",
    'client.search({"text": [1.0]}, metric="manhattan")': "metric",
    'client.index(["a"], {"text": "word"}, progress=3)': "progress",
    'client.collections.create("a", "b", keep="int4")': "keep",
    "client.serch()": "serch",
    "from ccq_client import Serch": "Serch",
    'client.models.train("a", {"text": [[1.0]]}, bit=8)': "bit",
    'client.jobs.list(state="over")': "state",
    'client.search_groups(by_id="a", group_by="k", rescore=True)': "rescore",
}


def run(*arguments, cwd):
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=200)


def test_a_users_program_is_typed(tmp_path):
    """Right as it is under `mypy --strict`, and each line of WRONG is an error of its own."""
    (tmp_path / "right.py").write_text(PROGRAM)
    lines = ["from ccq_client import Client", "client = Client()", *WRONG]
    (tmp_path / "wrong.py").write_text("\n".join(lines) + "\n")
    result = run("-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "right.py", "wrong.py", cwd=tmp_path)
    found = [line for line in result.stdout.splitlines() if "error:" in line]
    assert [line for line in found if not line.startswith("wrong.py")] == [], result.stdout + result.stderr
    for number, words in enumerate(WRONG.values(), 3):
        assert any(line.startswith(f"wrong.py:{number}:") and words in line for line in found), (words, found)


def test_the_client_without_coroutines_is_the_generated_one():
    """Renew it by `make client`."""
    found = {path: path.read_text(encoding="utf-8") for path in (ROOT / "ccq_client/_sync").glob("*.py")}
    assert found == modules()


def test_both_clients_have_the_same_verbs():
    for one, other in ((Client, AsyncClient), (Items, AsyncItems)):
        names = {name for name in dir(one) if not name.startswith("_")}
        assert names == {name for name in dir(other) if not name.startswith("_")}
        for name in names:
            assert getattr(one, name).__doc__, name
            if not callable(getattr(one, name)):
                continue
            mine, theirs = inspect.signature(getattr(one, name)), inspect.signature(getattr(other, name))
            assert str(mine.replace(return_annotation=None)) == str(theirs.replace(return_annotation=None)), name
    assert {"index", "search", "get", "items", "delete", "collections"} <= set(dir(Client("http://x")))


def test_public_names():
    assert sorted(ccq_client.__all__) == ccq_client.__all__
    for name in ccq_client.__all__:
        assert hasattr(ccq_client, name)
    assert set(ccq_client.__all__) <= set(dir(ccq_client))
    with pytest.raises(AttributeError, match="module 'ccq_client' has no attribute 'Nothing'"):
        ccq_client.Nothing  # noqa: B018
    assert len(ccq_client.__all__) == 46
    assert (ROOT / "ccq_client/py.typed").exists()
    assert '"ccq_client"' in (ROOT / "pyproject.toml").read_text()


def test_versions_are_one():
    assert ccq_client.__version__ == __version__


@pytest.mark.parametrize("code", ["import ccq_client", "import ccq_client; ccq_client.Client().collection('x')"])
def test_importing_it_needs_little(code):
    """Nothing of the service or the core; NumPy when the first vector is sent; the rest when it is asked for."""
    forbidden = ["fastapi", "starlette", "scipy", "pydantic", "numpy", "service", "ccq_core", "ccq_cli"]
    forbidden += ["asyncio", "ccq_client._async", "ccq_client._sync.admin", "ccq_client.jobs", "ccq_client.resources"]
    check = f"{code}; import sys; print([name for name in {forbidden} if name in sys.modules])"
    assert run("-c", check, cwd=ROOT).stdout == "[]\n"


def test_nothing_of_it_imports_the_rest():
    for path in (ROOT / "ccq_client").rglob("*.py"):
        for line in path.read_text(encoding="utf-8").splitlines():
            words = line.split()
            if words[:1] in (["import"], ["from"]):
                assert words[1].split(".")[0] not in ("service", "ccq_core", "ccq_cli"), (path, line)
