"""Snapshots: of one moment whatever is written meanwhile, whole or not there, restored only if they are undamaged."""

import errno
import hashlib
import io
import json
import os
import random
import subprocess
import tarfile
import threading
import time
from collections import namedtuple
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import apsw
import httpx
import orjson
import pytest

from service import archive, errors
from service import snapshots as snapshots_module
from service.indexing import prepare_items
from service.middleware import _Exchange
from service.restore import restore
from service.schemas.snapshots import SnapshotInfo
from service.settings import Settings
from service.store import backup, sqlite
from service.store.check import check
from service.store.reading import DATABASE_NAME
from tests.service.harness import InProcess, ServerProcess, assert_problem, features, item
from tests.service.test_access import bearer, create_key
from tests.service.test_metrics import scrape

Room = namedtuple("Room", "total used free")


def snapshots_of(service):
    return service.app.state.runtime.snapshots


def listed(service):
    return [(found["id"], found["version"], found["payload"]) for found in pages(service)]


def pages(service):
    cursor = {}
    while cursor is not None:
        page = service.get("/items", params={"limit": 100, **cursor}).json()
        yield from page["items"]
        cursor = None if page["next_cursor"] is None else {"cursor": page["next_cursor"]}


def restored(file, data):
    """The service on a data directory made of a snapshot, in which everything is as it should be."""
    restore(file, data)
    assert [part for part in check(data) if part.faults] == []
    service = InProcess(data)
    service.wait_until_ready()
    return service


def download(service, name, file):
    response = service.get(f"/snapshots/{name}")
    assert response.status_code == 200
    file.write_bytes(response.content)
    return response


def nothing_is_left_over(service):
    return not (service.settings.data / "snapshots" / ".making").exists()


# -- made and restored -----------------------------------------------------------------------------------------------


def test_what_is_restored_is_what_there_was(filled, tmp_path):
    filled.ok("PUT", "/collections/default", {"model": "tiny", "indexes": ["n"]})
    filled.ok("POST", "/items/delete", {"ids": ["item-3", "item-59"]})
    filled.create("empty", "other")
    reply = filled.request("POST", "/index", json={"items": [item(100)]}, headers={"Idempotency-Key": "k"}).content
    made = filled.request("POST", "/snapshots")
    assert made.status_code == 201
    info = made.json()
    SnapshotInfo.model_validate(info)
    assert info["collections"] == {"default": 59, "empty": 0}
    assert filled.ok("GET", "/snapshots") == {"snapshots": [info]}
    query = {"query": features(3), "database": ["image", "text", "pair"], "limit": 200}
    before, hits = listed(filled), filled.ok("POST", "/search", query)["results"]
    filled.ok("POST", "/items/delete", {"ids": ["item-1"]})
    file = tmp_path / "file"
    response = download(filled, info["name"], file)
    assert int(response.headers["content-length"]) == info["size"] == file.stat().st_size
    assert response.headers["etag"] == f'"{info["checksum"]}"'
    assert response.headers["content-type"] == "application/x-tar"
    assert info["name"] in response.headers["content-disposition"]
    again = restored(file, tmp_path / "again")
    try:
        assert listed(again) == before
        assert again.ok("POST", "/search", query)["results"] == hits
        assert again.ok("GET", "/collections") == {"collections": [
            {
                **found,
                **({"items": 59} if found["name"] == "default" else {}),
                **{key: again_of[key] for key in ("databases", "code_bytes")},
            }
            for found, again_of in zip(
                filled.ok("GET", "/collections")["collections"],
                again.ok("GET", "/collections")["collections"],
                strict=True,
            )
        ]}  # fmt: skip
        assert again.get("/models/other", params={"file": "true"}).content == (
            filled.get("/models/other", params={"file": "true"}).content
        )
        headers = {"Idempotency-Key": "k"}
        assert again.request("POST", "/index", json={"items": [item(100)]}, headers=headers).content == reply
        again.ok("POST", "/index", {"items": [item(200)]})
        assert listed(again)[:-1] == before
    finally:
        again.close()


