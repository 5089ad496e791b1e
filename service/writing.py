"""Writes and their replies: on the terms that a request sets, and once if it has an Idempotency-Key."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import orjson

from service.store.interface import Change, DoneBefore, Once, Terms

C = TypeVar("C", Change, Change | None)


@dataclass(frozen=True)
class Asked:
    """What was asked for under an Idempotency-Key; `digest`: a hash of it."""

    key: str
    digest: bytes

    @classmethod
    def of(cls, key: str | None, *parts: str | bytes) -> Self | None:
        """The request that has these parts; None if it has no key."""
        if key is None:
            return None
        digest = hashlib.sha256()
        for part in parts:
            data = part.encode() if isinstance(part, str) else part
            digest.update(b"%d " % len(data) + data)  # so that no other parts have the same hash
        return cls(key, digest.digest())


@dataclass(frozen=True)
class Written:
    """A reply to a write; `replayed`: the write was done before, and this is what was replied then."""

    body: bytes
    replayed: bool = False


def write(
    do: Callable[[Terms], C],
    reply: Callable[[C], Mapping[str, Any]],
    versions: Mapping[str, int],
    asked: Asked | None,
) -> Written:
    """Do a write.

    Parameters
    ----------
    do:
        Does it on some terms.
    reply:
        The reply, from what it did.
    versions, asked:
        Of the terms: see `service.store.interface.Terms`.

    Raises
    ------
    VersionMismatchError, KeyReusedError
        Nothing was changed; as with whatever else `do` raises.
    """
    kept = b""

    def keep(change: Any) -> bytes:
        nonlocal kept
        kept = orjson.dumps(reply(change))
        return kept

    try:
        change = do(Terms(versions, None if asked is None else Once(asked.key, asked.digest, keep)))
    except DoneBefore as before:
        return Written(before.reply, replayed=True)
    return Written(kept if asked is not None else keep(change))
