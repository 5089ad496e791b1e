"""Items looked through, on cards and by keyboard; and what is said where a search finds none."""

import re

import httpx
import pytest
from playwright.sync_api import expect

from tests.ui.conftest import emoji_item
from tests.ui.test_accessible import is_wider

BROKEN_TABS = """() => [...document.querySelectorAll(".segments label, nav a")].filter((tab) => {
  const range = document.createRange();
  const words = [...tab.childNodes].filter(({ nodeType }) => nodeType === Node.TEXT_NODE);
  return words.some((node) => (range.selectNodeContents(node), range.getClientRects().length > 1));
}).map(({ innerText }) => innerText)"""
WIDTHS = (400, 560, 720, 900, 1100, 1280, 1600)


@pytest.fixture(scope="module")
def images_only(server, emoji):
    """A collection whose items have no text."""
    items, _ = emoji
    assert httpx.put(f"{server.url}/collections/images-only", json={"model": "small"}).status_code == 201
    bodies = [emoji_item(items, row) for row in range(20)]
    for body in bodies:
        del body["features"]["text"]
    httpx.post(f"{server.url}/collections/images-only/index", json={"items": bodies}).raise_for_status()
    yield "images-only"
    httpx.delete(f"{server.url}/collections/images-only").raise_for_status()


def test_items_are_looked_through_page_by_page(visit, emoji):
    items, _ = emoji
    page = visit.open("#/collections/emoji")
    page.get_by_role("link", name="Items", exact=True).click()
    expect(page.get_by_role("heading", name="Items", level=1)).to_be_visible()
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(50)
    expect(rows.first).to_contain_text(items.names[0])
    expect(rows.first).to_contain_text(f"group: {items.groups[0]}")
    expect(rows.first).to_contain_text("image, text, pair")
    expect(page.get_by_role("status").filter(has_text=f"50 of {len(items.names):,}")).to_be_visible()
    page.get_by_role("button", name="More").click()
    expect(rows).to_have_count(100)
    expect(rows.nth(50).get_by_role("link").first).to_be_focused()
    assert rows.nth(99).locator("code").inner_text() == "emoji-99"
    rows.nth(50).get_by_role("link").first.click()
    expect(page.get_by_role("heading", name="Payload")).to_be_visible()
    assert page.url.endswith("#/collections/emoji/items/emoji-50")
    page.get_by_role("link", name="items", exact=True).click()
    expect(rows).to_have_count(50)


def test_items_without_a_name_are_those_of_the_first_collection(visit):
    page = visit.open("#/items")
    expect(page.locator("tbody tr").first).to_be_visible()
    expect(page.get_by_role("heading", name="Items", level=1)).to_be_visible()


def test_cards_show_the_payload(visit, emoji):
    items, _ = emoji
    page = visit.open("#/search?collection=emoji&by=item&item=emoji-3&database=image")
    card = page.locator(".card").first
    row = items.names.index(card.locator(".title").inner_text())
    expect(card.locator("dt")).to_have_text(["group"])
    expect(card.locator("dd")).to_have_text([items.groups[row]])
    card.get_by_text("Whole payload").click()
    expect(card).to_contain_text('"glyph"')


def test_the_map_is_walked_by_arrows(visit):
    page = visit.open("#/collections/emoji")
    canvas = page.get_by_role("application")
    canvas.focus()
    page.keyboard.press("Enter")  # nothing is chosen yet
    page.keyboard.press("ArrowRight")
    told = page.locator(".map [role=status]")
    expect(told).not_to_be_empty()
    first = told.inner_text()
    page.keyboard.press("ArrowRight")
    expect(told).not_to_have_text(first)
    page.keyboard.press("Escape")
    expect(page.locator(".tip")).to_be_hidden()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Payload")).to_be_visible()


def test_the_table_of_the_map_has_all_its_points(visit):
    page = visit.open("#/collections/emoji")
    page.get_by_text("The points as a table").click()
    place = page.locator("details", has_text="The points as a table")
    expect(place.get_by_text(re.compile("1.50 of 2,000"))).to_be_visible()
    place.get_by_role("button", name="Next").click()
    expect(place.get_by_text(re.compile("51.100 of 2,000"))).to_be_visible()
    expect(place.get_by_role("button", name="Next")).to_be_focused()
    place.get_by_role("button", name="Previous").click()
    expect(place.get_by_role("button", name="Previous")).to_be_disabled()


def test_an_empty_database_says_which_have_items(visit, images_only):
    page = visit.open(f"#/search?collection={images_only}&by=item&item=emoji-3&database=pair")
    column = page.locator("[data-database=pair]")
    expect(column).to_contain_text("image")
    column.get_by_role("link", name="image").first.click()
    expect(page.locator("[data-database=image] .card").first).to_be_visible()


@pytest.mark.parametrize("form", ["{}", "[{}]", "[[{}]]"])
def test_features_may_be_pasted_as_they_are_printed(visit, emoji, form):
    items, _ = emoji
    page = visit.open("#/search?collection=emoji&by=features")
    numbers = " ".join(map(str, items.features["image"][7].tolist()))
    page.get_by_label("Features of image").fill(form.format(numbers))
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator("[data-database=image] .card .title").first).to_have_text(items.names[7])


@pytest.mark.parametrize(
    ("pasted", "words"),
    [
        ("[1, 2", "got one without its end"),
        ("[1, x]", '"x", which is no number'),
        ("[]", "got an empty one"),
        ("a red apple", "To search by words, choose Words above"),
        ("1, 2]", "or base64 of float32"),
    ],
)
def test_what_is_no_features_is_told(visit, pasted, words):
    page = visit.open("#/search?collection=emoji&by=features")
    page.get_by_label("Features of image").fill(pasted)
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator(".fault", has_text=words)).to_be_visible()


def test_tabs_and_pages_fit_every_width(visit):
    """A tab's words stand in one line."""
    for address in ("#/search?collection=emoji&by=features", "#/collections/emoji/items", "#/models/small", "#/jobs"):
        page = visit.open(address)
        for width in WIDTHS:
            assert not is_wider(page, width), (address, width)
            assert page.evaluate(BROKEN_TABS) == [], (address, width)
