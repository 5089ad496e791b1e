"""`ccq check` finds what the service has not written."""

import apsw
import pytest
from click.testing import CliRunner

from ccq_cli.main import main
from service.store.reading import DATABASE_NAME
from tests.service.harness import InProcess, fill


@pytest.fixture
def directory(tmp_path):
    service = InProcess(tmp_path / "data")
    service.create()
    service.create("empty")
    fill(service)
    service.ok("POST", "/items/delete", {"ids": ["item-3", "item-9"]})
    service.close()
    return tmp_path / "data"


def check(directory):
    result = CliRunner().invoke(main, ["check", "--data", str(directory)])
    return result.exit_code, result.output


def test_what_is_whole_is_told(directory):
    code, output = check(directory)
    assert code == 0
    assert [line.split(",")[0] for line in output.splitlines()] == [
        "database: ok", "model 'tiny': ok", "collection 'default': ok", "collection 'empty': ok",
    ]  # fmt: skip
    assert "58 items" in output


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("UPDATE codes_1 SET data = zeroblob(length(data))", "collection 'default': DAMAGED"),
        ("DELETE FROM items_1 WHERE id = 'item-7'", "codes of item number 8, which does not exist"),
        ("DELETE FROM gone_1 WHERE seq = 4", "codes of item number 4, which does not exist"),
        ("INSERT INTO gone_1 VALUES (6)", "item number 6 has no codes"),
        ("UPDATE collections SET items = 99 WHERE number = 1", "58 items, counted as 99"),
        ("UPDATE models SET file = zeroblob(length(file))", "its SHA-256 differs"),
        ("UPDATE collections SET model = 'other'", "its model 'other' is missing"),
    ],
)
def test_damage_is_named(directory, damage, words):
    connection = apsw.Connection(str(directory / DATABASE_NAME))
    connection.execute(damage)
    connection.close()
    code, output = check(directory)
    assert code == 1
    assert words in output
    assert ("collection 'empty': ok" in output) == ("_1" in damage or "number = 1" in damage)


def test_a_torn_page_is_named(directory):
    path = directory / DATABASE_NAME
    data = bytearray(path.read_bytes())
    for page in range(2, len(data) // 4096, 3):
        data[page * 4096 : page * 4096 + 40] = b"\xff" * 40
    path.write_bytes(data)
    code, output = check(directory)
    assert code == 1
    assert "DAMAGED" in output or "Error" in output


def test_a_directory_in_use_and_one_without_a_database_are_refused(directory, tmp_path):
    service = InProcess(directory)
    code, output = check(directory)
    assert code == 1
    assert "is in use by process" in output
    service.close()
    assert check(tmp_path) == (1, f"Error: data directory {tmp_path}: no database ccq.sqlite in it\n")
