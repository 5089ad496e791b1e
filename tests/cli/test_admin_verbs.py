"""`ccq train` and `ccq reencode` in a service, `ccq alias`, `ccq models` and `ccq collections`."""

import json

import httpx
import numpy as np
import pytest
from click.testing import CliRunner

from ccq_cli import jobview
from ccq_cli.main import main
from ccq_core import CCQ
from tests.cli.bulk import create_collection, ok, refused

QUICK = ["--bits", 8, "--iterations", 2, "--effort", 0]


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(jobview, "POLL_SECONDS", 0.02)


@pytest.fixture
def ccq(url):
    return lambda *arguments: ok(*arguments, "--url", url)


@pytest.fixture
def wrong(url):
    return lambda *arguments: refused(*arguments, "--url", url)


def test_train_and_reencode_in_a_service(ccq, wrong, url, files, tmp_path):
    arrays = [f"image={files / 'image.npy'}", f"text={files / 'text.npy'}"]
    said = ccq("train", *arrays, "--name", "small", *QUICK, "--preset", "paper")
    assert said.startswith("small: done\n  model: small\n")
    assert "  held out: 30\n" in said
    assert "image -> text" in said
    ccq("models", "download", "small", "-o", tmp_path / "small.ccq")
    model = CCQ.load(tmp_path / "small.ccq")
    assert (model.bits, model.metric, model.weights["text"]) == (8, "euclidean", 5.0)

    create_collection(url, "shelf", keep="float16")
    ccq("index", *arrays, "--collection", "shelf")
    job = json.loads(ccq("train", "--collection", "shelf", "--name", "again", *QUICK, "--json"))
    assert (job["state"], job["parameters"]["collection"], job["result"]["model"]) == ("done", "shelf", "again")
    said = ccq("train", "--collection", "shelf", "--name", "later", *QUICK, "--detach")
    job_id = said.splitlines()[0]
    assert f"`ccq jobs wait {job_id}` waits for it" in said
    assert "(later): done" in ccq("jobs", "wait", job_id)
    assert "after: again" in ccq("reencode", "shelf", "again")
    assert json.loads(ccq("collections", "show", "shelf", "--json"))["model"] == "again"
    assert "again" in wrong("reencode", "shelf", "again")
    assert "used by collection 'shelf'" in wrong("train", *arrays, "--name", "again", *QUICK)  # a collection uses it
    failed = CliRunner().invoke(main, ["jobs", "wait", "none", "--url", url])
    assert (failed.exit_code, "`ccq jobs list`" in failed.output) == (1, True)
    ccq("collections", "delete", "shelf", "--yes")
    for name in ("small", "again", "later"):
        ccq("models", "delete", name, "--yes")


def test_what_does_not_go_together_in_training(files, tmp_path):
    image = f"image={files / 'image.npy'}"
    for arguments, words in (
        ([image], "expected -o FILE to train here, or --name MODEL"),
        ([image, "-o", tmp_path / "m", "--name", "m"], "or --name MODEL to train in a service, not both"),
        ([image, "-o", tmp_path / "m", "--detach"], "--detach is for training in a service"),
        ([image, "-o", tmp_path / "m", "--url", "http://x"], "--url is for training in a service"),
        (["-o", tmp_path / "m"], "expected DATA"),
        (["--name", "m"], "expected DATA to train on, or --collection"),
        ([image, "--name", "m", "--collection", "c"], "expected DATA to train on, or --collection, not both"),
        ([image, "--name", "m", "--batch-rows", 5], "--batch-rows is for training here"),
    ):
        assert words in refused("train", *arguments), arguments


def test_names_that_can_be_none_are_told_by_their_rule():
    for verb in (
        ["models", "upload", "a b", __file__],
        ["collections", "create", "a/b", "--model", "m"],
        ["alias", "set", "", "default"],
        ["train", "image=a.npy", "--name", "ä"],
    ):
        assert "expected a letter or digit, then up to 63 letters, digits, '.', '_' or '-'" in refused(*verb), verb


def test_aliases(ccq, wrong):
    assert "current leads to collection default" in ccq("alias", "set", "current", "default")
    assert json.loads(ccq("alias", "list", "--json")) == {"aliases": [{"alias": "current", "collection": "default"}]}
    assert "current" in ccq("alias", "list")
    assert "`ccq collections list`" in wrong("alias", "set", "current", "nowhere")
    assert "deleted alias current" in ccq("alias", "delete", "current")
    assert "`ccq alias set ALIAS COLLECTION`" in wrong("alias", "delete", "current")