def test_standard_tools_can_verify_it(filled, tmp_path):
    snapshot = snapshots_of(filled).make()
    subprocess.run(["tar", "-xf", snapshot.file, "-C", tmp_path, "ccq.sqlite", "manifest.json"], check=True)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert hashlib.sha256((tmp_path / "ccq.sqlite").read_bytes()).hexdigest() == manifest["checksum"]
    assert (manifest["format"], manifest["collections"]) == (1, {"default": 60})
    with apsw.Connection(f"{tmp_path / 'ccq.sqlite'}", flags=apsw.SQLITE_OPEN_READONLY) as database:
        assert database.pragma("journal_mode") == "delete"  # one file, without a log
        assert database.execute("SELECT count(*) FROM items_1").get == 60
    database.close()
    assert set(manifest) == set(archive.Manifest.model_fields)
    assert abs(datetime.now(UTC) - datetime.fromisoformat(manifest["created"])) < timedelta(hours=1)


def test_list_and_delete(filled):
    names = [filled.ok("POST", "/snapshots")["name"] for _ in range(3)]
    assert [found["name"] for found in filled.ok("GET", "/snapshots")["snapshots"]] == names
    assert filled.delete(f"/snapshots/{names[1]}").status_code == 204
    filled.restart()
    assert [found["name"] for found in filled.ok("GET", "/snapshots")["snapshots"]] == [names[0], names[2]]
    for method in ("GET", "DELETE"):
        assert_problem(filled.request(method, f"/snapshots/{names[1]}"), 404, "snapshot_not_found")
        assert_problem(filled.request(method, "/snapshots/..%2Fccq.sqlite"), 404, "route_not_found")
        assert_problem(filled.request(method, "/snapshots/.making"), 422, "invalid_request")


def test_a_part_of_a_file(filled):
    name = filled.ok("POST", "/snapshots")["name"]
    whole = filled.get(f"/snapshots/{name}").content
    part = filled.get(f"/snapshots/{name}", headers={"Range": "bytes=1000-1999"})
    assert part.status_code == 206
    assert part.content == whole[1000:2000]


def test_keys_for_some_collections_are_for_no_snapshot(tmp_path):
    data = tmp_path / "data"
    secret, limited = create_key(data, "all", "admin"), create_key(data, "some", "admin", collections=("default",))
    service = InProcess(data)
    try:
        service.client.headers.update(bearer(secret))
        name = service.ok("POST", "/snapshots")["name"]
        for method, path in (
            ("POST", "/snapshots"),
            ("GET", "/snapshots"),
            ("GET", f"/snapshots/{name}"),
            ("DELETE", f"/snapshots/{name}"),
        ):
            assert_problem(service.request(method, path, headers=bearer(limited)), 403, "forbidden")
        with tarfile.open(data / "snapshots" / f"{name}.tar") as tar:
            assert tar.getnames() == ["ccq.sqlite", "manifest.json"]  # no keys
    finally:
        service.close()


# -- while others write ----------------------------------------------------------------------------------------------


def write_randomly(collection, settings, rng, done, stop):
    """Write until told to stop; `done` gets the version of each write and how it changes a dict of items."""
    while not stop.is_set():
        kind, ids = rng.random(), [f"item-{i}" for i in rng.sample(range(200), rng.randint(1, 20))]
        if kind < 0.2:
            version = collection.delete_ids(ids).version
            done.append((version, "delete", [(item_id, None) for item_id in ids]))
        elif kind < 0.4:
            try:
                version = collection.set_payload(ids[0], orjson.dumps({"set": kind})).version
            except errors.UnknownItemError:
                continue
            done.append((version, "set", [(ids[0], {"set": kind})]))
        else:
            payload = {"write": kind, "text": "x" * rng.randint(0, 2000)}
            body = {"items": [{"id": name, "features": features(len(name)), "payload": payload} for name in ids]}
            prepared = prepare_items(collection, orjson.dumps(body), settings)
            version = collection.upsert(prepared.items, prepared.encoded).version
            done.append((version, "index", [(item_id, payload) for item_id in ids]))


