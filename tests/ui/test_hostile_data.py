"""What is in ids and payloads is shown as text: it runs nowhere, loads nothing from elsewhere, and breaks no page."""

import pytest
from playwright.sync_api import expect

from tests.ui.conftest import emoji_item, running, visiting

SCRIPT = '<script>window.hit = 1</script><img src="x" onerror="window.hit = 1">'
SVG = "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' onload='window.hit = 1'/>"
TURNED = "‮txt.exe‭ and ⁦more"
LONG = "lang" * 3000
PAYLOADS = {
    SCRIPT: {"name": SCRIPT, "glyph": "<b>", "group": SCRIPT, "nested": [{SCRIPT: SCRIPT}]},
    f"id {TURNED}": {"title": TURNED, "text": "ordinary"},
    "i" * 512: {"title": LONG, "glyph": LONG},
    "a/b?c#d&e=%2F%00\n\t'\"": {"name": "odd id"},
    "script-url": {"image": "javascript:window.hit = 1", "name": "script url"},
    "html-data": {"image": "data:text/html,<script>window.hit = 1</script>", "name": "html data"},
    "elsewhere": {"image": "https://elsewhere.example/a.png", "name": "elsewhere"},
    "scheme-less": {"url": "//elsewhere.example/b.png", "name": "scheme-less"},
    "svg": {"image": SVG, "name": "svg"},
    "own": {"image": "ui/icon.svg", "name": "own picture"},
    "odd": {"__proto__": {"name": "x"}, "name": None, "title": {"a": 1}, "image": 7},
    "no-payload": None,
    "🙈": {"emoji": "🙈" * 40, "name": ""},
}

POINTERS = [
    ('{"a": [1, {"b/c": "x,]}"}, 3]}', "/a/1/b~1c", '"x,]}"'),
    ('{"a": [1, {"b": [ ] }, 3]}', "/a/2", "3"),
    ('[{"q\\"": {"~": -1.5e3 }}]', '/0/q"/~0', "-1.5e3"),
    ('{"must": []}', "/must", "[]"),
    (' {"a": true} ', "", '{"a": true}'),
    ('{"a": {"b": 1}, "b": 2}', "/b", "2"),
    ('{"a": [1]}', "/a/b/c", "[1]"),
    ('{"a": [1]}', "/b", '{"a": [1]}'),
]


@pytest.fixture(scope="module")
def hostile(emoji, tmp_path_factory):
    items, model = emoji
    with running(tmp_path_factory.mktemp("hostile") / "data") as server:
        server.client.put("/models/m", content=model.to_bytes()).raise_for_status()
        server.client.put("/collections/c", json={"model": "m"}).raise_for_status()
        bodies = [
            {**emoji_item(items, i), "id": id_, "payload": held} for i, (id_, held) in enumerate(PAYLOADS.items())
        ]
        server.client.post("/collections/c/index", json={"items": bodies}).raise_for_status()
        yield server


def test_nothing_of_it_runs_or_breaks_a_page(browser, hostile):
    with visiting(browser, hostile.url, viewport={"width": 700, "height": 900}) as visit:
        page = visit.open("#/search?collection=c")
        expect(page.locator(".tile")).to_have_count(len(PAYLOADS))
        page.locator(".tile").first.click()
        expect(page.locator("[data-database=pair] .card")).to_have_count(12)
        for details in page.locator("[data-database=pair] .card summary").all():
            details.click()
        expect(page.locator("[data-database=pair] pre")).to_have_count(12)
        unsound(page)
        for id_ in PAYLOADS:
            page.evaluate("id => { location.hash = `#/collections/c/items/${encodeURIComponent(id)}` }", id_)
            expect(page.locator("main dl code")).to_have_text(id_, use_inner_text=False)
            visit.settle()
            unsound(page)
        page = visit.open("#/collections/c")
        page.get_by_text("points as a table").click()
        unsound(page)


def unsound(page):
    """Nothing has run, nothing is wider than the page, and no element came out of data."""
    assert page.evaluate("window.hit") is None
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    assert page.locator("main script, main iframe, main b, main img[onerror]").count() == 0
    links = page.locator("main a").evaluate_all("all => all.map(one => one.protocol)")
    assert set(links) <= {"http:", "https:"}


def test_pictures_are_shown_from_here_alone(browser, hostile):
    with visiting(browser, hostile.url) as visit:
        page = visit.open("#/search?collection=c")
        expect(page.locator(".tile img")).to_have_count(2)
        shown = page.locator(".tile img").evaluate_all("all => all.map(one => one.src)")
        assert sorted(source[:22] for source in shown) == ["data:image/svg+xml,<sv", f"{hostile.url}/ui/icon.svg"[:22]]
        page = visit.open("#/collections/c/items/elsewhere")
        link = page.get_by_role("link", name="Image at elsewhere.example")
        expect(link).to_have_attribute("rel", "noopener noreferrer")
        expect(link).to_have_attribute("href", "https://elsewhere.example/a.png")


def test_a_direction_mark_ends_with_its_text(browser, hostile):
    with visiting(browser, hostile.url) as visit:
        page = visit.open("#/search?collection=c")
        title = page.locator(".tile .title", has_text="txt.exe")
        assert title.locator("bdi").count() == 1
        assert title.evaluate("element => getComputedStyle(element.firstChild).unicodeBidi") == "isolate"


def test_values_are_found_by_their_pointers(visit):
    page = visit.open()
    for text, pointer, expected in POINTERS:
        found = page.evaluate(
            "async ([text, pointer]) => { const { locate } = await import('./js/pointer.js');"
            " return text.slice(...locate(text, pointer)) }",
            [text, pointer],
        )
        assert found == expected, pointer
