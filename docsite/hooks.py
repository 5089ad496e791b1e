"""Hooks of MkDocs (see mkdocs.yml): pages made at each build, and links that leave `docs/`.

Pages that follow from something else (the REST reference, that of the command line, the start page, the changelog) are
made here and not committed, so they cannot disagree with it.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from docsite import commands, rest

ROOT = Path(__file__).parents[1]

OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "LICENSE": "licence.txt",
    "ccq_core/datasets/ATTRIBUTION.md": "attribution.md",
    "openapi/openapi.json": "openapi.json",
    "docker-compose.yml": "files/docker-compose.yml",
}
"""Files of the repository that the site has too: path in the repository to path in the site."""

_SITE_ONLY = re.compile(r"<!-- in the site: (.*?) -->")
"""Text around links to pages that are made, which the repository has not."""

_LINK = re.compile(r"(\]\()([^)\s#]+)")


def _read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


MADE: dict[str, Callable[[], str]] = {
    "reference/rest.md": lambda: rest.page(json.loads(_read("openapi/openapi.json"))),
    "reference/cli.md": commands.page,
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is made, and what lies outside of `docs/`."""
    for source, target in OUTSIDE.items():
        text = _read(source)
        if target.endswith(".md"):
            text = relinked(text, source, target)
        files.append(File.generated(config, target, content=text))
    for target, make in MADE.items():
        files.append(File.generated(config, target, content=make()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links of pages in `docs/` that lead out of it, or to pages that are made."""
    uri = page.file.src_uri
    if uri == OUTSIDE["README.md"]:
        page.meta["hide"] = ["navigation"]  # it has nothing beside it
    markdown = _SITE_ONLY.sub(r"\1", markdown)
    return markdown if uri in OUTSIDE.values() or uri in MADE else relinked(markdown, f"docs/{uri}", uri)


def relinked(text: str, source: str, target: str) -> str:
    """A text whose links are right in the site.

    Parameters
    ----------
    text:
        Markdown whose relative links are right in the repository.
    source:
        Its path in the repository.
    target:
        Its path in the site.
    """

    def replace(match: re.Match[str]) -> str:
        link = match[2]
        if ":" in link or link.startswith("/"):
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
        inside = OUTSIDE.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
        if inside is None:
            return match[0]  # a strict build names it
        return match[1] + posixpath.relpath(inside, posixpath.dirname(target) or ".")

    return _LINK.sub(replace, text)