def replayed(writes, version):
    """Items in order, after the writes up to a version."""
    items = {}
    for number, kind, changes in sorted(writes, key=lambda write: write[0]):
        for item_id, payload in changes if number <= version else ():
            if kind != "set":
                items.pop(item_id, None)
            if kind != "delete":
                items[item_id] = (number, payload)
    return [(item_id, *value) for item_id, value in items.items()]


def test_under_writes_it_is_of_one_moment(tmp_path, monkeypatch):
    monkeypatch.setattr(backup, "_STEP_PAGES", 4)
    monkeypatch.setattr(sqlite, "LOG_BYTES", 256 << 10)  # so that it is emptied meanwhile
    service = InProcess(tmp_path / "data")
    service.create()
    collection, writes, stop = service.catalog.collection("default"), [], threading.Event()
    threads = [
        threading.Thread(target=write_randomly, args=(collection, service.settings, random.Random(seed), writes, stop))
        for seed in range(3)
    ]
    made = []
    try:
        for thread in threads:
            thread.start()
        while len(made) < 4:
            before = collection.view.version
            if before < 20 * (len(made) + 1):
                time.sleep(0.001)
                continue
            made.append((before, snapshots_of(service).make(), collection.view.version))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    moments = 0
    for turn, (before, snapshot, after) in enumerate(made):
        again = restored(snapshot.file, tmp_path / f"again {turn}")
        try:
            version = again.catalog.collection("default").view.version
            assert before <= version <= after
            moments += after > before + 1
            assert listed(again) == replayed(writes, version)
        finally:
            again.close()
    assert moments  # there were writes while one was made
    assert listed(service) == replayed(writes, collection.view.version)
    service.close()


def test_writes_go_on_between_its_steps(filled, monkeypatch):
    """In the middle of a snapshot a write is done, and read, and is in the snapshot."""
    monkeypatch.setattr(backup, "_STEP_PAGES", 1)
    store, seen = filled.app.state.runtime.store, []
    collection = filled.catalog.collection("default")

    def check():
        if not seen:
            collection.set_payload("item-1", b'{"meanwhile": true}')
            with collection.read() as (_, snapshot):
                seen.append(snapshot.item("item-1").payload)

    copied = store.copy(filled.settings.data / "copy", check)
    assert copied.collections == {"default": 60}
    assert seen == [b'{"meanwhile": true}']
    assert b'{"meanwhile": true}' in (filled.settings.data / "copy").read_bytes()


def paused(monkeypatch):
    """Snapshots stop after their first step until the second event is set; the first says that they have."""
    inside, go_on = threading.Event(), threading.Event()
    original = snapshots_module.Snapshots._check

    def check(self):
        inside.set()
        assert go_on.wait(20)
        original(self)

    monkeypatch.setattr(snapshots_module.Snapshots, "_check", check)
    monkeypatch.setattr(backup, "_STEP_PAGES", 1)
    return inside, go_on


def test_one_at_a_time(filled, monkeypatch):
    inside, go_on = paused(monkeypatch)
    made = []
    thread = threading.Thread(target=lambda: made.append(snapshots_of(filled).make()))
    thread.start()
    assert inside.wait(20)
    assert_problem(filled.request("POST", "/snapshots"), 409, "snapshot_in_progress")
    assert filled.ok("GET", "/snapshots") == {"snapshots": []}
    assert filled.ok("POST", "/index", {"items": [item(100)]})["indexed"] == 1
    go_on.set()
    thread.join()
    assert [found["name"] for found in filled.ok("GET", "/snapshots")["snapshots"]] == [made[0].name]
    assert filled.request("POST", "/snapshots").status_code == 201


