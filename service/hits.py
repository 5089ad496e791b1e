"""Rows of rankings as a reply shows them: with ids, and with payloads or parts of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import orjson

from service.errors import Fault, ReplyTooLargeError
from service.items import reply_bytes
from service.parts import Parts
from service.payloads import load_payload
from service.ranking import Ranking
from service.responses import stored_payload
from service.schemas.search import SearchRequest
from service.store.interface import Snapshot

Hits = list[dict[str, Any]]
_Texts = dict[int, tuple[str, orjson.Fragment | None]]


def read_hits(
    rankings: Sequence[Ranking], databases: Sequence[str], request: SearchRequest, snapshot: Snapshot, max_bytes: int
) -> list[Hits]:
    """The hits of each ranking, with what the request wants of their payloads.

    Raises
    ------
    ReplyTooLargeError
        They are too long for one reply. What is too long is not even read.
    StorageError
        A payload is damaged.
    """
    texts = _texts(rankings, request.with_payload, snapshot, max_bytes)
    return [_hits(ranking, databases, texts, request.with_payload is not False) for ranking in rankings]


def _texts(rankings: Sequence[Ranking], with_payload: bool | list[str], snapshot: Snapshot, max_bytes: int) -> _Texts:
    """Ids and payloads of all results."""
    wanted = [seq for ranking in rankings for seq in ranking.seqs.tolist()]
    times = Counter(wanted) if len(set(wanted)) < len(wanted) else None  # which takes its time
    parts = Parts(with_payload) if isinstance(with_payload, list) else None
    texts: _Texts = {}
    size = 0
    for seq, item_id, payload in snapshot.texts(times or wanted, with_payload is not False):
        if parts is not None:
            payload = orjson.dumps(parts.of(load_payload(item_id, payload)))
        size += reply_bytes(item_id, payload) * (times[seq] if times else 1)
        if size > max_bytes:
            raise _too_large(max_bytes, with_payload is not False)
        texts[seq] = item_id, stored_payload(item_id, payload)
    return texts


def _too_large(max_bytes: int, with_payload: bool) -> ReplyTooLargeError:
    advice = "ask for fewer" + (', or for none of their payloads ("with_payload": false)' if with_payload else "")
    reason = f"expected results of at most {max_bytes} bytes together, got more: {advice}"
    return ReplyTooLargeError.from_faults([Fault.at(("limit",), reason)])


def _hits(ranking: Ranking, databases: Sequence[str], texts: _Texts, with_payload: bool) -> Hits:
    hits = []
    for seq, source, distance, score in zip(
        ranking.seqs.tolist(), ranking.databases.tolist(), ranking.distances, ranking.scores, strict=True
    ):
        item_id, payload = texts[seq]
        hit = {"id": item_id, "database": databases[source], "distance": distance, "score": score}
        if with_payload:
            hit["payload"] = payload
        hits.append(hit)
    return hits
