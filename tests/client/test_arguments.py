"""Arguments that are mistyped, and what the environment gives instead of them."""

import tomllib
from pathlib import Path

import httpx
import numpy as np
import pytest

from ccq_client import Client, InputError, Retries, TransportError
from ccq_client.errors import IdempotencyKeyReusedError
from tests.client.kinds import connected
from tests.service.harness import PAIRS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("given", ["127.0.0.1:8000", "http://127.0.0.1:8000", " http://127.0.0.1:8000 "])
def test_an_address_needs_no_scheme(given):
    with Client(given) as client:
        assert client.url == "http://127.0.0.1:8000"
    with Client("localhost") as client:
        assert client.url == "http://localhost"


@pytest.mark.parametrize("given", ["", "  ", "ftp://a", "grpc://127.0.0.1:8000"])
def test_what_is_no_address_of_http_is_refused_at_once(given):
    with pytest.raises(TransportError, match=r"url: expected the address of a service, as in http://127\.0\.0\.1:8000"):
        Client(given)


def test_the_environment_gives_address_and_key(monkeypatch):
    monkeypatch.setenv("CCQ_URL", "elsewhere:9000")
    monkeypatch.setenv("CCQ_API_KEY", "secret")
    asked = []

    def answer(request):
        asked.append((str(request.url), request.headers.get("Authorization")))
        return httpx.Response(200, json={"version": "1"})

    with Client(transport=httpx.MockTransport(answer), check_version=False) as client:
        client.version()
    monkeypatch.setenv("CCQ_URL", "")
    monkeypatch.setenv("CCQ_API_KEY", "")
    with Client(transport=httpx.MockTransport(answer), check_version=False) as client:
        client.version()
    assert asked == [("http://elsewhere:9000/version", "Bearer secret"), ("http://127.0.0.1:8000/version", None)]


@pytest.mark.parametrize("given", [-1, 2.5, "x", True])
def test_retries_are_a_whole_number(given):
    for make in (lambda: Client("http://x", retries=given), lambda: Retries(times=given)):
        with pytest.raises(InputError, match="retries: expected a whole number of 0 or more, Retries or None, got"):
            make()
    with pytest.raises(InputError, match="retries: total: expected seconds of 0 or more, got"):
        Retries(total=-1.0)
    assert Retries.of(None).times == Retries.of(0).times == 0


@pytest.mark.parametrize(
    ("verb", "given", "meant"),
    [
        ("search", "k", "limit"),
        ("search", "top_k", "limit"),
        ("search", "limt", "limit"),
        ("search", "databse", "database"),
        ("search", "where", "filter"),
        ("search_batch", "k", "limit"),
        ("search_groups", "group", "group_by"),
        ("search_iter", "page_size", "page"),
    ],
)
def test_a_mistyped_option_is_told_what_is_meant(shared, verb, given, meant):
    required = {"group_by": "n"} if verb == "search_groups" else {}
    first = {"queries": {"text": PAIRS["text"][:1]}} if verb == "search_batch" else {"by_id": "x"}
    with pytest.raises(
        TypeError, match=f"unexpected option '{given}': did you mean '{meant}'[?] expected one of .*{meant}"
    ):
        list(getattr(shared, verb)(**first, **required, **{given: 5}))
    with pytest.raises(TypeError, match="unexpected option 'zzz': expected one of"):
        list(getattr(shared, verb)(**first, **required, zzz=5))


def test_the_version_is_asked_for_once_and_not_for_long(kind):
    asked = []

    def answer(request):
        asked.append((request.url.path, request.extensions["timeout"]["read"]))
        raise httpx.ReadTimeout("late")

    with connected(kind, httpx.MockTransport(answer), retries=0, timeout=30.0) as client:
        for _ in range(2):
            with pytest.raises(TransportError):
                client.ready()
    assert asked == [("/version", 2.0), ("/readyz", 30.0), ("/readyz", 30.0)]


def test_index_with_a_key_is_done_once(client):
    features = {name: array[:5] for name, array in PAIRS.items()}
    ids = list("abcde")
    client.index(ids, features, batch_items=2, idempotency_key="first")
    client.delete(["a", "c", "e"])
    assert client.index(ids, features, batch_items=2, idempotency_key="first").indexed == 5
    assert [item.id for item in client.items()] == ["b", "d"]
    with pytest.raises(IdempotencyKeyReusedError):
        client.index(ids, features, batch_items=3, idempotency_key="first")
    codes = {
        name: np.stack([item.codes[name] for item in client.items(with_codes=True)])
        for name in ("text", "image", "pair")
    }
    checksum = client.models.get("tiny").checksum
    for _ in range(2):
        client.index_codes(["x", "y"], codes, model_checksum=checksum, idempotency_key="second")
        client.delete(["x"])
    assert [item.id for item in client.items()] == ["b", "d", "y"]


def test_every_package_of_the_wheel_is_typed():
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]["wheel"]["packages"]
    assert len(packages) == 4
    for package in packages:
        assert (ROOT / package / "py.typed").exists(), package


@pytest.mark.parametrize("ask", ["collections.get", "models.get", "aliases.get", "jobs.get"])
def test_names_that_can_be_none_are_refused_before_they_are_sent(client, ask):
    resource, verb = ask.split(".")
    with pytest.raises(InputError, match=r"expected a name of letters, digits, '\.', '_' and '-', got 'a/b'"):
        getattr(getattr(client, resource), verb)("a/b")
    with pytest.raises(InputError, match="a/b"):
        client.collection("a/b").get("x")


def test_what_has_no_length_is_no_list(client):
    for name in ("payloads", "if_versions"):
        with pytest.raises(InputError, match=f"{name}: expected a list, one for each of 2 rows, got generator"):
            client.index(["a", "b"], {"text": np.ones((2, 8))}, **{name: (None for _ in range(2))})


def test_a_column_of_vectors_is_told_how_to_become_an_array(client):
    column = np.empty(2, dtype=object)
    column[:] = [np.ones(8), np.ones(8)]
    with pytest.raises(InputError, match=r"got one of type object; np.stack\(column\) makes one"):
        client.index(["a", "b"], {"text": column})


def test_rows_that_are_masked_are_absent(client):
    array = np.ma.masked_array(PAIRS["text"][:3], mask=np.zeros((3, 8), dtype=bool))
    array[1] = np.ma.masked
    assert client.index(["m0", "m1", "m2"], {"text": array}).left_out == 1
    assert [item.id for item in client.items()] == ["m0", "m2"]
    array[0, 0] = np.ma.masked
    with pytest.raises(InputError, match="NaN"):
        client.index(["m0", "m1", "m2"], {"text": array})


def test_arrays_in_a_tuple_are_no_rows(client):
    with pytest.raises(InputError, match=r"features\[0\]: expected a mapping of arrays by name, or None, got ndarray"):
        client.index(["a", "b"], (np.ones((2, 8)),))
