"""JSON responses by orjson: NumPy numbers as they are, stored JSON without reading it again."""

from __future__ import annotations

from typing import Any

import orjson
from starlette.responses import Response

from service.payloads import load_payload
from service.writing import Written

REPLAYED = "Idempotency-Replayed"


class Json(Response):
    """A JSON response. Built in worker threads: the event loop only sends it."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The content as JSON."""
        return to_json(content)


def to_json(content: Any) -> bytes:
    """JSON of a reply. A float32 has as many digits as it takes to tell it from its neighbours."""
    return orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)


def written(reply: Written) -> Response:
    """The response to a write."""
    headers = {REPLAYED: "true"} if reply.replayed else None
    return Response(reply.body, media_type=Json.media_type, headers=headers)


def stored_payload(item_id: str, data: bytes | None) -> orjson.Fragment | None:
    """An item's stored payload, put into a response byte by byte; StorageError if it is damaged."""
    load_payload(item_id, data)
    return None if data is None else orjson.Fragment(data)