def test_a_server_that_stops_does_not_wait_for_it(filled, monkeypatch):
    inside, go_on = paused(monkeypatch)
    refused = []

    def make():
        try:
            snapshots_of(filled).make()
        except errors.UnavailableError as error:
            refused.append(str(error))

    thread = threading.Thread(target=make)
    thread.start()
    assert inside.wait(20)
    threading.Timer(0.05, go_on.set).start()
    filled._stop()
    thread.join()
    assert refused == ["the server stops; the snapshot was not completed"]
    filled._open()
    assert filled.ok("GET", "/snapshots") == {"snapshots": []}
    assert nothing_is_left_over(filled)


def test_it_goes_on_when_its_request_is_over(tmp_path, monkeypatch):
    service = InProcess(tmp_path / "data", request_seconds=2)
    try:
        inside, go_on = paused(monkeypatch)
        end = _Exchange.end
        monkeypatch.setattr(_Exchange, "end", lambda self: (end(self), go_on.set()))
        assert_problem(service.request("POST", "/snapshots"), 503, "timeout")
        assert inside.is_set()
        assert len(service.ok("GET", "/snapshots")["snapshots"]) == 1
    finally:
        service.close()


# -- what goes wrong -------------------------------------------------------------------------------------------------


def full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


def full_database(monkeypatch):
    original = backup._copy_pages

    def copy_pages(source, target, *rest):
        target.pragma("max_page_count", 3)
        original(source, target, *rest)

    monkeypatch.setattr(backup, "_copy_pages", copy_pages)


@pytest.mark.parametrize(
    "fill_disk",
    [
        full_database,
        lambda patch: patch.setattr(tarfile.TarFile, "addfile", full),
        lambda patch: patch.setattr(archive.os, "fsync", full),
        lambda patch: patch.setattr(snapshots_module.shutil, "disk_usage", lambda _: Room(9, 0, 9)),
    ],
)
def test_a_full_disk_does_no_harm(filled, fill_disk):
    with pytest.MonkeyPatch.context() as patch:
        fill_disk(patch)
        response = filled.request("POST", "/snapshots")
    assert_problem(response, 507, "storage_full")
    assert nothing_is_left_over(filled)
    assert filled.ok("GET", "/snapshots") == {"snapshots": []}
    assert filled.ok("POST", "/index", {"items": [item(100)]})["indexed"] == 1
    assert filled.ok("POST", "/snapshots")["collections"] == {"default": 61}


def test_a_disk_that_fails(filled):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archive.os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.EIO, "I/O error")))
        response = filled.request("POST", "/snapshots")
    assert_problem(response, 500, "storage_error")
    assert nothing_is_left_over(filled)


@pytest.fixture
def start(tmp_path, model_path):
    """Starts a server on one data directory; none outlives the test."""
    servers = []

    def start():
        servers.append(ServerProcess(tmp_path / "data", model_path))
        servers[-1].wait_until_ready()
        return servers[-1]

    yield start
    for server in servers:
        if server.process.poll() is None:
            server.kill()


def test_killed_while_one_is_made(tmp_path, start):
    data = tmp_path / "data"
    server = start()
    for part in range(4):
        items = [item(i, text="x" * 50_000) for i in range(100 * part, 100 * part + 100)]
        assert server.client.post("/index", json={"items": items}).status_code == 200
    left_over = 0
    for _ in range(5):

        def ask(url=server.url):
            with suppress(httpx.TransportError):
                httpx.post(f"{url}/snapshots")

        asking = threading.Thread(target=ask)
        asking.start()
        making = data / "snapshots" / ".making" / "database"
        while not (making.exists() and making.stat().st_size > 1 << 20) and asking.is_alive():
            pass
        server.kill()
        asking.join()
        left_over += making.exists()
        server = start()
        assert not making.parent.exists()
        for snapshot in server.client.get("/snapshots").json()["snapshots"]:  # one that was complete just before
            archive.verify(data / "snapshots" / f"{snapshot['name']}.tar")
        assert server.client.get("/collections/default").json()["items"] == 400
    assert left_over
    made = server.client.post("/snapshots").json()
    assert made["collections"] == {"default": 400}
    assert server.stop() == 0
    assert [part for part in check(data) if part.faults] == []
    restored(data / "snapshots" / f"{made['name']}.tar", tmp_path / "again").close()


