"""Jobs, trainings, encoding anew and aliases, with both clients, against the service itself."""

import httpx
import numpy as np
import pytest

from ccq_client import InputError, JobError, Retries, WaitTimeoutError, errors
from ccq_client.arrays import Features
from ccq_client.options import TrainingOptions
from ccq_core import CCQ
from service.jobs.upload import unpack
from service.schemas.training import TrainingOptions as TheirOptions
from tests.client.kinds import StoppedClock, Watched, app_transport, connected
from tests.service.harness import MODEL, MODEL_FILE, PAIRS

QUICK = {"bits": 16, "iterations": 3, "effort": 1}
LONG = {"bits": 8, "iterations": 1_000_000, "effort": 2}


@pytest.fixture
def photos(client):
    """A client with a collection `photos` that keeps the features of 300 pairs."""
    client.collections.create("photos", "tiny", keep="float16")
    client.collection("photos").index(range(300), {name: array[:300] for name, array in PAIRS.items()})
    return client


def test_train_on_a_collection_and_wait(photos):
    job = photos.models.train("new", collection="photos", weights={"text": 2.0}, held_out=0.2, **QUICK)
    assert (job.kind, job.target, job.parameters["collection"], job.cancelling) == ("train", "new", "photos", False)
    seen = []
    done = photos.jobs.wait(job, progress=seen.append, seconds=60, poll=0.05)
    assert (done.id, done.state, done.finished, done.error) == (job.id, "done", True, None)
    assert done.created <= done.started <= done.ended
    assert (done.result["model"], done.result["held_out"]) == ("new", 60)
    assert seen[-1] == done == photos.jobs.get(job.id)
    assert {one.state for one in seen} <= {"queued", "running", "done"}
    assert photos.models.get("new").bits == 16
    assert photos.jobs.list() == photos.jobs.list(kind="train", state="done") == [done]
    assert photos.jobs.list(state="failed") == photos.jobs.list(kind="reencode") == []


def test_train_on_arrays_is_what_the_library_does(client, tmp_path):
    arrays = {"image": np.asfortranarray(PAIRS["image"]).astype(np.float16), "text": PAIRS["text"].copy()}
    arrays["text"][::3] = np.nan
    np.savez(tmp_path / "pairs.npz", image=PAIRS["image"].astype(np.float16), text=arrays["text"])
    for name, given in (("arrays", arrays), ("path", tmp_path / "pairs.npz"), ("word", str(tmp_path / "pairs.npz"))):
        job = client.models.train(name, given, held_out=0, preprocess="zscore", **QUICK)
        client.jobs.wait(job, seconds=60, poll=0.05)
    files = {client.models.file(name) for name in ("arrays", "path", "word")}
    assert len(files) == 1
    ours = CCQ(preprocess="zscore", **QUICK).fit(arrays)
    codes = CCQ.from_bytes(files.pop()).encode(PAIRS)
    assert np.mean(codes == ours.encode(PAIRS)) > 0.99


def test_what_cannot_be_trained_on_is_told_before_anything_is_sent(client, tmp_path):
    for wrong, words in (
        ({}, "expected exactly one"),
        ({"features": PAIRS, "collection": "photos"}, "expected exactly one"),
        ({"features": {"image": PAIRS["image"], "text": PAIRS["text"][:3]}}, "as many rows"),
        ({"features": {"image": np.full((3, 4), np.inf)}}, "row 0, number 0"),
        ({"features": {}}, "arrays by modality"),
        ({"features": {"text": ["a cat", "a dog"]}}, "a model is trained on these alone"),
    ):
        with pytest.raises(InputError, match=words):
            client.models.train("new", **wrong)
    with pytest.raises(TypeError, match="'bit'"):
        client.models.train("new", PAIRS, bit=16)
    with pytest.raises(FileNotFoundError):
        client.models.train("new", tmp_path / "none.npz")
    (tmp_path / "other.parquet").write_bytes(b"PAR1")
    with pytest.raises(
        InputError, match=r"other.parquet: expected an .npz file, or arrays by modality: this file is none"
    ):
        client.models.train("new", tmp_path / "other.parquet")
    with pytest.raises(InputError, match=r"expected arrays by modality, as in \{'text': array\}, .* got ndarray"):
        client.models.train("new", PAIRS["text"])
    with pytest.raises(errors.RequestError, match="bits"):
        client.models.train("new", PAIRS, bits=7)
    with pytest.raises(errors.CollectionNotFoundError):
        client.models.train("new", collection="none")
    assert client.jobs.list() == []


