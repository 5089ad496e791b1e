"""The dashboard in a real browser, headless, before a real server that holds the emoji."""

import base64
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import numpy as np
import pytest

from ccq_core import CCQ
from ccq_core.datasets import load_emoji
from tests.service.harness import ServerProcess

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser: pip install playwright")

PATIENCE = 30_000  # milliseconds: other tests keep the machine busy
sync_api.expect.set_options(timeout=PATIENCE)

FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
SETTLED = "() => !document.querySelector('[aria-busy]') && document.querySelector('h1') !== null"
REFUSED = re.compile("Failed to load resource: the server responded with a status of 4")


@pytest.fixture(scope="package")
def browser():
    # Not for the whole session: its event loop, which runs meanwhile, would be in the way of others.
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=FLAGS.split())
        yield started
        started.close()


@pytest.fixture(scope="package")
def emoji():
    """All emoji, and a small model of them."""
    items = load_emoji().all
    return items, CCQ(bits=32, iterations=2, effort=0, seed=0).fit(items.features)


def emoji_item(items, row):
    """One emoji to be indexed."""
    features = {
        name: base64.b64encode(array[row].astype("<f4").tobytes()).decode() for name, array in items.features.items()
    }
    payload = {"glyph": items.glyphs[row], "name": items.names[row], "group": items.groups[row]}
    return {"id": f"emoji-{row}", "features": features, "payload": payload}


@pytest.fixture(scope="package")
def server(emoji, tmp_path_factory) -> Iterator[ServerProcess]:
    """A server with the emoji, whose features it keeps."""
    items, model = emoji
    with running(tmp_path_factory.mktemp("ui") / "data") as server:
        fill(server.client, items, model)
        yield server


@contextmanager
def running(data, **environment) -> Iterator[ServerProcess]:
    server = ServerProcess(data, **environment)
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.stop()


def fill(client, items, model, n=None):
    """Two models, and a collection of the first emoji, or of all."""
    for name in ("small", "other"):
        assert client.put(f"/models/{name}", content=model.to_bytes()).status_code == 201
    given = {"model": "small", "keep": "float16", "indexes": ["group"], "encoders": {"text": "emoji"}}
    assert client.put("/collections/emoji", json=given).status_code == 201
    bodies = [emoji_item(items, row) for row in range(len(items.glyphs) if n is None else n)]
    for lo in range(0, len(bodies), 1000):
        client.post("/collections/emoji/index", json={"items": bodies[lo : lo + 1000]}).raise_for_status()


@dataclass
class Visit:
    """A tab of the browser, in which every request, message and error is noted.

    Attributes
    ----------
    refusals:
        Whether the server is meant to refuse something, which browsers put down as an error.
    """

    page: "sync_api.Page"
    url: str
    refusals: bool = False
    faults: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def __post_init__(self):
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", self._note)

    def _note(self, message):
        if message.type in ("error", "warning") and not (self.refusals and REFUSED.match(message.text)):
            self.faults.append(message.text)

    def open(self, address=""):
        """Open a page of the dashboard anew, and wait until it is complete."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.url}/ui/{address}")
        return self.settle()

    def settle(self):
        self.page.wait_for_function(SETTLED)
        return self.page

    def check(self):
        """All went well, and nothing was asked of another server."""
        assert self.faults == []
        own = urlsplit(self.url).netloc
        strange = [
            url for url in self.requests if urlsplit(url).scheme in ("http", "https") and urlsplit(url).netloc != own
        ]
        assert strange == []


@pytest.fixture
def visit(browser, server):
    """A tab at the server with the emoji."""
    with visiting(browser, server.url) as visit:
        yield visit


@contextmanager
def visiting(browser, url, **options) -> Iterator[Visit]:
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    context.set_default_timeout(PATIENCE)
    try:
        visit = Visit(context.new_page(), url)
        yield visit
        visit.check()
    finally:
        context.close()


def as_float32(numbers):
    """Numbers as JSON that are exactly these float32."""
    return np.asarray(numbers, dtype=np.float32).astype(float).tolist()
