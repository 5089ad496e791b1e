"""The REST reference as Markdown, from the OpenAPI document, with a curl call for every route."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Any

from docsite.schemas import as_table, cell, deref, fields, type_of

Json = dict[str, Any]

TWIN = "/collections/{collection}"
"""Routes below this act on a collection that the path names, else the same as those without."""

PATHS = {
    "alias": "photos",
    "collection": "photos-2026",
    "id": "p1",
    "job": "train-20261128T110233-3f9a",
    "model": "wiki-32",
    "snapshot": "20261128T110233-3f9a",
}
"""What stands for the parameters of paths in the curl calls."""

FILES = {"put_/models/{model}": "wiki-32.ccq", "post_/models/{model}/train": "features.npz"}
"""The files that are sent where a body is no JSON."""

FIRST = ("/index", "/search")
"""The paths that most readers look for; the others are in the order of the document."""

INTRO = """\
# REST API

Made from the [OpenAPI document](../openapi.json) at every build of these pages. What the routes mean, in prose and with
replies, is in [the service](../service.md); every error code is explained [there](../service.md#errors).

The calls are for `ccq serve` on this machine. With [API keys](../operations/security.md#api-keys) each needs one with
the scope that is named here: `-H "Authorization: Bearer $CCQ_API_KEY"`. The routes of items exist twice: with
`/collections/photos-2026` in front of their path they act on that collection, without on the default one.
"""


def page(document: Json) -> str:
    """The whole page.

    Parameters
    ----------
    document:
        The parsed OpenAPI document.
    """
    parts = [INTRO]
    for tag in document["tags"]:
        parts.append(f"## {tag['name'].capitalize()}\n\n{tag['description']}\n")
        parts += [
            _route(document, method, path, operation)
            for method, path, operation in routes(document)
            if tag["name"] in operation["tags"]
        ]
    parts.append("## Schemas\n")
    for name, schema in sorted(document["components"]["schemas"].items()):
        parts.append(f"### {name} {{#{name.lower()}}}\n")
        if text := schema.get("description"):
            parts.append(f"{text}\n")
        rows = fields(schema)
        parts.append(as_table(("field", "type", "default", ""), rows) if rows else f"{type_of(schema)}\n")
    return "\n".join(parts)


def routes(document: Json) -> Iterator[tuple[str, str, Json]]:
    """(method in lower case, path, operation) of all routes, `FIRST` first, without those that `TWIN` makes."""
    paths = document["paths"]
    for path, methods in sorted(paths.items(), key=lambda item: item[0] not in FIRST):
        if path.removeprefix(TWIN) in paths and path.startswith(TWIN + "/"):
            continue
        for method, operation in methods.items():
            yield method, path, operation


def calls(document: Json, method: str, path: str, operation: Json) -> Iterator[tuple[str, str]]:
    """(title, command) of each curl call for a route: one for each example of its body, or one without a body."""
    url = f"localhost:8000{path.format(**PATHS)}"
    start = "curl -s" if method == "get" else f"curl -s -X {method.upper()}"
    if path.startswith("/snapshots/") and method == "get":
        start = "curl -s -o snapshot.tar"
    bodies = operation.get("requestBody", {}).get("content", {})
    for kind, content in bodies.items():
        if kind == "application/json":
            for title, example in content["examples"].items():
                body = json.dumps(deref(document, example).get("value"), ensure_ascii=False)  # FastAPI leaves null out
                yield title, f"{start} {url} -H 'Content-Type: {kind}' \\\n  -d {shlex.quote(body)}"
        else:
            file = FILES[f"{method}_{path}"]
            title = "a file" if len(bodies) > 1 else ""
            yield title, f"{start} {url} -H 'Content-Type: {kind}' \\\n  --data-binary @{file}"
    if not bodies:
        yield "", f"{start} {url}"


def _route(document: Json, method: str, path: str, operation: Json) -> str:
    anchor = f"{method}{path}".replace("/", "-").replace("{", "").replace("}", "")
    lines = [f"### {method.upper()} {path} {{#{anchor}}}\n", f"{operation.get('description', operation['summary'])}\n"]
    scopes = [scope for way in operation.get("security", [])[:1] for names in way.values() for scope in names]
    facts = [f"Scope: `{scopes[0]}`." if scopes else "No key needed."]
    if TWIN + path in document["paths"]:
        facts.append(f"Also: `{method.upper()} {TWIN}{path}`.")
    lines.append(" ".join(facts) + "\n")
    if parameters := [deref(document, each) for each in operation.get("parameters", [])]:
        rows = [
            (
                f"`{each['name']}`",
                each["in"],
                type_of(each["schema"]),
                cell(each.get("description") or each["schema"].get("description", "")),
            )
            for each in parameters
        ]
        lines.append(as_table(("parameter", "in", "type", ""), rows))
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        lines.append(f"Body: {type_of(content['schema'])} as `{kind}`.\n")
    for title, command in calls(document, method, path, operation):
        lines.append((f"{title.capitalize()}:\n\n" if title else "") + f"```sh\n{command}\n```\n")
    lines += _replies(operation)
    return "\n".join(lines)


def _replies(operation: Json) -> Iterator[str]:
    """A line for each reply that is a success, and one for all problems together."""
    problems = []
    for status, reply in operation["responses"].items():
        contents = reply.get("content", {})
        if "application/problem+json" in contents:
            problems.append(f"{status} {cell(reply['description'])}")
            continue
        kinds = [
            type_of(content.get("schema", {})) if kind == "application/json" else f"`{kind}`"
            for kind, content in contents.items()
        ]
        text = reply.get("description", "")
        words = [" or ".join(kinds), "" if text == "Successful Response" else cell(text).rstrip(".")]
        yield f"Reply {status}: {': '.join(word for word in words if word) or 'without a body'}.\n"
    if problems:
        yield f"[Problems](../service.md#errors): {'; '.join(problems)}.\n"