def test_a_file_of_many_blocks_is_what_the_service_reads(tmp_path):
    x = np.random.default_rng(0).standard_normal((9000, 5))
    given = {"a": x[:, :3].copy(), "b": x[:, 3:].T.copy().T}
    given["a"][5000] = np.nan
    with (tmp_path / "x.npz").open("wb") as file:
        Features(given).write_npz(file)
    written = np.load(tmp_path / "x.npz")
    for name, array in given.items():
        np.testing.assert_array_equal(written[name], array.astype(np.float32))
    assert unpack(tmp_path / "x.npz", tmp_path, CCQ(bits=8), 1 << 30) == {"a": 3, "b": 2}


def test_options_of_trainings_are_those_of_the_service():
    assert set(TrainingOptions.__annotations__) == set(TheirOptions.model_fields)


def test_cancel_and_failures(photos):
    running, queued = photos.models.train("a", PAIRS, **LONG), photos.models.train("b", PAIRS, **QUICK)
    assert photos.jobs.cancel(queued).state == "cancelled"
    with pytest.raises(WaitTimeoutError, match=f"job {running.id} is ") as late:
        photos.jobs.wait(running, seconds=0.2, poll=0.05)
    assert (late.value.job.id, isinstance(late.value, TimeoutError)) == (running.id, True)
    assert photos.jobs.cancel(running.id).finished in (True, False)
    with pytest.raises(JobError, match=r"job train-\S+ \(a\) was cancelled") as caught:
        photos.jobs.wait(running, seconds=30, poll=0.05)
    assert caught.value.job.state == "cancelled"
    assert photos.jobs.cancel(running) == photos.jobs.get(running)  # it has ended: it stays
    with pytest.raises(errors.JobNotFoundError):
        photos.jobs.get("train-20260101T000000-0000")
    photos.collections.create("empty", "tiny", keep="int8")
    with pytest.raises(JobError, match="invalid_request: collection 'empty' has no items to train on"):
        photos.jobs.wait(photos.models.train("c", collection="empty"), seconds=30, poll=0.05)


def test_a_bar(photos, capsys):
    photos.jobs.wait(photos.models.train("new", PAIRS, **QUICK), progress=True, seconds=60, poll=0.05)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"[{'#' * 30}] job train-" in said.splitlines()[-1].split("\r")[-1]


def test_reencode(photos):
    photos.models.upload("other", CCQ(bits=24, iterations=2, seed=2).fit(PAIRS))
    job = photos.collections.reencode("photos", "other")
    assert (job.kind, job.target) == ("reencode", "photos")
    result = photos.jobs.wait(job, seconds=60, poll=0.05).result
    assert (result["items"], result["before"], result["after"]) == (300, "tiny", "other")
    assert photos.collections.get("photos").model == "other"
    with pytest.raises(errors.RequestError, match="other"):
        photos.collections.reencode("photos", "other")


@pytest.mark.parametrize("what", ["file", "collection", "reencode"])
def test_a_lost_reply_queues_nothing_twice(kind, tmp_path, what):
    """The reply is lost on its way; the client asks again, with the same key and the same bytes."""
    lost = []

    def lose(request, response):
        if request.method == "POST" and request.url.path.endswith(("train", "reencode")) and len(lost) < 2:
            lost.append(request.headers["idempotency-key"])
            raise httpx.ReadError("lost")

    watched = Watched(app_transport(kind, tmp_path / "data"), lose)
    with connected(kind, watched, retries=Retries(clock=StoppedClock())) as client:
        client.models.upload("tiny", MODEL_FILE)
        client.models.upload("other", CCQ(bits=8, iterations=2).fit(PAIRS))
        client.collections.create("photos", "tiny", keep="int8")
        client.collection("photos").index(range(300), {name: array[:300] for name, array in PAIRS.items()})
        if what == "reencode":
            job = client.collections.reencode("photos", "other")
        elif what == "file":
            job = client.models.train("new", PAIRS, **QUICK)
        else:
            job = client.models.train("new", collection="photos", **QUICK)
        assert len(lost) == 2
        assert len(set(lost)) == 1
        assert [one.id for one in client.jobs.list()] == [job.id]


def test_the_key_may_be_ones_own(photos):
    first = photos.models.train("new", PAIRS, idempotency_key="mine", **QUICK)
    assert photos.models.train("new", PAIRS, idempotency_key="mine", **QUICK).id == first.id
    with pytest.raises(errors.IdempotencyKeyReusedError):
        photos.models.train("new", collection="photos", idempotency_key="mine", **QUICK)


