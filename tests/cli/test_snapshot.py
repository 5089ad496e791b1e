"""`ccq snapshot`, `ccq restore` and `ccq serve --restore`: what a running service holds, in another one."""

import subprocess
import sys

import httpx
import pytest
from click.testing import CliRunner

from ccq_cli.demo import wait_until_ready
from ccq_cli.main import main
from service import archive
from service.errors import StartError


def ccq(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def file(files, url, tmp_path_factory):
    """A snapshot of the service, which has 300 items of this and maybe others."""
    arrays = [f"image={files / 'image.npy'}", f"text={files / 'text.npy'}"]
    assert ccq("index", *arrays, "--payloads", files / "items.jsonl", "--url", url).exit_code == 0
    file = tmp_path_factory.mktemp("snapshots") / "mine.tar"
    result = ccq("snapshot", "-o", file, "--url", url)
    assert result.exit_code == 0, result.output
    assert f"downloaded to {file}" in result.output
    assert [path.name for path in file.parent.iterdir()] == ["mine.tar"]
    return file


def test_moved_it_is_not_on_the_server_any_more(file, url, tmp_path, monkeypatch):
    before = httpx.get(f"{url}/snapshots").json()["snapshots"]
    result = ccq("snapshot", "-o", tmp_path / "moved.tar", "--move", "--url", url)
    assert (result.exit_code, f"moved to {tmp_path / 'moved.tar'}" in result.output) == (0, True), result.output
    archive.verify(tmp_path / "moved.tar")
    assert httpx.get(f"{url}/snapshots").json()["snapshots"] == before
    refused = ccq("snapshot", "--move", "--url", url)
    assert (refused.exit_code, "give the file to move it to by -o" in refused.output) == (2, True)
    nowhere = ccq("snapshot", "-o", tmp_path / "none/moved.tar", "--move", "--url", url)
    assert nowhere.exit_code == 1
    assert httpx.get(f"{url}/snapshots").json()["snapshots"] == before  # none was made

    def damaged(_):
        raise StartError("damaged")

    monkeypatch.setattr(archive, "verify", damaged)
    lost = ccq("snapshot", "-o", tmp_path / "lost.tar", "--move", "--url", url)
    assert (lost.exit_code, (tmp_path / "lost.tar").exists()) == (1, False)
    assert len(httpx.get(f"{url}/snapshots").json()["snapshots"]) == len(before) + 1  # it is still there


def items(url):
    return httpx.get(f"{url}/items", params={"limit": 1000}).json()


def serving(*arguments):
    command = [sys.executable, "-m", "ccq_cli", "serve", "--port", "0", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def served(*arguments):
    """The items of a service that is started and stopped."""
    process = serving(*arguments)
    try:
        return items(wait_until_ready(process))
    finally:
        process.terminate()
        process.communicate(timeout=20)


def test_restored_it_is_what_it_was(file, url, tmp_path):
    result = ccq("restore", file, "--data", tmp_path / "data")
    assert result.exit_code == 0, result.output
    assert f"collection default: {len(items(url)['items'])} items" in result.output
    assert ccq("check", "--data", tmp_path / "data").exit_code == 0
    assert served("--data", tmp_path / "data") == items(url)
    result = ccq("restore", file, "--data", tmp_path / "data")
    assert (result.exit_code, "has a database already" in result.output) == (1, True)


def test_serve_restores_first(file, url, tmp_path):
    assert served("--data", tmp_path / "data", "--restore", file) == items(url)
    _, stderr = (again := serving("--data", tmp_path / "data", "--restore", file)).communicate(timeout=30)
    assert again.returncode == 1
    assert "has a database already" in stderr


def test_what_is_damaged_is_told_in_one_line(file, tmp_path):
    bad = tmp_path / "bad.tar"
    bad.write_bytes(file.read_bytes()[:-20_000])
    result = ccq("restore", bad, "--data", tmp_path / "data")
    assert result.exit_code == 1
    assert result.output.startswith(f"Error: snapshot {bad} is damaged")
    assert result.output.count("\n") == 1


def test_a_download_that_is_damaged_gets_no_name(url, tmp_path, monkeypatch):
    original = archive.verify

    def verify(file):
        file.write_bytes(file.read_bytes()[:-20_000])
        return original(file)

    monkeypatch.setattr(archive, "verify", verify)
    result = ccq("snapshot", "-o", tmp_path / "mine.tar", "--url", url)
    assert result.exit_code == 1
    assert "is damaged" in result.output
    assert list(tmp_path.iterdir()) == []


def test_it_may_stay_on_the_server(url):
    before = httpx.get(f"{url}/snapshots").json()["snapshots"]
    result = ccq("snapshot", "--url", url)
    after = httpx.get(f"{url}/snapshots").json()["snapshots"]
    assert after[:-1] == before
    assert result.output == f"made snapshot {after[-1]['name']}: {after[-1]['size']:,} bytes\n"
