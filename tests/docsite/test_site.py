"""The site: it builds, its links and anchors lead somewhere, and it asks nobody else for anything."""

import html
import re
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import ccq_client
import ccq_core
from ccq_cli.main import VERBS
from docsite.hooks import relinked
from tests.documents import pages


class Page(HTMLParser):
    """Links, anchors, and what a page loads."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.loaded = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors |= {given[key] for key in ("id", "name") if given.get(key)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if given.get("src"):
            self.loaded.append(given["src"])
        if tag == "link" and given.get("rel") not in ("canonical", "next", "prev"):
            self.loaded.append(given["href"])


def read(site):
    return {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html") if path.name != "404.html"}


def test_links_and_anchors_lead_somewhere(site):
    found = read(site)
    assert len(found) > 25
    for path, page in found.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.exists(), (path, link)
            if parts.fragment and target in found:
                assert unquote(parts.fragment) in found[target].anchors | {"__skip"}, (path, link)


def test_nothing_is_loaded_from_elsewhere(site):
    for path, page in read(site).items():
        for target in page.loaded:
            assert not urlsplit(target).netloc, (path, target)
            assert (path.parent / urlsplit(target).path).resolve().exists(), (path, target)
    for path in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(https?:)?//|@import", path.read_text(encoding="utf-8")), path


def test_the_references_have_all_public_names(site):
    found = {path.relative_to(site).as_posix(): page for path, page in read(site).items()}
    for package, page in ((ccq_core, "reference/core.html"), (ccq_client, "reference/python-client.html")):
        for name in set(package.__all__) - {"__version__"}:
            full = f"{package.__name__}.{name}"
            assert {full, getattr(getattr(package, name), "__module__", "") + f".{name}"} & found[page].anchors, full
    for verb in VERBS:
        assert f"ccq-{verb}" in found["reference/cli.html"].anchors


def test_pages_are_in_the_site(site):
    for page in pages():
        assert (site / page.with_suffix(".html")).exists(), page


def test_links_that_leave_the_documents_are_turned():
    assert relinked("[a](../openapi/openapi.json)", "docs/client.md", "client.md") == "[a](openapi.json)"
    assert relinked("[a](../../CHANGELOG.md#x)", "docs/howto/b.md", "howto/b.md") == "[a](../changelog.md#x)"
    assert relinked("[a](docs/service.md)", "README.md", "index.md") == "[a](service.md)"
    assert relinked("[a](https://example.org/docs/)", "README.md", "index.md") == "[a](https://example.org/docs/)"
    assert relinked("[a](../no/such.py)", "docs/client.md", "client.md") == "[a](../no/such.py)"


def test_parameters_that_are_described_together_have_their_own_defaults(site):
    text = (site / "reference/python-client.html").read_text(encoding="utf-8")
    plain = " ".join(html.unescape(re.sub(r"<[^>]+>", "", text)).split())
    assert "limit (int, default: 10 )" in plain
    assert "offset (int, default: 0 )" in plain
    assert "offset (int, default: 10 )" not in plain


def test_pages_that_are_made_are_linked_in_the_site_alone(site):
    text = (site / "reference/overview.html").read_text(encoding="utf-8")
    for page in ("rest.html", "cli.html"):
        assert re.search(rf'<td>.*href="{page}"', text), page


def test_the_page_of_addresses_that_lead_nowhere_leads_on(site):
    """Its links are absolute, since it stands at any address."""
    text = (site / "404.html").read_text(encoding="utf-8")
    found = [link for link in Page(text[text.index("<article") : text.index("</article")]).links if link != "#"]
    assert len(found) >= 4
    for link in found:
        assert link.startswith("/"), link
        assert (site / link.removeprefix("/")).exists(), link


def test_the_home_page_has_no_empty_navigation_beside_it(site):
    home = (site / "index.html").read_text(encoding="utf-8")
    assert re.search(r'data-md-type="navigation" hidden', " ".join(home.split()))
