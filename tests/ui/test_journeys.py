"""What people do with the dashboard, from the first look to the end of a training."""

import json
import re

import httpx
import pytest
from playwright.sync_api import expect

from tests.service.test_access import create_key
from tests.ui.conftest import as_float32, emoji_item, fill, running, visiting


def ids(page, database):
    """Names of the results in a column."""
    return page.locator(f"[data-database={database}] .card .title").all_inner_texts()


def test_look_around_click_one_and_see_what_is_alike(visit, server, emoji):
    items, _ = emoji
    page = visit.open()
    expect(page.get_by_role("heading", name="Search", level=1)).to_be_visible()
    expect(page.locator(".tile")).to_have_count(60)
    expect(page.locator(".tile .glyph").first).to_have_text(items.glyphs[0])
    page.get_by_role("link", name=items.names[3], exact=True).click()
    expect(page.locator(".query-item")).to_contain_text(items.names[3])
    expect(page.locator(".card")).to_have_count(36)
    for database in ("image", "text", "pair"):
        body = {"query_id": "emoji-3", "database": database, "limit": 12}
        hits = httpx.post(f"{server.url}/collections/emoji/search", json=body).json()["results"]
        assert ids(page, database) == [hit["payload"]["name"] for hit in hits]
    assert "item=emoji-3" in page.url
    page.go_back()
    expect(page.locator(".tile")).to_have_count(60)


def test_words_are_typed_and_pictures_found(visit, server):
    page = visit.open("#/collections")
    page.get_by_label("Name").fill("by-words")
    page.get_by_label("Encoder of text").select_option("emoji")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_text("text: emoji")).to_be_visible()
    page = visit.open("#/search?collection=emoji")
    page.get_by_label("Words", exact=True).last.fill("red fruit")
    page.keyboard.press("Enter")
    expect(page.locator("[data-database=pair] .card")).to_have_count(12)
    body = {"query": {"text": {"text": "red fruit"}}, "database": "pair", "limit": 12}
    hits = httpx.post(f"{server.url}/collections/emoji/search", json=body).json()["results"]
    assert ids(page, "pair") == [hit["payload"]["name"] for hit in hits]
    assert "words=red+fruit" in page.url


def test_the_description_of_the_api_is_shown_and_loads_nothing_from_elsewhere(visit):
    page = visit.page
    page.goto(f"{visit.url}/docs")
    page.get_by_role("button", name="POST /search", exact=False).first.click()
    expect(page.get_by_role("button", name="Try it out")).to_be_visible()


def test_a_collection_that_is_being_loaded_is_shown_once_it_is(visit):
    asked = []

    def loading_first(route):
        reply = route.fetch()
        body = reply.json()
        asked.append(route.request.url)
        if len(asked) < 3:
            for one in body["collections"]:
                one.update(state="loading", items=None, databases=None, code_bytes=None)
        route.fulfill(response=reply, json=body)

    visit.page.route("**/collections", loading_first)
    page = visit.open("#/search?collection=emoji")
    expect(page.get_by_text("It is still being loaded.")).to_be_visible()
    expect(page.locator(".tile")).to_have_count(60)


def test_more_results_come_page_by_page(visit):
    page = visit.open("#/search?collection=emoji&by=item&item=emoji-3&database=text&limit=5")
    column = page.locator("[data-database]")
    expect(column).to_have_count(1)
    expect(column.locator(".card")).to_have_count(5)
    column.get_by_role("button", name="More").click()
    expect(column.locator(".card")).to_have_count(10)
    assert len(set(ids(page, "text"))) == 10
    assert re.search(r"10 in [\d.]+ ms", column.inner_text())


def test_features_are_pasted_and_a_filter_holds(visit, server, emoji):
    items, _ = emoji
    page = visit.open("#/search?collection=emoji&by=features")
    page.get_by_label("Features of text").fill(json.dumps(as_float32(items.features["text"][7])))
    page.get_by_label("Features of image").fill(emoji_item(items, 8)["features"]["image"])
    page.get_by_text("Filter", exact=True).click()
    page.get_by_label("Filter, as JSON").fill('{"must": [{"key": "group", "match": {"value": "Animals & Nature"}}]}')
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator("[data-database=image] .card")).to_have_count(12)
    body = {
        "query": {name: emoji_item(items, row)["features"][name] for name, row in (("text", 7), ("image", 8))},
        "filter": {"must": [{"key": "group", "match": {"value": "Animals & Nature"}}]},
        "database": "image",
        "limit": 12,
    }
    hits = httpx.post(f"{server.url}/collections/emoji/search", json=body).json()["results"]
    assert ids(page, "image") == [hit["payload"]["name"] for hit in hits]