def test_aliases(photos):
    assert photos.aliases.list() == []
    made = photos.aliases.set("album", "photos")
    assert (made.alias, made.collection) == ("album", "photos")
    assert photos.aliases.get("album") == made
    assert photos.collection("album").get(7).id == "7"
    assert photos.aliases.set("album", "default").collection == "default"
    assert [alias.alias for alias in photos.aliases.list()] == ["album"]
    with pytest.raises(errors.ConflictError, match="photos"):
        photos.aliases.set("photos", "default")
    with pytest.raises(errors.CollectionNotFoundError):
        photos.aliases.set("album", "none")
    photos.aliases.delete("album")
    with pytest.raises(errors.AliasNotFoundError):
        photos.aliases.get("album")


def test_items_move_by_their_codes(photos):
    """Codes and kept features come as arrays, and go to another collection as they came, or as arrays of all rows."""
    source = photos.collection("photos")
    source.index(["lone"], {"text": PAIRS["text"][:1]}, [{"n": 1}])
    items = list(source.items(page=70, with_codes=True, with_features=True))
    assert len(items) == 301
    expected = MODEL.encode({name: array[5:6] for name, array in PAIRS.items()})[0]
    assert items[5].codes["pair"].tolist() == expected.tolist()
    assert items[5].codes["pair"].dtype == np.uint8
    assert items[5].features["image"].dtype == np.float32
    np.testing.assert_allclose(items[5].features["image"], PAIRS["image"][5], rtol=1e-3)
    assert list(items[-1].codes) == list(items[-1].features) == ["text"]
    plain = next(iter(source.items(page=1)))
    assert (plain.codes, plain.features) == (None, None)

    checksum = photos.models.get("tiny").checksum
    photos.collections.create("copy", "tiny", keep="float16")
    ids, payloads = [item.id for item in items], [item.payload for item in items]
    codes, features = [item.codes for item in items], [item.features for item in items]
    done = photos.collection("copy").index_codes(
        ids, codes, payloads, model_checksum=checksum, features=features, batch_items=90
    )
    assert (done.indexed, done.requests) == (301, 4)
    for one, other in zip(items, photos.collection("copy").items(with_codes=True, with_features=True), strict=True):
        assert (one.id, one.payload, one.databases) == (other.id, other.payload, other.databases)
        for mine, theirs in ((one.codes, other.codes), (one.features, other.features)):
            assert {name: row.tolist() for name, row in mine.items()} == {n: row.tolist() for n, row in theirs.items()}

    arrays = {name: MODEL.encode({name: PAIRS[name][:50]}) for name in ("image",)}
    assert photos.index_codes(range(50), arrays, model_checksum=checksum).indexed == 50
    assert photos.search({"image": PAIRS["image"][7]}, database="image", limit=1)[0].id == "7"


def test_codes_that_cannot_be_indexed(photos):
    checksum, rows = photos.models.get("tiny").checksum, MODEL.encode({"image": PAIRS["image"][:3]})
    with pytest.raises(errors.ConflictError, match="codes of one model mean nothing to another"):
        photos.index_codes(["abc"], {"image": rows[:1]}, model_checksum="0" * 64)
    for codes, words in (
        ({"image": rows.astype(int)}, "uint8"),
        ({"image": rows[0]}, "uint8"),
        ({}, "arrays by database"),
        ([], "arrays by database"),
        ("codes", "list of mappings"),
        ({"image": rows, "text": rows[:2]}, "as many rows"),
        ([{"image": rows[0]}, {"image": rows[1][:2]}, None], r"codes\[1\]\['image'\]: expected 3 numbers"),
        ([{"image": rows[0]}], "expected 1, one for each row of codes, got 3"),
    ):
        with pytest.raises(InputError, match=words):
            photos.index_codes(range(3), codes, model_checksum=checksum)
    with pytest.raises(InputError, match="expected 3 rows"):
        photos.index_codes(range(3), {"image": rows}, model_checksum=checksum, features={"image": PAIRS["image"][:2]})
    done = photos.index_codes(range(3), [{"image": rows[0]}, {}, {"image": rows[2]}], model_checksum=checksum)
    assert (done.indexed, done.left_out) == (2, 1)
    with pytest.raises(errors.RequestError, match="keep"):
        photos.item_page(with_features=True)
