"""Models that the server trains: on collections, on files, with interruptions of every kind."""

import errno
import io
import os
import re
import signal
import socket
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace

import httpx
import numpy as np
import orjson
import pytest

from ccq_core import CCQ
from ccq_core.batches import NpyBatches
from ccq_core.errors import InvalidInputError
from ccq_core.features import check_features
from ccq_core.neighbours import find_neighbours
from ccq_core.partners import find_partners
from service import errors
from service.jobs.child import ChildEnded, run_module
from service.jobs.trainer import hold_out
from service.jobs.training import failure
from service.schemas.jobs import JobInfo
from tests.service.harness import MODEL_FILE, PAIRS, InProcess, ServerProcess, assert_problem, item
from tests.service.test_jobs import until

QUICK = {"bits": 16, "iterations": 3, "effort": 1}
# Does not end by itself: with a beam, half of the iterations have noise.
LONG = {"bits": 8, "iterations": 1_000_000, "effort": 2}
FILE = {"Content-Type": "application/octet-stream"}


def npz(arrays=PAIRS, *, compressed=False):
    out = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(out, **arrays)
    return out.getvalue()


def post(client, model, body, **options):
    """Ask for a training: on a collection by JSON, or on a file."""
    if isinstance(body, dict):
        return client.request("POST", f"/models/{model}/train", json={**body, **options})
    return client.request("POST", f"/models/{model}/train", content=body, params=options, headers=FILE)


def wait(client, job, seconds=30):
    """The job once it has ended."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        found = client.request("GET", f"/jobs/{job}").json()
        if found["ended"] is not None:
            return found
        time.sleep(0.02)
    raise AssertionError(f"not in time: {found}")


def progress(client, job, reached, seconds=20):
    """The job once its progress is so."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        found = client.request("GET", f"/jobs/{job}").json()
        assert found["ended"] is None, found
        if found["progress"] is not None and reached(found["progress"]):
            return found
        time.sleep(0.01)
    raise AssertionError(f"not in time: {found}")


def training(found):
    return found["phase"] == "train"


