"""What people read: problems of a service in the words of the command line, and what is meant by a slip."""

import re

import pytest
from click.testing import CliRunner

from ccq_cli.main import VERBS, main
from ccq_cli.words import _REMEDIES, in_words
from ccq_client.errors import CODES, class_of
from service import errors
from service.problems import KINDS, NO_METHOD, NO_ROUTE

HTTP = re.compile(r"\b(GET|PUT|POST|DELETE) /|Authorization|X-API-Key|with_payload|40[0-9] ")


def problem(code, detail, status=404, title="A title"):
    return class_of(code, status)(status, code, title, detail)


def test_details_that_speak_http_are_told_in_commands():
    said = {
        "collection_not_found": errors.UnknownCollectionError("a;b").detail,
        "model_not_found": errors.UnknownModelError("m").detail,
        "alias_not_found": errors.UnknownAliasError("x").detail,
        "job_not_found": errors.UnknownJobError("j").detail,
        "unauthenticated": "expected an API key (Authorization: Bearer KEY, or X-API-Key: KEY), got none",
        "reply_too_large": 'expected less: ask for fewer, or for none of their payloads ("with_payload": false)',
        "route_not_found": "GET '/x/readyz': there is nothing here; GET /docs lists what there is",
        "method_not_allowed": "PUT '/': expected one of GET",
    }
    for code, detail in said.items():
        words = in_words(problem(code, detail))
        assert not HTTP.search(words), words
        assert words.endswith(f"; {_REMEDIES[code]}")
    assert in_words(problem("collection_not_found", said["collection_not_found"])).startswith(
        "no collection 'a;b'; `ccq"
    )
    assert in_words(problem("unauthenticated", said["unauthenticated"])).startswith(
        "expected an API key, got none; give"
    )


def test_other_problems_are_told_by_what_they_say():
    assert in_words(problem("invalid_request", "limit: expected 1, got 0", 422)) == "limit: expected 1, got 0"
    assert in_words(problem("empty_body", "", 400, "The request has no body")) == "The request has no body"
    assert (
        in_words(problem("internal_error", "see the log", 500, "The server failed")) == "The server failed: see the log"
    )


def test_remedies_are_for_codes_that_there_are_and_name_verbs_that_there_are():
    assert set(_REMEDIES) <= set(CODES)
    assert set(_REMEDIES) <= {kind.code for kind in KINDS.values()} | {NO_ROUTE.code, NO_METHOD.code}
    for remedy in _REMEDIES.values():
        for verb, subverb in re.findall(r"`ccq ([a-z]+) ?([a-z]*)", remedy):
            words = [verb, subverb] if subverb else [verb]
            assert CliRunner().invoke(main, [*words, "--help"]).exit_code == 0, remedy


@pytest.mark.parametrize(
    ("typed", "meant"), [("serach", "ccq search"), ("heath", "ccq health"), ("model", "ccq models")]
)
def test_a_verb_that_is_none_is_told_what_may_be_meant(typed, meant):
    result = CliRunner().invoke(main, [typed])
    assert result.exit_code == 2
    assert f"No such command {typed!r}. Did you mean `{meant}`" in result.output
    assert "`ccq --help` lists them" in CliRunner().invoke(main, ["xyzzy"]).output


def test_options_of_a_server_are_not_those_of_a_client():
    for verb in (["search", "id=1"], ["collections", "list"], ["index", "a=b"]):
        said = CliRunner().invoke(main, [*verb, "--port", "8000"]).output
        assert "--url says where the service is, as in --url http://127.0.0.1:8000." in said, verb
    assert "--url" not in CliRunner().invoke(main, ["encode", "--port", "1"]).output
    assert "Did you mean '--limit'?" in CliRunner().invoke(main, ["search", "--limt", "1"]).output


def test_help_is_written_without_loading_the_verbs(monkeypatch):
    monkeypatch.setattr("importlib.import_module", None)
    assert all(verb in CliRunner().invoke(main, ["--help"]).output for verb in VERBS)
