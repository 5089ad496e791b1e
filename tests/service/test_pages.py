"""The pages for people, as files: who gets them, under which rules, and that they need nothing from elsewhere."""

import re
from pathlib import Path

import pytest

from service.routes import pages
from tests.service.harness import InProcess, assert_problem
from tests.service.test_access import create_key

UI = Path(pages.__file__).parents[1] / "ui"
SCRIPTS = sorted(UI.rglob("*.js"))
FILES = sorted(path for path in UI.rglob("*") if path.is_file())


@pytest.fixture
def without(tmp_path):
    service = InProcess(tmp_path / "data", ui=False)
    yield service
    service.close()


def policy(response):
    given = response.headers["content-security-policy"]
    return dict(part.split(" ", 1) for part in given.split("; "))


def test_the_dashboard_is_served_with_a_strict_policy(bare):
    response = bare.get("/ui/")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    rules = policy(response)
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == rules["frame-ancestors"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == "'self'"
    assert rules["img-src"] == "'self' data:"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["referrer-policy"] == "no-referrer"
    assert "set-cookie" not in response.headers


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.relative_to(UI).as_posix())
def test_every_file_is_served_as_what_it_is(bare, file):
    response = bare.get(f"/ui/{file.relative_to(UI).as_posix()}")
    assert response.content == file.read_bytes()
    kinds = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}
    assert response.headers["content-type"].split(";")[0] == kinds[file.suffix]


def test_a_browser_that_has_a_file_gets_it_once(bare):
    first = bare.get("/ui/js/main.js")
    assert first.headers["cache-control"] == "no-cache"
    again = bare.get("/ui/js/main.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
    assert bare.get("/ui/js/main.js", headers={"If-None-Match": '"another"'}).status_code == 200
    assert bare.get("/ui/js/api.js").headers["etag"] != first.headers["etag"]
    assert bare.request("HEAD", "/ui/").status_code == 200


@pytest.mark.parametrize(
    "name", ["nothing.js", "../app.py", "%2e%2e/app.py", "js", "js/", "js//main.js", "/etc/passwd"]
)
def test_what_is_no_file_of_the_dashboard_is_not_there(bare, name):
    assert_problem(bare.get(f"/ui/{name}"), 404, "route_not_found")


@pytest.mark.parametrize(("accept", "place"), [("text/html,*/*;q=0.8", "ui/"), ("*/*", "docs"), ("", "docs")])
def test_people_are_shown_the_dashboard_and_programs_the_description(bare, accept, place):
    response = bare.get("/", headers={"Accept": accept})
    assert (response.status_code, response.headers["location"]) == (307, place)
    assert bare.get("/ui").headers["location"] == "ui/"


def test_without_a_dashboard_there_is_none(without):
    assert_problem(without.get("/ui"), 404, "route_not_found")
    assert_problem(without.get("/ui/"), 404, "route_not_found")
    assert without.get("/", headers={"Accept": "text/html"}).headers["location"] == "docs"
    assert without.get("/docs").status_code == 200


def test_files_need_no_key_and_the_api_does(tmp_path):
    create_key(tmp_path / "data", "web", "search")
    service = InProcess(tmp_path / "data")
    try:
        for path in ("/ui/", "/ui/js/main.js", "/docs", "/docs/start.js"):
            assert service.get(path).status_code == 200
        assert_problem(service.get("/caller"), 401, "unauthenticated")
    finally:
        service.close()


def test_the_description_takes_all_it_needs_from_here(bare):
    page = bare.get("/docs")
    assert policy(page)["script-src"] == "'self'"
    named = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert {name.split("/")[0] for name in named} == {"data:,", "docs"}
    for name in named:
        if not name.startswith("data:"):
            assert bare.get(f"/{name}").status_code == 200


def test_callers_are_told_who_they_are(tmp_path):
    secret = create_key(tmp_path / "data", "web", "search", "write", collections=("c",))
    service = InProcess(tmp_path / "data")
    try:
        told = service.get("/caller", headers={"X-API-Key": secret}).json()
    finally:
        service.close()
    assert told == {"name": "web", "scopes": ["search", "write"], "collections": ["c"]}


def test_anyone_may_do_anything_without_keys(bare):
    assert bare.ok("GET", "/caller") == {"name": "anyone", "scopes": ["admin"], "collections": None}


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda path: path.name)
def test_scripts_turn_nothing_into_html_or_code(file):
    text = file.read_text(encoding="utf-8")
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|srcdoc|parseFromString", text
    )
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert len(text.splitlines()) <= 250
    for name in re.findall(r'(?:from |import\()"([^"]+)"', text):
        assert (file.parent / name).is_file(), name