def test_faults_are_shown_where_they_are(visit):
    visit.refusals = True
    page = visit.open("#/search?collection=emoji&by=item&item=emoji-3")
    page.get_by_text("Filter", exact=True).click()
    box = page.get_by_label("Filter, as JSON")
    box.fill('{"must": [{"key": "a", "exists": true}, {"key": "group", "match": {"valu": "x"}}]}')
    page.get_by_role("button", name="Search", exact=True).click()
    fault = page.locator(".fault", has_text="/must/1/match/valu").first
    expect(fault.locator("mark")).to_have_text('"x"')
    expect(page.get_by_label("Filter, as JSON")).to_have_attribute("aria-invalid", "true")
    page.get_by_label("Filter, as JSON").fill("{")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator(".fault", has_text="This is no JSON").first).to_be_visible()
    visit.open("#/search?collection=emoji&by=features&features.image=%5B1%2C2%5D")
    expect(page.get_by_role("alert").filter(has_text="expected 128 numbers, got 2").first).to_be_visible()
    page.get_by_label("Features of text").fill("[1, 2")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator(".fault", has_text="Features of text: expected a JSON list of numbers")).to_be_visible()
    visit.open("#/collections/nowhere")
    expect(page.get_by_role("heading", name="There is nothing here")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("There is no such collection")
    page.get_by_role("link", name="To the collections").click()
    expect(page.get_by_role("heading", name="Collections", level=1)).to_be_visible()


def test_a_search_is_copied_as_a_curl_command(browser, server):
    with visiting(browser, server.url, permissions=["clipboard-read", "clipboard-write"]) as visit:
        page = visit.open("#/search?collection=emoji&by=item&item=emoji-3&database=image")
        page.get_by_role("button", name="Copy as curl").click()
        expect(page.get_by_text("on the clipboard")).to_be_visible()
        command = page.evaluate("navigator.clipboard.readText()")
    assert command.startswith(f"curl -s '{server.url}/collections/emoji/search'")
    assert json.loads(re.search("-d '(.*)'", command)[1]) == {"query_id": "emoji-3", "limit": 12, "database": "image"}


def test_a_training_is_started_and_watched_to_its_end(visit, server):
    page = visit.open("#/jobs")
    page.get_by_label("Name of the new model").fill("trained")
    page.get_by_label("Bits").select_option("8")
    page.get_by_label("Most iterations").fill("3")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("heading", name="Train trained")).to_be_visible()
    expect(page.locator("#job .pill")).to_have_text("done", timeout=40_000)
    expect(page.get_by_text("Held-out quality").first).to_be_visible()
    nearest = page.get_by_role("table", name="Neighbours by the features themselves")
    expect(nearest.get_by_role("row")).to_have_count(3)
    expect(nearest.get_by_role("cell", name=re.compile(r"\d+\.\d %"))).to_have_count(8)
    page.get_by_role("link", name="trained", exact=True).click()
    expect(page.get_by_role("img", name="Training loss")).to_be_visible()
    expect(page.get_by_text("image → text")).to_be_visible()
    loss = httpx.get(f"{server.url}/models/trained").json()["losses"]
    expect(page.get_by_role("img", name="Training loss")).to_have_accessible_name(re.compile(f"to {loss[-1]:.3f} "))


def test_an_item_page_shows_all_of_it_and_deletes_it(visit, server, emoji):
    items, _ = emoji
    row = len(items.glyphs) - 1
    page = visit.open(f"#/collections/emoji/items/emoji-{row}")
    expect(page.get_by_role("heading", name=items.names[row], level=1)).to_be_visible()
    expect(page.locator("[data-database=text] .card")).to_have_count(8)
    expect(page.locator("pre").first).to_contain_text(items.groups[row])
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert httpx.get(f"{server.url}/collections/emoji/items/emoji-{row}").status_code == 200
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("The item was deleted.")).to_be_visible()
    assert httpx.get(f"{server.url}/collections/emoji/items/emoji-{row}").status_code == 404


def test_collections_are_made_and_deleted_by_their_typed_name(visit, server):
    page = visit.open("#/collections")
    page.get_by_label("Name").fill("toys")
    page.get_by_label("Model").select_option("other")
    page.get_by_label("Keep").select_option("int8")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="toys ready")).to_be_visible()
    assert httpx.get(f"{server.url}/collections/toys").json()["keep"] == "int8"
    page.get_by_label("New alias").fill("playthings")
    page.get_by_role("button", name="Let it lead here").click()
    remove = page.get_by_role("button", name="Remove playthings")
    expect(remove).to_be_visible()
    remove.click()
    expect(remove).to_have_count(0)
    page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    go = dialog.get_by_role("button", name="Delete")
    expect(go).to_be_disabled()
    dialog.get_by_label("Type toys to go on").fill("toy")
    expect(go).to_be_disabled()
    page.keyboard.press("Enter")
    assert httpx.get(f"{server.url}/collections/toys").status_code == 200
    dialog.get_by_label("Type toys to go on").fill("toys")
    go.click()
    expect(page.get_by_role("heading", name="Collections")).to_be_visible()
    assert httpx.get(f"{server.url}/collections/toys").status_code == 404


