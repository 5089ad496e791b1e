"""Pages of elsewhere, which a browser on the same machine lets ask a server without keys."""

import pytest

from tests.service.harness import InProcess, assert_problem
from tests.service.test_access import SCOPES, ask, bearer, create_key

ELSEWHERE = "https://evil.example"


@pytest.fixture
def make(tmp_path):
    """A server with a collection, with settings."""
    made = []

    def start(**settings):
        service = InProcess(tmp_path / "data", **settings)
        made.append(service)
        service.create()
        return service

    yield start
    for service in made:
        service.close()


def listed(service, **headers):
    return service.get("/items", headers=headers)


@pytest.mark.parametrize(("method", "path"), SCOPES)
def test_every_route_refuses_them(make, method, path):
    service = make()
    assert_problem(ask(service, method, path, {"Origin": ELSEWHERE}), 403, "foreign_origin")
    assert_problem(ask(service, method, path, {"Host": "evil.example"}), 403, "foreign_origin")
    assert service.ok("GET", "/snapshots")["snapshots"] == []


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8000", "ccq", "app.localhost:1", "127.0.0.1:8000", "192.168.1.7", "[::1]:8000", ""]
)
def test_names_that_nobody_else_can_have(make, host):
    assert listed(make(), host=host).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example", "a.b.", "[x"]
)
def test_names_that_lead_here_by_chance_or_by_malice(make, host):
    service = make()
    problem = assert_problem(listed(service, host=host), 403, "foreign_origin")
    assert host in problem["detail"]
    assert "ccq keys create" in problem["detail"]


@pytest.mark.parametrize("origin", [ELSEWHERE, "null", "http://localhost:9000", "http://localhost", "http://[x"])
def test_origins_of_other_pages(make, origin):
    problem = assert_problem(listed(make(), host="localhost:8000", origin=origin), 403, "foreign_origin")
    assert origin in problem["detail"]
    assert "CCQ_CORS_ORIGINS" in problem["detail"]


def test_pages_of_its_own(make):
    assert listed(make(), host="localhost:8000", origin="http://LOCALHOST:8000").status_code == 200


def test_origins_that_are_named(make):
    service = make(cors_origins=["https://app.example"])
    assert listed(service, host="localhost:8000", origin="https://app.example").status_code == 200
    assert listed(service, host="app.example", origin="https://app.example").status_code == 200
    assert_problem(listed(service, host="localhost:8000", origin=ELSEWHERE), 403, "foreign_origin")
    assert_problem(listed(service, host="other.app.example"), 403, "foreign_origin")


def test_any_origin(make):
    assert listed(make(cors_origins=["*"]), host="evil.example", origin=ELSEWHERE).status_code == 200


def test_a_server_that_anyone_may_call_is_not_for_pages_of_elsewhere(make):
    service = make(open=True)
    assert listed(service, host="search.corp.example").status_code == 200
    assert_problem(listed(service, host="search.corp.example", origin=ELSEWHERE), 403, "foreign_origin")


def test_with_keys_it_is_keys_that_count(make, tmp_path):
    secret = create_key(tmp_path / "data", "k", "search", "admin")
    service = InProcess(tmp_path / "data")
    try:
        service.client.headers.update(bearer(secret))
        service.create()
        assert listed(service, host="evil.example", origin=ELSEWHERE).status_code == 200
    finally:
        service.close()


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/version", "/ui/"])
def test_what_tells_nothing_is_for_anyone(make, path):
    assert make().get(path, headers={"host": "evil.example", "origin": ELSEWHERE}).status_code == 200
