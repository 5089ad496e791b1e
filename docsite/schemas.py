"""JSON schemas in words: tables of fields, and types with links to where they are described."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]


def deref(document: Json, value: Json) -> Json:
    """What a value stands for, which may be a `$ref` into the document."""
    while "$ref" in value:
        found: Any = document
        for key in value["$ref"].removeprefix("#/").split("/"):
            found = found[key.replace("~1", "/").replace("~0", "~")]
        value = found
    return value


def type_of(schema: Json) -> str:
    """A type in words, as Markdown; a named one is a link to its heading."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(type_of(each) for each in schema[key]))
    if "enum" in schema or "const" in schema:
        return " or ".join(f"`{json.dumps(each)}`" for each in schema.get("enum", [schema.get("const")]))
    match schema.get("type"):
        case "array":
            return f"list of {_inner(schema.get('items', {}))}"
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            return f"object of {_inner(schema['additionalProperties'])}"
        case "string" if schema.get("format") == "binary":
            return "bytes"
        case str() as name:
            return name + _bounds(schema)
        case list() as names:
            return " or ".join(names)
        case _:
            return "any JSON"


def _inner(schema: Json) -> str:
    """The type of what a list or an object holds, in brackets where it is one of several."""
    words = type_of(schema)
    return f"({words})" if " or " in words else words


def _bounds(schema: Json) -> str:
    low = schema.get("minimum", schema.get("minLength"))
    high = schema.get("maximum", schema.get("maxLength"))
    unit = " characters" if schema["type"] == "string" and (low is not None or high is not None) else ""
    match low, high:
        case None, None:
            return ""
        case _, None:
            return f", {low} or more{unit}"
        case None, _:
            return f", at most {high}{unit}"
        case _:
            return f", {low} to {high}{unit}"


def fields(schema: Json) -> list[tuple[str, ...]]:
    """(name, type, default, description) of each field of an object."""
    required = schema.get("required", [])
    return [
        (
            f"`{name}`",
            type_of(each),
            "required" if name in required else f"`{json.dumps(each['default'])}`" if "default" in each else "",
            cell(each.get("description", "")),
        )
        for name, each in schema.get("properties", {}).items()
    ]


def cell(text: str) -> str:
    """Text that fits into a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def as_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
