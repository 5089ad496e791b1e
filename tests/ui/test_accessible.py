"""For everyone: no serious fault by axe-core on any page, in light and in dark; and room on small and large screens."""

import pytest
from axe_core_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.ui.conftest import visiting

PAGES = {
    "browse": "#/search",
    "search": "#/search?collection=emoji&by=item&item=emoji-3",
    "features": "#/search?collection=emoji&by=features",
    "item": "#/collections/emoji/items/emoji-5",
    "items": "#/collections/emoji/items",
    "collections": "#/collections",
    "collection": "#/collections/emoji",
    "models": "#/models",
    "model": "#/models/small",
    "jobs": "#/jobs",
    "server": "#/server",
    "nothing": "#/nothing/here",
}
SIZE = {"width": 1280, "height": 900}
THEMES = ("light", "dark")


def faults(page, *rules):
    """Serious and critical faults, each with where it is; of all rules, or of these."""
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    found = Axe().run(page, options=options)["violations"]
    serious = [fault for fault in found if fault["impact"] in ("serious", "critical")]
    return [(fault["id"], [node["target"] for node in fault["nodes"]][:3]) for fault in serious]


def is_wider(page, width):
    """Whether the page is wider than a screen of this width."""
    page.set_viewport_size({"width": width, "height": 800})
    return page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious_and_pages_fit(browser, server, theme):
    found = {}
    rules = ["color-contrast"] if theme == "dark" else []  # colours are all that differs
    with visiting(browser, server.url, color_scheme=theme, reduced_motion="reduce", viewport=SIZE) as visit:
        for name, address in PAGES.items():
            found[name] = faults(visit.open(address), *rules)
            assert visit.page.get_by_role("heading", level=1).count() == 1
            assert [width for width in (360, 1600) if is_wider(visit.page, width)] == [], name
            visit.page.set_viewport_size(SIZE)
        page = visit.open("#/collections/emoji")
        page.get_by_role("button", name="Delete").click()
        found["dialog"] = faults(page, *rules)
    assert {name: list_ for name, list_ in found.items() if list_} == {}


@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing_serious_where_something_is_wrong(browser, server, theme):
    with visiting(browser, server.url, color_scheme=theme) as visit:
        visit.refusals = True
        page = visit.open("#/search?collection=emoji&by=item&item=emoji-3&filter=%7B%22must%22%3A%5B1%5D%7D")
        expect(page.locator(".fault mark").first).to_be_visible()
        assert faults(page) == []
        page = visit.open("#/models/nowhere")
        expect(page.get_by_role("alert")).to_be_visible()
        assert faults(page) == []


def test_the_theme_is_chosen_and_kept(browser, server):
    with visiting(browser, server.url, color_scheme="light") as visit:
        page = visit.open()
        ground = "getComputedStyle(document.documentElement).backgroundColor"
        light = page.evaluate(ground)
        page.get_by_role("button", name="Theme: System").click()
        page.get_by_role("button", name="Theme: Light").click()
        expect(page.get_by_role("button", name="Theme: Dark")).to_be_visible()
        assert page.evaluate(ground) != light
        page = visit.open("#/models")
        expect(page.get_by_role("button", name="Theme: Dark")).to_be_visible()
        assert page.evaluate(ground) != light
