"""Requests are sent again where that helps, are done once all the same, and end within their time. Nothing sleeps."""

import email.utils
import json
import warnings

import httpx
import pytest

from ccq_client import (
    ApiError,
    Client,
    InputError,
    Retries,
    TransportError,
    TransportTimeoutError,
    UnexpectedReplyError,
    VersionWarning,
    __version__,
    errors,
)
from tests.client.kinds import StoppedClock, Watched, app_transport, connected
from tests.service.harness import MODEL_FILE, PAIRS

READY = httpx.Response(200, json={"status": "ready"})
DELETED = httpx.Response(200, json={"deleted": 3, "took_ms": 1.0})


def refused(status, code, **headers):
    body = {"code": code, "title": "It is so", "detail": "why", "status": status, "request_id": "r", "errors": []}
    return httpx.Response(status, json=body, headers=headers)


class Script:
    """Answers with each of these in turn, where an exception is raised; the last one answers all that come after."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []

    def __call__(self, request):
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)


@pytest.fixture
def ask(kind):
    """Run a verb against a script; gives its result or error, and the clock."""

    def run(verb, script, luck=1.0, **retries):
        clock = StoppedClock(luck)
        options = {"retries": Retries(**retries, clock=clock), "check_version": False}
        with connected(kind, httpx.MockTransport(script), **options) as client:
            try:
                return verb(client), clock
            except Exception as error:
                return error, clock

    return run


def version(client):
    return client.version()


def delete(client):
    return client.delete(["a"])


VERSION = httpx.Response(200, json={"version": "9", "new": 1})


@pytest.mark.parametrize(
    "failure",
    [
        httpx.ConnectError("refused"),
        httpx.ConnectTimeout("slow"),
        httpx.ReadError("reset"),
        httpx.ReadTimeout("slow"),
        httpx.RemoteProtocolError("gone"),
        refused(429, "too_many"),
        refused(503, "overloaded"),
        refused(503, "collection_loading"),
        refused(507, "memory", **{"Retry-After": "1"}),
        httpx.Response(502, content=b"<html>"),
        httpx.Response(504, content=b"<html>"),
    ],
)
def test_what_passes_is_tried_again(ask, failure):
    for verb, answer in ((version, VERSION), (delete, DELETED)):
        script = Script(failure, failure, answer)
        result, clock = ask(verb, script)
        assert not isinstance(result, Exception), result
        assert (len(script.requests), len(clock.waits)) == (3, 2)
        keys = {request.headers.get("Idempotency-Key") for request in script.requests}
        assert len(keys) == 1
        assert (keys == {None}) == (verb is version)
        assert len({request.content for request in script.requests}) == 1


@pytest.mark.parametrize(
    "failure",
    [
        refused(404, "item_not_found"),
        refused(422, "invalid_request"),
        refused(500, "internal_error"),
        refused(503, "collection_failed"),
        refused(507, "storage_full"),
        httpx.UnsupportedProtocol("what"),
        httpx.Response(200, content=b"<html>welcome</html>"),
        httpx.Response(200, content=b"[]"),
        httpx.Response(200, content=b"{}"),
        httpx.Response(204),
    ],
)
def test_what_does_not_pass_is_not(ask, failure):
    script = Script(failure)
    result, clock = ask(version, script)
    assert isinstance(result, (ApiError, TransportError, UnexpectedReplyError))
    assert "test" in str(result) or "It is so: why" in str(result)
    assert (len(script.requests), clock.waits) == (1, [])


def test_waits_grow_and_are_bounded(ask):
    script = Script(httpx.ConnectError("refused"))
    result, clock = ask(version, script, times=6, first=0.5, longest=4)
    assert clock.waits == [0.5, 1, 2, 4, 4, 4]
    assert isinstance(result, TransportError)
    assert (
        str(result) == "no service answers at http://test: refused; start one with `ccq serve`, or give another address"
    )
    assert not result.in_doubt
    assert isinstance(result.__cause__, httpx.ConnectError)
    _, clock = ask(version, script, luck=0.25, times=6, first=0.5, longest=4)
    assert clock.waits == [0.125, 0.25, 0.5, 1, 1, 1]
    _, clock = ask(version, script, times=2000, first=1e-9, longest=1e-9, total=1e9)
    assert len(clock.waits) == 2000  # 2 ** 2000 is no float


def test_it_ends_within_its_time(ask):
    _, clock = ask(version, Script(httpx.ConnectError("refused")), times=1000, first=1, longest=8, total=30)
    assert clock.waits == [1, 2, 4, 8, 8]


@pytest.mark.parametrize("header", ["7", "date"])
def test_the_service_says_how_long_to_wait(ask, header):
    clock = StoppedClock()
    value = email.utils.formatdate(clock.date() + 7, usegmt=True) if header == "date" else header
    script = Script(refused(503, "overloaded", **{"Retry-After": value}), VERSION)
    _, clock = ask(version, script, luck=0.5, first=0.2)
    assert clock.waits == [pytest.approx(7.1, abs=1e-6)]
    result, clock = ask(version, Script(refused(503, "overloaded", **{"Retry-After": value})), total=6)
    assert (result.retry_after, clock.waits) == (pytest.approx(7), [])


@pytest.mark.parametrize(
    "header", ["", "soon", "-3", "1e999", "Fri, 99 Foo 2026 25:00:00 GMT", "Wed, 21 Oct 2015 07:28:00 GMT"]
)
def test_a_strange_retry_after_does_no_harm(ask, header):
    script = Script(refused(503, "overloaded", **{"Retry-After": header}), VERSION)
    result, clock = ask(version, script)
    assert result == "9"
    assert 0 <= clock.waits[0] <= 0.2


@pytest.mark.parametrize("retries", [0, None])
def test_retries_can_be_turned_off(kind, retries):
    script = Script(httpx.ConnectError("refused"))
    options = {"retries": retries, "check_version": False}
    with connected(kind, httpx.MockTransport(script), **options) as client, pytest.raises(TransportError):
        client.version()
    assert len(script.requests) == 1


def test_what_must_not_be_done_twice_is_tried_again_only_if_it_was_not_done(ask):
    made = {"name": "s", "size": 1, "checksum": "c", "created": "2026-01-01T00:00:00Z", "collections": {}}
    answer = httpx.Response(201, json=made)
    for failure, again in (
        (httpx.ConnectError("refused"), True),
        (refused(503, "overloaded"), True),
        (httpx.ReadTimeout("slow"), False),
        (refused(503, "timeout"), False),
    ):
        script = Script(failure, answer)
        result, _ = ask(lambda client: client.snapshots.create(), script)
        assert len(script.requests) == (2 if again else 1), failure
        assert isinstance(result, Exception) != again
        posted = Script(failure, answer)
        ask(lambda client: client.request("POST", "/x", {}), posted)
        assert len(posted.requests) == (2 if again else 1)
        keyed = Script(failure, answer)
        ask(lambda client: client.request("POST", "/x", {}, headers={"Idempotency-Key": "k"}), keyed)
        assert len(keyed.requests) == 2


def test_timeouts_say_whether_the_request_arrived(ask):
    result, _ = ask(version, Script(httpx.ReadTimeout("slow")), times=0)
    assert isinstance(result, TransportTimeoutError)
    assert isinstance(result, TimeoutError)
    assert (str(result), result.in_doubt) == ("http://test did not answer in time", True)
    result, _ = ask(version, Script(httpx.ConnectTimeout("slow")), times=0)
    assert (str(result), result.in_doubt) == ("http://test could not be reached in time", False)


def test_doubt_outlasts_later_refusals(ask):
    result, _ = ask(delete, Script(httpx.ReadTimeout("slow"), httpx.ConnectError("refused")))
    assert result.in_doubt
    assert isinstance(result, TransportError)


@pytest.fixture
def lossy(kind, tmp_path):
    """A client of a service whose every first answer is lost on its way, and the requests that it sent."""
    seen = {}

    def lose(request, response):
        place = (request.method, request.url.path, request.headers.get("Idempotency-Key"))
        seen[place] = seen.get(place, 0) + 1
        if seen[place] == 1 and request.method != "GET":
            raise httpx.ReadError("lost")

    transport = Watched(app_transport(kind, tmp_path / "data"), lose)
    with connected(kind, transport, retries=Retries(clock=StoppedClock())) as client:
        client.models.upload("tiny", MODEL_FILE)
        client.collections.create("default", "tiny")
        yield client, transport


def test_writes_whose_answers_are_lost_are_done_once(lossy):
    client, transport = lossy
    first = client.index(range(3), {"text": PAIRS["text"][:3]}, if_versions=[0, 0, 0])  # a second time would fail
    assert first.indexed == 3
    assert {item.version for item in client.items()} == {1}
    assert client.set_payload(1, {"a": 1}, if_match=1).version == 2
    assert client.delete([0, 1]).deleted == 2  # a second time there would be none
    client.collections.create("other", "tiny")
    client.collections.delete("other")  # the answer to the second is that there is none
    client.models.upload("spare", MODEL_FILE)
    client.models.delete("spare")
    writes = [request.method for request in transport.requests if request.method != "GET"]
    assert writes.count("DELETE") == 4
    assert [item.id for item in client.items()] == ["2"]


def test_what_is_refused_is_refused_though_its_answer_is_lost(lossy):
    client, _ = lossy
    with pytest.raises(errors.VersionMismatchError):
        client.index([5], {"text": PAIRS["text"][:1]}, if_versions=[3])


def test_a_write_with_a_key_of_ones_own_is_done_once(filled):
    version = filled.get("item-1").version
    first = filled.set_payload("item-1", {"a": 1}, if_match=version, idempotency_key="mine")
    assert filled.set_payload("item-1", {"a": 1}, if_match=version, idempotency_key="mine") == first
    with pytest.raises(errors.IdempotencyKeyReusedError):
        filled.set_payload("item-1", {"a": 2}, if_match=version, idempotency_key="mine")
    assert filled.delete(["item-1"], idempotency_key="other").deleted == 1
    assert filled.delete(["item-1"], idempotency_key="other").deleted == 1


@pytest.mark.parametrize(("version", "warns"), [("0.0.9", True), ("1.1.0", True), ("same", False), ("patch", False)])
def test_another_version_of_the_service_is_warned_of_once(kind, version, warns):
    own = __version__.split(".")
    version = {"same": __version__, "patch": ".".join([*own[:2], "99"])}.get(version, version)
    asked = []

    def answer(request):
        asked.append(request.url.path)
        return httpx.Response(200, json={"version": version, "status": "ready"})

    with connected(kind, httpx.MockTransport(answer)) as client, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert client.ready()
        assert client.ready()
    assert asked == ["/version", "/readyz", "/readyz"]
    assert [found.category for found in caught] == [VersionWarning] * warns
    if warns:
        assert (
            str(caught[0].message)
            == f"the service at http://test is of version {version}, this client of {__version__}"
        )


def test_a_server_that_does_not_tell_its_version_is_asked_no_more(kind):
    script = Script(httpx.Response(404, content=b"no"), READY)
    with connected(kind, httpx.MockTransport(script)) as client:
        assert client.ready()
        assert client.ready()
    assert [request.url.path for request in script.requests] == ["/version", "/readyz", "/readyz"]


def test_not_ready_is_no_error(kind):
    script = Script(refused(503, "not_ready"))
    with connected(kind, httpx.MockTransport(script), check_version=False) as client:
        assert client.ready() is False
    assert len(script.requests) == 1


def test_one_can_wait_until_it_is_ready(kind):
    clock = StoppedClock()
    options = {"retries": Retries(times=1, clock=clock), "check_version": False}
    script = Script(*[httpx.ConnectError("refused")] * 20, *[refused(503, "not_ready")] * 20, READY)
    with connected(kind, httpx.MockTransport(script), **options) as client:
        assert client.wait_until_ready() is None
    assert len(script.requests) == 41
    assert 15 < sum(clock.waits) < 20
    for failure, error in ((httpx.ConnectError("refused"), TransportError), (refused(503, "not_ready"), ApiError)):
        clock.waits.clear()
        with connected(kind, httpx.MockTransport(Script(failure)), **options) as client, pytest.raises(error):
            client.wait_until_ready(7)
        assert 6 < sum(clock.waits) <= 7


def test_requests_say_who_asks(kind, monkeypatch):
    script = Script(READY)
    with connected(kind, httpx.MockTransport(script), api_key="k1", check_version=False) as client:
        client.ready()
    monkeypatch.setenv("CCQ_API_KEY", "k2")
    with connected(kind, httpx.MockTransport(script), check_version=False) as client:
        client.ready()
    assert [request.headers["Authorization"] for request in script.requests] == ["Bearer k1", "Bearer k2"]
    assert script.requests[0].headers["User-Agent"] == f"ccq-client/{__version__}"


def test_the_address_comes_from_the_environment(monkeypatch):
    script = Script(READY)
    monkeypatch.setenv("CCQ_URL", "http://there:9")
    with Client(transport=httpx.MockTransport(script), check_version=False) as client:
        client.ready()
    monkeypatch.delenv("CCQ_URL")
    with Client(transport=httpx.MockTransport(script), check_version=False) as client:
        client.ready()
    assert [str(request.url) for request in script.requests] == [
        "http://there:9/readyz",
        "http://127.0.0.1:8000/readyz",
    ]


def test_what_cannot_be_an_address_or_a_key_is_said_at_once():
    for url in ("http://[::1", "http://host:port"):
        with pytest.raises(TransportError, match=r"^http://"):
            Client(url)
    with pytest.raises(InputError, match="API key"):
        Client(api_key="ключ")
    for url in ("http://a..b", "a..b"):
        with Client(url, retries=None) as client, pytest.raises(TransportError, match="cannot ask"):
            client.version()


def test_a_request_as_it_is_sent():
    hit = {"id": "x", "database": "text", "distance": 0.0, "score": 1.0}
    script = Script(httpx.Response(200, json={"results": [hit], "next_cursor": None, "took_ms": 1}))
    with connected("threads", httpx.MockTransport(script), check_version=False, collection="a b") as client:
        client.search({"text": [1, 2.5]}, limit=3, filter={"must": [{"ids": ["x"]}]})
    request = script.requests[0]
    assert (request.method, request.url.raw_path) == ("POST", b"/collections/a%20b/search")
    assert request.headers["Content-Type"] == "application/json"
    with Client("http://there/base/", transport=httpx.MockTransport(script), check_version=False) as client:
        client.search(by_id="x")
    assert str(script.requests[1].url) == "http://there/base/collections/default/search"
    body = {"query": {"text": "AACAPwAAIEA="}, "limit": 3, "filter": {"must": [{"ids": ["x"]}]}}
    assert json.loads(request.content) == body