def test_models(ccq, wrong, url, files):
    shown = json.loads(ccq("models", "upload", "second", files / "m.ccq", "--json"))
    assert shown == httpx.get(f"{url}/models/second").json()
    listed = json.loads(ccq("models", "list", "--json"))
    assert listed == httpx.get(f"{url}/models").json()
    assert "image 12, text 8" in ccq("models", "list")
    shown = ccq("models", "show", "second")
    assert "checksum" in shown
    losses = CCQ.load(files / "m.ccq").losses_
    assert f"{losses[0]:.4g}, ... {losses[-1]:.4g} ({len(losses)} numbers)" in shown
    assert "used by collection" in wrong("models", "delete", "m", "--yes")
    assert "`ccq models upload NAME FILE`" in wrong("models", "show", "nothing")
    asked = CliRunner().invoke(main, ["models", "delete", "second", "--url", url], input="n\n")
    assert (asked.exit_code, "Delete model second of" in asked.output) == (1, True)
    assert "second" in ccq("models", "list")
    assert "deleted model second" in ccq("models", "delete", "second", "--yes")


def test_collections(ccq, wrong, url):
    made = ccq("collections", "create", "shop", "--model", "m", "--keep", "int8", "--index", "a.b", "--index", "c")
    assert "a.b, c" in made
    said = wrong("collections", "create", "other", "--model", "m", "--encoders", "text=emoji")
    assert "expected an encoder of 8 dimensions" in said
    assert json.loads(ccq("collections", "show", "shop", "--json")) == httpx.get(f"{url}/collections/shop").json()
    assert json.loads(ccq("collections", "list", "--json")) == httpx.get(f"{url}/collections").json()
    assert "shop" in ccq("collections", "list")
    assert "`ccq models list`" in wrong("collections", "create", "other", "--model", "none")
    asked = CliRunner().invoke(main, ["collections", "delete", "shop", "--url", url], input="\n")
    assert (asked.exit_code, "with 0 items?" in asked.output) == (1, True)
    assert "deleted collection shop" in ccq("collections", "delete", "shop", "--yes")
    assert "`ccq collections create NAME --model MODEL`" in wrong("collections", "show", "shop")


@pytest.mark.parametrize("form", ["npy", "parquet"])
def test_codes_come_with_their_indexes(ccq, url, files, tmp_path, form):
    """Into a service and into a directory, beside those that are there; features do not bring them."""
    arrays = [f"image={files / 'image.npy'}", f"text={files / 'text.npy'}"]
    ccq("collections", "create", "source", "--model", "m", "--keep", "float16", "--index", "even", "--index", "title")
    ccq("index", *arrays, "--payloads", files / "items.jsonl", "--collection", "source")
    out = tmp_path / ("out.parquet" if form == "parquet" else "out")
    ok("export", url, out, "--collection", "source", "--format", form)
    ccq("collections", "create", "target", "--model", "m", "--keep", "float16", "--index", "even", "--index", "mine")
    indexes = lambda: httpx.get(f"{url}/collections/target").json()["indexes"]  # noqa: E731
    ccq("index", out, "--collection", "target")
    assert set(indexes()) == {"even", "mine"}
    ccq("index", out, "--codes", "--collection", "target")
    assert set(indexes()) == {"even", "mine", "title"}
    (tmp_path / "m.ccq").write_bytes((files / "m.ccq").read_bytes())
    ok("index", out, "--codes", "--data", tmp_path / "d", "--model", tmp_path / "m.ccq", "--keep", "float16")
    ok("export", tmp_path / "d", tmp_path / "back")
    assert set(json.loads((tmp_path / "back/export.json").read_text())["indexes"]) == {"even", "title"}
    for name in ("source", "target"):
        ccq("collections", "delete", name, "--yes")


def test_a_batch_that_one_request_cannot_hold_is_sent_in_several(ccq, url, tmp_path):
    """What was sent as it was before, and refused: `body_too_large`."""
    rng = np.random.default_rng(0)
    np.save(tmp_path / "image.npy", rng.standard_normal((12_000, 12)))
    ccq("collections", "create", "large", "--model", "m")
    said = ccq("index", f"image={tmp_path / 'image.npy'}", "--collection", "large", "--batch", 12_000)
    assert "indexed 12,000 items" in said
    ccq("collections", "delete", "large", "--yes")