# -- restoring -------------------------------------------------------------------------------------------------------


@pytest.fixture
def file(filled):
    return snapshots_of(filled).make().file


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def repacked(data, change=lambda _: None, **members):
    """The same tar, with other content of some members."""
    out = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(data)) as tar, tarfile.open(fileobj=out, mode="w") as again:
        for info in tar:
            content = members.get(info.name.split(".")[0], tar.extractfile(info).read())
            info.size = len(content)
            change(info)
            again.addfile(info, io.BytesIO(content))
    return out.getvalue()


def with_manifest(data, **changes):
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        manifest = json.load(tar.extractfile("manifest.json"))
    return repacked(data, manifest=json.dumps({**manifest, **changes}).encode())


def as_link(info):
    info.type, info.linkname, info.size = tarfile.SYMTYPE, "/etc/passwd", 0


DAMAGE = [
    (lambda data: flipped(data, 5000), "another SHA-256"),
    (lambda data: flipped(data, 300_000 if len(data) > 400_000 else len(data) // 2), "another SHA-256"),
    (lambda data: flipped(data, 3), "damaged, or no snapshot"),
    (lambda data: data[:10_000], "damaged, or no snapshot"),
    (lambda data: data[: len(data) // 1024 * 512], "damaged, or no snapshot"),
    (lambda _: b"", "damaged, or no snapshot"),
    (lambda _: b"x" * 10_000, "damaged, or no snapshot"),
    (lambda data: with_manifest(data, checksum="0" * 64), "another SHA-256"),
    (lambda data: with_manifest(data, checksum=None), "manifest.json"),
    (lambda data: with_manifest(data, created="2026-01-01T00:00:00"), "manifest.json"),
    (lambda data: repacked(data, manifest=b"{"), "manifest.json"),
    (lambda data: repacked(data, as_link), "expected ccq.sqlite in it"),
    (lambda data: repacked(data, lambda info: setattr(info, "name", "../" + info.name)), "expected ccq.sqlite in it"),
    (lambda data: with_manifest(data, format=2, package="9.9"), "version 9.9 of ccq-search, which is newer"),
    (lambda data: with_manifest(data, database=99, package="9.9"), "version 9.9 of ccq-search, which is newer"),
]


@pytest.mark.parametrize(("damage", "words"), DAMAGE)
def test_a_damaged_snapshot_is_refused(file, tmp_path, damage, words):
    bad, data = tmp_path / "bad.tar", tmp_path / "new"
    bad.write_bytes(damage(file.read_bytes()))
    with pytest.raises(errors.SnapshotFileError, match=words) as refused:
        restore(bad, data)
    assert str(bad) in str(refused.value)
    assert os.listdir(data) == ["LOCK"]
    restore(file, data)
    assert [part for part in check(data) if part.faults] == []


def test_a_damaged_snapshot_is_not_listed(filled, file, caplog):
    file.write_bytes(file.read_bytes()[:10_000])
    assert filled.ok("GET", "/snapshots") == {"snapshots": []}
    assert f"{file} is passed over" in caplog.text
    problem = assert_problem(filled.get(f"/snapshots/{file.stem}"), 500, "storage_error")
    assert "damaged" in problem["detail"]
    assert filled.delete(f"/snapshots/{file.stem}").status_code == 204


def test_a_directory_that_has_a_database_is_left_alone(file, filled, tmp_path):
    with pytest.raises(errors.DirectoryInUseError):
        restore(file, filled.settings.data)
    InProcess(tmp_path / "other").close()
    before = (tmp_path / "other" / DATABASE_NAME).read_bytes()
    with pytest.raises(errors.SnapshotFileError, match="has a database already"):
        restore(file, tmp_path / "other")
    assert (tmp_path / "other" / DATABASE_NAME).read_bytes() == before
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / (DATABASE_NAME + "-wal")).write_bytes(b"what was written last")
    with pytest.raises(errors.SnapshotFileError, match="has a database already"):
        restore(file, tmp_path / "log")


def test_a_directory_that_has_lost_its_database_is_restored(filled, file, tmp_path):
    before = listed(filled)
    other = tmp_path / "other"
    InProcess(other).close()
    (other / DATABASE_NAME).unlink()
    again = restored(file, other)
    assert listed(again) == before
    again.close()


# -- regularly -------------------------------------------------------------------------------------------------------


def wait_for(condition):
    for _ in range(2000):
        if condition():
            return
        time.sleep(0.005)
    raise AssertionError("did not come about in time")


def test_they_are_made_regularly_and_the_oldest_of_these_are_deleted(tmp_path):
    data = tmp_path / "data"
    service = InProcess(data)
    asked = service.ok("POST", "/snapshots")["name"]
    service.close()
    service = InProcess(data, snapshot_minutes=0.05 / 60, snapshot_keep=2)
    try:
        made = set()

        def enough():
            names = [found["name"] for found in service.ok("GET", "/snapshots")["snapshots"]]
            assert len(names) <= 1 + 3
            made.update(names)
            return len(made) > 5

        wait_for(enough)
        assert asked in {found["name"] for found in service.ok("GET", "/snapshots")["snapshots"]}
        assert sum(name.startswith("scheduled-") for name in made) == len(made) - 1
    finally:
        service.close()
    assert len(list((data / "snapshots").glob("scheduled-*"))) == 2


def test_a_restart_does_not_put_the_next_off(tmp_path, monkeypatch):
    data = tmp_path / "data"
    service = InProcess(data)
    snapshots_of(service).make(scheduled=True)
    service.close()
    service = InProcess(data, snapshot_minutes=60)
    time.sleep(0.05)
    assert len(service.ok("GET", "/snapshots")["snapshots"]) == 1
    service.close()
    hours_later = type(
        "later", (datetime,), {"now": classmethod(lambda _, zone: datetime.now(zone) + timedelta(hours=2))}
    )
    monkeypatch.setattr(snapshots_module, "datetime", hours_later)
    service = InProcess(data, snapshot_minutes=60)
    try:
        wait_for(lambda: len(service.ok("GET", "/snapshots")["snapshots"]) == 2)
    finally:
        service.close()


def test_one_that_fails_is_logged_and_the_next_is_made(tmp_path, caplog):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tarfile.TarFile, "addfile", full)
        service = InProcess(tmp_path / "data", snapshot_minutes=0.02 / 60)
        try:
            wait_for(lambda: "the scheduled snapshot was not made" in caplog.text)
            patch.undo()
            wait_for(lambda: service.ok("GET", "/snapshots")["snapshots"])
        finally:
            service.close()


def test_the_last_one_is_measured(filled):
    before = time.time()
    size = filled.ok("POST", "/snapshots")["size"]
    found = scrape(filled)
    assert before <= found["ccq_snapshot_timestamp_seconds", frozenset()] <= time.time()
    assert found["ccq_snapshot_bytes", frozenset()] == size
    assert 0 < found["ccq_snapshot_seconds", frozenset()] < 60
    made = found["ccq_snapshot_timestamp_seconds", frozenset()]
    snapshots_module.metrics.snapshot_made(0, 0)
    filled.restart()
    assert abs(scrape(filled)["ccq_snapshot_timestamp_seconds", frozenset()] - made) < 0.001
    assert scrape(filled)["ccq_snapshot_bytes", frozenset()] == size


def test_settings():
    assert Settings(data="x").snapshot_minutes is None
    assert Settings(data="x").snapshot_keep == 3
    for wrong in ({"snapshot_minutes": 0}, {"snapshot_keep": 0}):
        with pytest.raises(ValueError, match="greater than"):
            Settings(data="x", **wrong)
