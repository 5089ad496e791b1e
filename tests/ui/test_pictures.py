"""A search by a picture from the disk, where the collection has an encoder for pictures."""

import base64
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.service.harness import MODEL_FILE, item
from tests.ui.conftest import running, visiting

onnxmodels = pytest.importorskip("tests.service.encoders.onnxmodels", reason="makes ONNX models: pip install onnx")


@pytest.fixture
def seeing(tmp_path):
    """A server with an encoder of pictures, and a collection that has it."""
    onnxmodels.write_image_model(tmp_path / "image.onnx", 8)
    encoders = tmp_path / "encoders.toml"
    encoders.write_text("[photos]\nkind = 'onnx-image'\nmodel = 'image.onnx'\nsize = 8\n")
    with running(tmp_path / "data", CCQ_ENCODERS=str(encoders)) as server:
        server.client.put("/models/m", content=MODEL_FILE).raise_for_status()
        server.client.put("/collections/c", json={"model": "m", "encoders": {"image": "photos"}}).raise_for_status()
        server.client.post("/collections/c/index", json={"items": [item(i) for i in range(30)]}).raise_for_status()
        yield server


def picture():
    from tests.service.encoders.test_onnx import png  # which needs what this file may be skipped without

    return png(np.full((20, 30, 3), (200, 30, 30), np.uint8))


def test_a_picture_is_searched_by_and_long_queries_stay_out_of_the_address(browser, seeing):
    with visiting(browser, seeing.url) as visit:
        page = visit.open("#/search?collection=c")
        page.get_by_text("Picture", exact=True).click()
        page.get_by_label("Picture", exact=True).last.set_input_files(
            {"name": "red.png", "mimeType": "image/png", "buffer": picture()}
        )
        page.get_by_role("button", name="Search", exact=True).click()
        column = page.locator("[data-database=text]")
        expect(column.locator(".card")).to_have_count(12)
        query = {"image": {"base64": base64.b64encode(picture()).decode()}}
        body = {"query": query, "database": "text", "limit": 12}
        hits = seeing.client.post("/collections/c/search", json=body).json()["results"]
        assert column.locator(".title").all_inner_texts() == [hit["id"] for hit in hits]
        assert len(page.url) < 200
        column.get_by_role("button", name="More").click()
        expect(column.locator(".card")).to_have_count(24)
        page.get_by_label("Limit").fill("3")  # the picture is still there
        page.get_by_role("button", name="Search", exact=True).click()
        expect(column.locator(".card")).to_have_count(3)
        assert re.search("by=picture", page.url)
