"""Every code of the service is an error of its own class here, with all that the problem says."""

import json
import pickle
import re
from pathlib import Path

import httpx
import pytest

from ccq_client import (
    ApiError,
    CCQError,
    InputError,
    TransportError,
    TransportTimeoutError,
    UnexpectedReplyError,
    errors,
)
from ccq_client.errors import CODES, Fault, class_of
from service.problems import KINDS, NO_METHOD, NO_ROUTE
from tests.client.kinds import connected

ROOT = Path(__file__).parents[2]
DOCUMENT = json.loads((ROOT / "openapi/openapi.json").read_text(encoding="utf-8"))
KNOWN = {kind.code: kind for kind in (*KINDS.values(), NO_ROUTE, NO_METHOD)}
FAMILIES = {
    401: errors.UnauthenticatedError,
    403: errors.ForbiddenError,
    404: errors.NotFoundError,
    409: errors.ConflictError,
    412: errors.VersionMismatchError,
    500: errors.ServerError,
    503: errors.UnavailableError,
    507: errors.ServerError,
}


def test_every_code_of_the_service_has_its_class():
    in_document = {
        code
        for methods in DOCUMENT["paths"].values()
        for operation in methods.values()
        for status, response in operation["responses"].items()
        if int(status) >= 400
        for code in re.findall(r"`(\w+)`", response["description"])
    }
    assert len(in_document) > 30
    assert set(CODES) == set(KNOWN)
    assert in_document <= set(CODES)


@pytest.mark.parametrize("code", sorted(KNOWN))
def test_a_problem_is_raised_as_its_class(kind, code):
    expected = KNOWN[code]
    faults = [{"pointer": "#/items/3", "detail": "one"}, {"pointer": "?limit", "detail": "two"}]
    body = {
        "type": f"urn:ccq-search:problem:{code}",
        "title": expected.title,
        "status": expected.status,
        "detail": "one",
        "code": code,
        "request_id": "r1",
        "errors": faults,
        "more": "of a newer server",
    }
    transport = httpx.MockTransport(lambda request: httpx.Response(expected.status, json=body))
    with connected(kind, transport, retries=0, check_version=False) as client, pytest.raises(ApiError) as caught:
        client.get("x")
    error = caught.value
    assert type(error) is CODES[code]
    assert isinstance(error, FAMILIES.get(expected.status, errors.RequestError))
    assert (error.status, error.code, error.title, error.detail) == (expected.status, code, expected.title, "one")
    assert error.errors == (Fault("#/items/3", "one"), Fault("?limit", "two"))
    assert error.request_id == "r1"
    assert re.fullmatch(rf"{re.escape(expected.title)}: one(; .+)?\n  two", str(error))
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.errors) == (type(error), str(error), error.errors)


@pytest.mark.parametrize(
    ("status", "family"), [*FAMILIES.items(), (400, errors.RequestError), (418, errors.RequestError)]
)
def test_codes_of_newer_services_go_by_their_status(status, family):
    assert issubclass(family, class_of("brand_new", status))
    assert class_of("brand_new", status) is not ApiError


@pytest.mark.parametrize("content", [b"<html>no</html>", b"[1]", b"", b'{"title": "t", "errors": [1]}', b"\xff"])
def test_answers_of_proxies_are_errors_too(kind, content):
    transport = httpx.MockTransport(lambda request: httpx.Response(413, content=content))
    with connected(kind, transport, check_version=False) as client, pytest.raises(errors.RequestError) as caught:
        client.collections.get("x")
    assert (caught.value.code, caught.value.status, caught.value.request_id) == ("unknown", 413, None)
    assert str(caught.value) == "413 Request Entity Too Large: http://test/collections/x answered without saying more"


@pytest.mark.parametrize("status", [300, 400, 404, 405, 410, 418, 501])
def test_what_other_servers_refuse_is_not_what_a_service_refuses(kind, status):
    """A path that they do not know is no item that is not there, also where a deletion was sent again."""
    answers = iter([httpx.Response(503), httpx.Response(status, content=b"<html>no</html>")])
    transport = httpx.MockTransport(lambda request: next(answers))
    with connected(kind, transport, check_version=False) as client, pytest.raises(UnexpectedReplyError) as caught:
        client.collections.delete("x")
    assert str(caught.value).startswith(f"http://test/collections/x: the answer, {status} ")
    assert str(caught.value).endswith(", is not that of a CCQ service")
    assert caught.value.in_doubt


def test_where_a_redirection_leads_is_told(kind):
    moved = httpx.Response(308, headers={"Location": "https://test/version"})
    told = pytest.raises(UnexpectedReplyError, match=r"CCQ service; it leads to https://test/version$")
    with connected(kind, httpx.MockTransport(lambda request: moved), check_version=False) as client, told:
        client.version()


def test_errors_are_also_what_python_calls_them():
    for cls, builtin in (
        (InputError, ValueError),
        (errors.RequestError, ValueError),
        (errors.NotFoundError, LookupError),
        (errors.ForbiddenError, PermissionError),
        (errors.UnauthenticatedError, PermissionError),
        (TransportError, ConnectionError),
        (TransportTimeoutError, TimeoutError),
    ):
        assert issubclass(cls, builtin)
        assert issubclass(cls, CCQError)


def test_the_tree_in_the_docs_is_the_tree():
    named = set(re.findall(r"\w+Error(?= |$)", errors.__doc__, flags=re.MULTILINE))
    defined = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, CCQError)}
    assert defined == named - {"ValueError", "LookupError", "PermissionError", "ConnectionError", "TimeoutError"}


def test_a_broken_download_leaves_nothing(kind, tmp_path):
    class Broken(httpx.SyncByteStream, httpx.AsyncByteStream):
        def __iter__(self):
            yield b"half"
            raise httpx.ReadError("lost")

        async def __aiter__(self):
            for part in self:
                yield part

    transport = httpx.MockTransport(lambda request: httpx.Response(200, stream=Broken()))
    with connected(kind, transport, check_version=False) as client, pytest.raises(TransportError, match="broke: lost"):
        client.snapshots.download("s", tmp_path / "s.tar")
    assert list(tmp_path.iterdir()) == []


def test_a_reply_that_breaks_off_is_asked_for_again_or_told(kind):
    class Broken(httpx.SyncByteStream, httpx.AsyncByteStream):
        def __iter__(self):
            raise httpx.ReadError("lost")

        async def __aiter__(self):
            raise httpx.ReadError("lost")
            yield b""

    answers = iter([httpx.Response(200, stream=Broken()), httpx.Response(200, json={"version": "1"})])
    transport = httpx.MockTransport(lambda request: next(answers))
    with connected(kind, transport, check_version=False) as client:
        assert client.version() == "1"


def test_what_is_no_reply_of_the_service_is_said(kind):
    transport = httpx.MockTransport(lambda request: httpx.Response(200, content=b"<html>welcome</html>"))
    with connected(kind, transport, check_version=False) as client:
        with pytest.raises(
            UnexpectedReplyError, match=r"^http://test/version: the answer is not that of a CCQ service"
        ):
            client.version()
        with pytest.raises(UnexpectedReplyError) as caught:
            client.delete(["x"])
        assert caught.value.in_doubt