def trainers(data):
    """Process ids of the trainings of a data directory."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"service.jobs.trainer" in command and str(data).encode() in b" ".join(command):
            found.append(int(process.name))
    return found


def folders(data):
    """What there is of jobs in a data directory."""
    return list((data / "jobs").glob("*"))


def none_left(data):
    until(lambda: not trainers(data))


@pytest.fixture
def photos(bare):
    """The service with a collection `photos` that keeps features of 300 items: every fifth has an image only."""
    bare.create("plain")
    bare.put("/collections/photos", {"model": "tiny", "keep": "float16"})
    items = [item(i, "image") if i % 5 == 0 else item(i) for i in range(300)]
    bare.ok("POST", "/collections/photos/index", {"items": items})
    return bare


def test_on_a_collection(photos):
    queued = post(photos, "new", {"collection": "photos"}, **QUICK, weights={"text": 2.0}, held_out=0.2, seed=7)
    assert queued.status_code == 202, queued.text
    job = queued.json()
    JobInfo.model_validate(job)
    assert queued.headers["location"] == f"/jobs/{job['id']}"
    assert (job["kind"], job["target"], job["parameters"]["collection"]) == ("train", "new", "photos")
    done = wait(photos, job["id"])
    assert done["state"] == "done", done
    result = done["result"]
    assert (result["model"], result["objects"], result["held_out"], result["iterations"]) == ("new", 252, 48, 3)
    assert result["losses"][-1] == result["loss"] < 0.6
    model = photos.ok("GET", "/models/new")
    assert (model["checksum"], model["bits"]) == (result["checksum"], 16)
    assert model["modalities"] == {"image": {"dim": 12, "weight": 1.0}, "text": {"dim": 8, "weight": 2.0}}
    assert list(model["modalities"]) == ["image", "text"]
    for direction in result["evaluation"]:
        assert direction["objects"] == 48
        assert 0 < direction["codes"]["recall_at_1"] <= direction["codes"]["recall_at_10"]
        assert direction["codes"]["recall_at_100"] == direction["floats"]["recall_at_100"] == 1.0
        assert 1 <= direction["floats"]["mean_rank"] < direction["codes"]["mean_rank"] < 12
    assert [(d["query"], d["database"]) for d in result["evaluation"]] == [("image", "text"), ("text", "image")]
    until(lambda: not folders(photos.settings.data))
    photos.put("/collections/again", {"model": "new"})
    photos.ok("POST", "/collections/again/index", {"items": [item(i) for i in range(20)]})
    query = {"query": item(3)["features"], "limit": 1}
    assert photos.ok("POST", "/collections/again/search", query)["results"][0]["id"] == "item-3"


@pytest.mark.parametrize("compressed", [False, True])
def test_on_a_file_it_is_what_the_library_makes_of_it(bare, compressed):
    data = {name: array.astype(np.float64) for name, array in PAIRS.items()}
    data["text"][::3] = np.nan
    settings = {
        "bits": 8,
        "dim": "full",
        "iterations": 4,
        "metric": "euclidean",
        "preprocess": {"image": "zscore", "text": "zca"},
    }
    given = {**settings, "preprocess": '{"image": "zscore", "text": "zca"}', "held_out": 0}
    done = wait(bare, post(bare, "new", npz(data, compressed=compressed), **given).json()["id"])
    assert done["state"] == "done", done
    assert [done["result"][key] for key in ("held_out", "evaluation", "neighbours")] == [0, [], []]
    expected = CCQ(**settings).fit([{name: array.astype(np.float32) for name, array in data.items()}])
    assert bare.get("/models/new?file=true").content == expected.to_bytes()


def test_the_evaluation_is_of_objects_that_were_not_trained_on(bare, tmp_path):
    done = wait(bare, post(bare, "new", npz(), **QUICK, held_out=0.3, seed=5).json()["id"])
    for name, array in PAIRS.items():
        np.save(tmp_path / f"{name}.npy", array)
    rows, unseen = hold_out(NpyBatches({name: tmp_path / f"{name}.npy" for name in PAIRS}, 150), 0.3, 5)
    assert len(np.unique(rows)) == 120
    assert np.array_equal(unseen.arrays["text"], PAIRS["text"][rows])
    rest = {name: np.delete(array, rows, axis=0) for name, array in PAIRS.items()}
    model = CCQ(**QUICK, seed=5).fit([rest])
    assert bare.get("/models/new?file=true").content == model.to_bytes()
    assert done["result"]["neighbours"] == [found.plain() for found in find_neighbours(model, unseen)]
    assert [one["modality"] for one in done["result"]["neighbours"]] == list(PAIRS)
    for told, found in zip(done["result"]["evaluation"], find_partners(model, unseen), strict=True):
        assert told["codes"]["mean_rank"] == found.codes.mean_rank
        assert told["floats"]["recall_at_10"] == found.floats.recall[10]


def test_few_are_held_out_and_none_of_those_that_have_one_modality(tmp_path):
    image, text = PAIRS["image"].copy(), PAIRS["text"].copy()
    image[:200], text[210:] = np.nan, np.nan
    np.save(tmp_path / "image.npy", image)
    np.save(tmp_path / "text.npy", text)
    files = NpyBatches({name: tmp_path / f"{name}.npy" for name in ("image", "text")}, 64)
    rows, unseen = hold_out(files, 0.5, 0)
    assert len(rows) == unseen.n == 5
    assert set(rows) <= set(range(200, 210))
    rows, unseen = hold_out(files, 0.05, 0)
    assert (len(rows), unseen) == (0, None)
    assert check_features({"image": image, "text": text}).n == 400


# -- while it runs ---------------------------------------------------------------------------------------------------


def test_progress_moves_and_it_can_be_cancelled(bare):
    running = post(bare, "new", npz(), **LONG).json()["id"]
    queued = post(bare, "other", npz(), **QUICK).json()["id"]
    first = progress(bare, running, training)["progress"]
    later = progress(bare, running, lambda now: training(now) and now["done"] > first["done"] + 5)["progress"]
    assert later["total"] == 1_000_000
    assert later["fraction"] == later["done"] / 1_000_000
    assert later["seconds_left"] > 1
    assert 0 < later["loss"] < 1
    assert len(trainers(bare.settings.data)) == 1
    assert bare.delete(f"/jobs/{queued}").json()["state"] == "cancelled"
    assert bare.delete(f"/jobs/{running}").json()["cancelling"] is True
    assert wait(bare, running)["state"] == "cancelled"
    none_left(bare.settings.data)
    assert bare.ok("GET", "/models")["models"] == []
    until(lambda: not folders(bare.settings.data))


@pytest.fixture
def data(tmp_path):
    return tmp_path / "data"


@pytest.fixture(scope="module")
def uninterrupted():
    """Settings of a training of some seconds, and the model that it comes to."""
    settings = {**LONG, "iterations": 1500, "seed": 3}
    return settings, CCQ(**settings).fit([PAIRS])


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_after_a_server_that_ended_the_next_goes_on_to_the_same_bytes(data, end, uninterrupted):
    settings, model = uninterrupted
    server = ServerProcess(data)
    job = post(server.client, "new", npz(), **settings, held_out=0).json()["id"]
    checkpoint = data / "jobs" / job / "checkpoint.npz"
    progress(server.client, job, lambda now: training(now) and now["done"] > 200 and checkpoint.exists())
    began = time.monotonic()
    server.kill() if end == "kill" else server.stop()
    assert time.monotonic() - began < 4
    none_left(data)
    server = ServerProcess(data)
    server.wait_until_ready()
    resumed = progress(server.client, job, training)
    assert resumed["attempts"] == 2
    assert resumed["progress"]["done"] > 50  # from the checkpoint, not from the beginning
    done = wait(server.client, job)
    assert done["state"] == "done", done
    assert server.client.get("/models/new?file=true").content == model.to_bytes()
    assert server.stop() == 0
    assert done["result"]["losses"] == model.losses_


def test_a_training_that_the_system_kills_has_failed_and_the_server_goes_on(bare):
    job = post(bare, "new", npz(), **LONG).json()["id"]
    progress(bare, job, training)
    for process in trainers(bare.settings.data):
        assert Path(f"/proc/{process}/oom_score_adj").read_text() == "800\n"
        os.kill(process, signal.SIGKILL)
    failed = wait(bare, job)
    assert (failed["state"], failed["error"]["code"]) == ("failed", "job_failed")
    assert "most likely as memory ran out" in failed["error"]["detail"]
    assert failed["progress"]["phase"] == "train"
    assert wait(bare, post(bare, "new", npz(), **QUICK).json()["id"])["state"] == "done"


def test_a_training_that_the_core_refuses_says_why(bare):
    image = np.full((50, 4), 9e14, np.float32)
    image[1::2] *= -1
    body = npz({"image": image * np.array([1, -1, 1, 1], np.float32)})
    failed = wait(bare, post(bare, "new", body, **QUICK, preprocess="center", mapping="procrustes").json()["id"])
    assert (failed["state"], failed["error"]["code"]) == ("failed", "invalid_input")
    assert "codewords beyond 1e+15" in failed["error"]["detail"]


def test_the_model_got_in_use_meanwhile(bare):
    job = post(bare, "tiny", npz(), **{**LONG, "iterations": 1500}).json()["id"]
    progress(bare, job, training)
    bare.create("c", "tiny")
    failed = wait(bare, job)
    assert (failed["state"], failed["error"]["code"]) == ("failed", "model_in_use")
    assert bare.get("/models/tiny?file=true").content == MODEL_FILE


# -- what is refused -------------------------------------------------------------------------------------------------


def with_member(name, content):
    out = io.BytesIO(npz())
    with zipfile.ZipFile(out, "a") as archive:
        archive.writestr(name, content)
    return out.getvalue()


def changed(place, value):
    arrays = {name: array.copy() for name, array in PAIRS.items()}
    arrays["text"][place] = value
    return npz(arrays)


def header(shape, descr="<f4", body=b""):
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": descr, "fortran_order": False, "shape": shape})
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("image.npy", out.getvalue() + body)
    return packed.getvalue()


def pickled():
    out = io.BytesIO()
    np.savez(out, image=np.array([[{}, print]], dtype=object))
    return out.getvalue()


IMAGE, TEXT = PAIRS["image"], PAIRS["text"]
BAD = {
    "no zip": (b"nothing of the kind", "invalid_request", "#", "expected an .npz file"),
    "cut short": (npz()[:-100], "invalid_request", "#", "expected an .npz file"),
    "damaged": (npz().replace(IMAGE[7].tobytes(), bytes(48)), "invalid_request", "#", "Bad CRC-32"),
    "one array": (IMAGE.tobytes(), "invalid_request", "#", "expected an .npz file"),
    "no arrays": (b"PK\x05\x06" + bytes(18), "invalid_request", "#", "expected at least one array, got none"),
    "another member": (with_member("a.txt", "x"), "invalid_request", "#", "expected arrays alone, got 'a.txt'"),
    "empty member": (with_member("a.npy", ""), "invalid_request", "#", "expected an .npz file"),
    "pickles": (pickled(), "invalid_request", "#/image", "image: expected numbers of shape (n, P), got 'object'"),
    "texts": (npz({"image": np.array([["a"]])}), "invalid_request", "#/image", "image: expected numbers of shape"),
    "one dimension": (npz({"image": IMAGE[0]}), "invalid_request", "#/image", "got 'float32' of (12,)"),
    "no rows": (npz({"image": IMAGE[:0]}), "invalid_request", "#/image", "at least one row and one column, got (0"),
    "columns first": (npz({"image": np.asfortranarray(IMAGE)}), "invalid_request", "#/image", "Fortran order"),
    "fewer rows": (npz({"image": IMAGE, "text": TEXT[:9]}), "invalid_request", "#", "the same number of rows"),
    "rows that are not there": (header((1000, 4), body=bytes(16)), "invalid_request", "#", "ends before its last row"),
    "rows beyond all": (header((10**12, 4)), "invalid_request", "#", "at most 4294967296 bytes as float32, got 16000"),
    "negative": (header((-4, 4)), "invalid_request", "#/image", "at least one row and one column, got (-4, 4)"),
    "infinite": (changed((5, 3), np.inf), "invalid_features", "#/text/5", "text[5]: number 3: inf is infinite"),
    "partly absent": (changed((5, 3), np.nan), "invalid_features", "#/text/5", "text[5]: number 3: NaN in a row"),
    "nothing": (npz({"image": np.full((3, 2), np.nan)}), "invalid_input", "#", "object 0 has no modality"),
    "reserved": (npz({"pair": IMAGE}), "invalid_input", "#", "'pair' is reserved"),
    "no name": (npz({"../x": IMAGE}), "invalid_input", "#", "modality '../x': expected a letter"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_cannot_be_trained_on(bare, name):
    body, code, pointer, words = BAD[name]
    problem = assert_problem(post(bare, "new", body), 422, code)
    assert words in problem["detail"]
    assert problem["errors"][0]["pointer"] == pointer
    assert bare.ok("GET", "/jobs") == {"jobs": []}
    assert not folders(bare.settings.data)


@pytest.mark.parametrize(
    ("options", "code", "pointer", "words"),
    [
        ({"bits": 33}, "invalid_input", "bits", "bits: expected a multiple of 8, got 33"),
        ({"bits": 4096}, "invalid_input", "bits", "bits: expected a whole number from 8 to 128"),
        ({"bits": "many"}, "invalid_request", "bits", "bits: input should be a valid integer"),
        ({"held_out": 0.9}, "invalid_request", "held_out", "held_out: input should be less than or equal to 0.5"),
        ({"metric": "l2"}, "invalid_request", "metric", "metric: input should be 'cosine' or 'euclidean'"),
        ({"weights": '{"sound": 1}'}, "invalid_input", "weights", "weights: 'sound' is no modality"),
        ({"preprocess": "magic"}, "invalid_input", "preprocess", "preprocess: "),
        ({"preprocess": "[1]"}, "invalid_request", "preprocess", "preprocess: expected steps joined by commas"),
        ({"dim": 9}, "invalid_input", "dim", "dim: expected 1 to 8"),
        ({"dim": "wide"}, "invalid_input", "dim", "dim: expected a whole number from 1 up, or 'full', got 'wide'"),
        ({"dim": "[8]"}, "invalid_input", "dim", "dim: expected a whole number from 1 up, got [8]"),
        ({"colour": "red"}, "invalid_request", "colour", "colour: unknown key"),
        ({"collection": "photos"}, "invalid_request", "collection", "collection: unknown key"),
    ],
)
def test_options_that_cannot_be(photos, options, code, pointer, words):
    problem = assert_problem(post(photos, "new", npz(), **options), 422, code)
    assert problem["detail"].startswith(words)
    assert problem["errors"][0]["pointer"] == f"?{pointer}"
    if pointer != "collection":
        given = {name: orjson.loads(v) if str(v)[0] in "{[" else v for name, v in options.items()}
        problem = assert_problem(post(photos, "new", {"collection": "photos"}, **given), 422, code)
        assert problem["errors"][0]["pointer"] == f"#/{pointer}"


def test_collections_and_names_that_cannot_be(photos):
    assert_problem(post(photos, "new", {"collection": "nowhere"}), 404, "collection_not_found")
    problem = assert_problem(post(photos, "new", {"collection": "plain"}), 422, "invalid_request")
    assert problem["errors"][0]["pointer"] == "#/collection"
    assert "it would have to be made with `keep`" in problem["detail"]
    for body in ({"collection": "photos"}, npz()):
        problem = assert_problem(post(photos, "tiny", body), 409, "model_in_use")
        assert "used by collection 'photos', 'plain'; choose another name" in problem["detail"]
    assert_problem(post(photos, "new", {}), 422, "invalid_request")
    problem = assert_problem(photos.post("/models/new/train?bits=8", {"collection": "photos"}), 422, "invalid_request")
    assert problem["errors"][0]["pointer"] == "?bits"
    for kind in ("text/plain", ""):
        response = photos.request("POST", "/models/new/train", content=npz(), headers={"Content-Type": kind})
        assert_problem(response, 415, "unsupported_media_type")
    assert_problem(post(photos, "new", b""), 400, "empty_body")
    photos.put("/collections/empty", {"model": "tiny", "keep": "int8"})
    failed = wait(photos, post(photos, "new", {"collection": "empty"}).json()["id"])
    assert failed["error"] == {"code": "invalid_request", "detail": "collection 'empty' has no items to train on"}


def test_what_is_too_much(tmp_path):
    service = InProcess(tmp_path / "data", max_training_bytes=30_000, max_memory_bytes=10 << 20, max_jobs=1)
    assert_problem(post(service, "new", npz()), 413, "body_too_large")
    small = npz({"image": IMAGE[:20]})
    problem = assert_problem(post(service, "new", small), 507, "memory")
    assert "bytes of memory, of 10485760" in problem["detail"]
    unpacked = npz({"image": np.zeros((5000, 4), np.float32)}, compressed=True)
    assert (
        "at most 30000 bytes as float32"
        in assert_problem(post(service, "n", unpacked), 422, "invalid_request")["detail"]
    )
    assert not folders(tmp_path / "data")
    service.close()


def test_a_full_disk_and_a_full_queue(bare, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=10))
    assert_problem(post(bare, "new", npz()), 507, "storage_full")
    monkeypatch.undo()
    jobs = [post(bare, f"m{i}", npz(), **LONG) for i in range(16)]
    assert all(job.status_code == 202 for job in jobs)
    assert_problem(post(bare, "new", npz(), **LONG), 409, "jobs_full")
    for job in reversed(jobs):
        bare.delete(f"/jobs/{job.json()['id']}")


def test_a_client_that_goes_away_leaves_nothing(data):
    server = ServerProcess(data)
    url = httpx.URL(server.url)
    head = b"POST /models/new/train HTTP/1.1\r\nHost: a\r\nContent-Length: 9999\r\nContent-Type: "
    head += FILE["Content-Type"].encode() + b"\r\n\r\n"
    with socket.create_connection((url.host, url.port)) as client:
        client.sendall(head + npz()[:1000])
        until(lambda: folders(data))
    until(lambda: not folders(data))
    assert server.client.get("/jobs").json() == {"jobs": []}
    server.stop()


@pytest.mark.parametrize(
    ("status", "line", "kind", "words"),
    [
        (-9, {}, errors.JobFailedError, "most likely as memory ran out"),
        (
            1,
            {"error": "MemoryError", "detail": "", "errno": None},
            errors.JobFailedError,
            "most likely as memory ran out",
        ),
        (-15, {}, errors.JobFailedError, "ended by signal 15"),
        (1, {"error": "OSError", "detail": "x", "errno": errno.ENOSPC}, errors.StorageFullError, "disk"),
        (1, {"error": "OSError", "detail": "x", "errno": errno.EIO}, errors.JobFailedError, "the server's log has"),
        (1, {"error": "FeatureError", "detail": "no", "errno": None}, InvalidInputError, "^no$"),
        (1, {}, errors.JobFailedError, "the server's log has"),
    ],
)
def test_what_becomes_of_a_training_that_did_not_end_as_it_should(status, line, kind, words):
    error = failure(ChildEnded(status, "Traceback"), line)
    assert type(error) is kind
    assert re.search(words, str(error))


def test_a_process_that_fails_says_why(tmp_path):
    said = []
    with pytest.raises(ChildEnded) as ended:
        run_module("service.jobs.trainer", tmp_path, {}, said.append, lambda: None)  # there is no job in it
    assert ended.value.signal is None
    assert said[0]["error"] == "FileNotFoundError"
    with pytest.raises(ChildEnded, match="No module named"):
        run_module("service.jobs.nothing", tmp_path, {}, said.append, lambda: None)
