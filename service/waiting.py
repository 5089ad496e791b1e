"""Searches that wait for their answers, and the answers."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from starlette.responses import Response

from service import deadline, requestid
from service.collection import Collection
from service.errors import RequestTimeoutError
from service.responses import Json
from service.searchers.messages import Reply
from service.searching import Answer

# Long bodies, filters, batches, groups, pages behind a cursor, and a `limit` or `offset` of 100 and more may take far
# longer than other searches, which should not wait for them, and their replies may be long.
_MOST_BYTES = 1 << 18
_ALONE = re.compile(rb'"(?:queries|group_by|cursor)"|"(?:limit|offset)"\s*:\s*\d{3}')


class Found(NamedTuple):
    """The reply to a search, and what it was that was asked for; see `service.searching.Answer`."""

    reply: Response
    limit: int
    queries: int

    @classmethod
    def of(cls, answer: Answer) -> Found:
        """What was found here."""
        return cls(Json(answer.reply), answer.limit, answer.queries)

    @classmethod
    def by_process(cls, reply: Reply) -> Found:
        """What a search process has found."""
        return cls(Response(reply.body, media_type=Json.media_type), reply.limit, reply.queries)


@dataclass(eq=False)
class Waiting:
    """A search of a collection that waits. `threads`: whether it was found to need one."""

    collection: Collection
    body: bytes
    reply: asyncio.Future[Found] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    request_id: str | None = field(default_factory=requestid.current.get)
    expires: float = field(default_factory=deadline.expires)
    threads: bool = False

    def goes_with(self, other: Waiting) -> bool:
        """Whether a thread can answer both together."""
        return self.collection is other.collection and self.quick and other.quick and not self.filtered | other.filtered

    def answer(self, reply: Found | Exception) -> None:
        """Give it its answer, if it has none."""
        if self.reply.done():  # nobody waits for it any more, or it has been answered
            return
        if isinstance(reply, Exception):
            self.reply.set_exception(reply)
        else:
            self.reply.set_result(reply)

    def wanted(self) -> bool:
        """Whether anybody still waits for it. If it came too late, that is its answer."""
        try:
            deadline.check(self.expires)
        except RequestTimeoutError as error:
            self.answer(error)
        return not self.reply.done()

    @cached_property
    def quick(self) -> bool:
        """Whether it takes no longer than most, as far as can be told without reading it."""
        return len(self.body) <= _MOST_BYTES and not _ALONE.search(self.body)

    @cached_property
    def filtered(self) -> bool:
        """Whether it may have a filter."""
        return b'"filter"' in self.body
