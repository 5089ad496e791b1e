"""Writes the OpenAPI document: ``python -m service.openapi > openapi/openapi.json`` renews the committed copy."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from service.app import create_app
from service.settings import Settings


def render() -> str:
    """The document as it is committed: indented, keys in order."""
    document = create_app(Settings(data=Path("data"))).openapi()
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(render())
