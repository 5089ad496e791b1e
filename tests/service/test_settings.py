"""Settings: from the environment, described, and refused where they make no sense."""

import pytest
from pydantic import ValidationError

from service.settings import Settings


def test_they_come_from_the_environment_and_arguments_come_first(monkeypatch, tmp_path):
    monkeypatch.setenv("CCQ_DATA", str(tmp_path))
    monkeypatch.setenv("CCQ_PORT", "9000")
    monkeypatch.setenv("CCQ_DEFAULT_COLLECTION", "mine")
    assert Settings().data == tmp_path
    assert Settings().port == 9000
    assert Settings(port=1).port == 1
    assert Settings().default_collection == "mine"
    assert Settings().search_threads >= 1


def test_each_has_a_description():
    for name, field in Settings.model_fields.items():
        assert field.description, name


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"data": ""},
        {"data": "x", "port": 65536},
        {"data": "x", "default_collection": "a/b"},
        {"data": "x", "search_threads": 0},
        {"data": "x", "log_level": "loud"},
        {"data": "x", "unknown": 1},
    ],
)
def test_what_makes_no_sense_is_refused(monkeypatch, given):
    monkeypatch.delenv("CCQ_DATA", raising=False)
    with pytest.raises(ValidationError):
        Settings(**given)


def test_an_empty_variable_is_not_the_working_directory(monkeypatch):
    monkeypatch.setenv("CCQ_DATA", "")
    with pytest.raises(ValidationError, match="expected a directory, got an empty name"):
        Settings()


def test_any_other_empty_variable_is_one_that_is_not_set(monkeypatch):
    monkeypatch.setenv("CCQ_DATA", "x")
    plain = Settings()
    for name in Settings.model_fields:
        if name != "data":
            monkeypatch.setenv(f"CCQ_{name.upper()}", "")
    assert Settings() == plain