def test_models_are_uploaded_downloaded_and_deleted(visit, server, emoji):
    _, model = emoji
    page = visit.open("#/models")
    page.get_by_label("Model file").set_input_files(
        {"name": "again.ccq", "mimeType": "application/octet-stream", "buffer": model.to_bytes()}
    )
    expect(page.get_by_label("Name")).to_have_value("again")
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("heading", name="again")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == "again.ccq"
    assert download.value.path().read_bytes() == model.to_bytes()
    page.get_by_role("button", name="Delete").click()
    page.get_by_label("Type again to go on").fill("again")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("The model was deleted.")).to_be_visible()
    assert httpx.get(f"{server.url}/models/again").status_code == 404


def test_a_collection_is_encoded_anew(visit, server):
    page = visit.open("#/collections/emoji")
    page.get_by_label("Model").select_option("other")
    page.get_by_role("button", name="Start").click()
    expect(page.locator("#job .pill")).to_have_text("done", timeout=20_000)
    assert httpx.get(f"{server.url}/collections/emoji").json()["model"] == "other"


def test_the_map_leads_to_items(visit):
    page = visit.open("#/collections/emoji")
    canvas = page.get_by_role(
        "application", name=re.compile("Map of 2,000 codes of emoji, in databases image, text, pair")
    )
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    tip = page.locator(".tip")
    for step in range(1, 40):  # from corner to corner, until a point is near
        page.mouse.move(box["x"] + box["width"] * step / 40, box["y"] + box["height"] * (1 - step / 40))
        if tip.is_visible():
            break
    expect(tip).to_be_visible()
    page.mouse.down()
    page.mouse.up()
    expect(page.get_by_role("heading", name="Payload")).to_be_visible()
    assert "#/collections/emoji/items/emoji-" in page.url


def test_snapshots_are_made_and_deleted(visit, server):
    page = visit.open("#/server")
    expect(page.get_by_text("There is no snapshot yet.")).to_be_visible()
    page.get_by_role("button", name="Make a snapshot").click()
    expect(page.get_by_text("The snapshot is complete.")).to_be_visible()
    (snapshot,) = httpx.get(f"{server.url}/snapshots").json()["snapshots"]
    row = page.get_by_role("row", name=snapshot["name"])
    row.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)
    assert httpx.get(f"{server.url}/snapshots").json()["snapshots"] == []


def test_a_search_takes_no_mouse(visit):
    page = visit.open("#/search?collection=emoji&by=item")
    page.keyboard.press("Tab")
    expect(page.locator("#skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    assert page.url.endswith("by=item")  # `#main` is no address of a page
    page.get_by_label("Id of an item").focus()
    page.keyboard.type("emoji-9")
    page.keyboard.press("Enter")
    expect(page.locator("[data-database=pair] .card")).to_have_count(12)


@pytest.fixture
def guarded(tmp_path, emoji):
    """A server that wants a key, which may search alone; and its key."""
    items, model = emoji
    data = tmp_path / "data"
    create_key(data, "boss", "admin")
    secret = create_key(data, "boss", "admin")
    seeker = create_key(data, "seeker", "search")
    with running(data) as server:
        server.client.headers["Authorization"] = f"Bearer {secret}"
        fill(server.client, items, model, 30)
        yield server, secret, seeker


def test_sign_in_search_sign_out(browser, guarded):
    server, _, seeker = guarded
    with visiting(browser, server.url) as visit:
        visit.refusals = True
        page = visit.open("#/collections/emoji")
        box = page.get_by_label("API key")
        expect(box).to_be_focused()
        box.fill("ccq_wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("one that it does not know")
        page.get_by_label("API key").fill(seeker)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", name="emoji ready")).to_be_visible()
        expect(page.get_by_text("Signed in as seeker")).to_be_visible()
        expect(page.get_by_role("button", name="Delete")).to_have_count(0)
        assert page.evaluate("sessionStorage.length") == 1
        assert page.evaluate("document.cookie + localStorage.length") == "0"
        expect(page.get_by_role("navigation").get_by_role("link")).to_have_text(
            ["Search", "Collections", "Models", "Server"]
        )
        visit.open("#/jobs")
        expect(page.get_by_role("heading", name="This page is not for this key")).to_be_visible()
        expect(page.get_by_role("alert")).to_contain_text("expected an API key with scope admin")
        page.get_by_role("button", name="Sign in with another key").click()
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        page.get_by_label("API key").fill(seeker)
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        assert page.evaluate("sessionStorage.length") == 0
        assert not [url for url in visit.requests if seeker in url]


def test_files_are_downloaded_with_a_key(browser, guarded, emoji):
    server, boss, _ = guarded
    with visiting(browser, server.url) as visit:
        visit.refusals = True
        page = visit.open("#/models/small")
        page.get_by_label("API key").fill(boss)
        page.keyboard.press("Enter")
        page.evaluate("delete window.showSaveFilePicker")  # it would ask the system, which nobody answers here
        with page.expect_download() as download:
            page.get_by_role("link", name="Download").click()
        assert download.value.path().read_bytes() == emoji[1].to_bytes()
