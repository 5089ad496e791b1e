"""When a request is sent again, and after how long. It sends nothing itself."""

from __future__ import annotations

import email.utils
import random
import time
from dataclasses import dataclass, field

from ccq_client.errors import ApiError, CCQError, InputError, TransportError


class Clock:
    """Time and chance; tests put their own in its place."""

    def now(self) -> float:
        """Seconds that only ever go on."""
        return time.monotonic()

    def date(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def chance(self) -> float:
        """A number of [0, 1)."""
        return random.random()  # noqa: S311 (spreads clients, hides nothing)

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    async def sleep_async(self, seconds: float) -> None:
        """Wait, and let others work."""
        import asyncio

        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Retries:
    """How often, and how long, a request is sent again.

    It is where nothing answered, and where the service said that it cannot answer now. Before the n-th time a client
    waits for a random time of up to ``first * 2 ** (n - 1)`` seconds and at most `longest`, or as long as the
    service asked for and a little more.

    Parameters
    ----------
    times:
        How often a request is sent again at most; 0: never.
    first, longest:
        Bounds of the random waits, in seconds.
    total:
        How many seconds after the beginning of a request it may still be sent again.

    Raises
    ------
    InputError
        One of them is no such number.
    """

    times: int = 6
    first: float = 0.2
    longest: float = 10.0
    total: float = 60.0
    clock: Clock = field(default_factory=Clock, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.times, bool) or not isinstance(self.times, int) or self.times < 0:
            raise InputError(f"retries: expected a whole number of 0 or more, Retries or None, got {self.times!r}")
        for name in ("first", "longest", "total"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
                raise InputError(f"retries: {name}: expected seconds of 0 or more, got {value!r}")

    @classmethod
    def of(cls, given: Retries | int | None) -> Retries:
        """What a user gave: all of it, the number of times alone, or None for none."""
        if given is None or isinstance(given, Retries):
            return given or cls(times=0)
        return cls(times=given)


class Attempts:
    """The attempts at one request.

    Parameters
    ----------
    retries:
        What is allowed.
    repeatable:
        Whether the request does no harm if it is sent twice.
    keyed:
        Whether it has an idempotency key: then what was done is told, and what is refused was not done before.

    Attributes
    ----------
    in_doubt:
        Whether an attempt may have been carried out though it failed.
    """

    def __init__(self, retries: Retries, repeatable: bool, keyed: bool = False) -> None:
        self._retries = retries
        self._repeatable = repeatable
        self._keyed = keyed
        self._failed = 0
        self._deadline = retries.clock.now() + retries.total
        self.in_doubt = False

    def pause(self, failure: CCQError) -> float | None:
        """How many seconds to wait after a failure before the next attempt; None: there is none."""
        doubtful = _in_doubt(failure)
        self.in_doubt = doubtful or (self.in_doubt and not (self._keyed and _refused(failure)))
        self._failed += 1
        if self._failed > self._retries.times or not _passes(failure) or (doubtful and not self._repeatable):
            return None
        chance = self._retries.clock.chance()
        asked = failure.retry_after if isinstance(failure, ApiError) else None
        bound = min(self._retries.longest, self._retries.first * 2.0 ** min(self._failed - 1, 60))
        wait = chance * bound if asked is None else asked + chance * self._retries.first
        return wait if self._retries.clock.now() + wait <= self._deadline else None


def retry_after(header: str | None, clock: Clock) -> float | None:
    """Seconds that a header ``Retry-After`` asks to wait for, of a number or a date; None if it says nothing."""
    if header is None:
        return None
    try:
        return max(0.0, float(int(header)))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - clock.date())
    except (ValueError, OverflowError):
        return None


def _passes(failure: CCQError) -> bool:
    """Whether the same request may succeed a little later."""
    if isinstance(failure, TransportError):
        return failure.passing
    if not isinstance(failure, ApiError) or failure.code == "collection_failed":
        return False
    return failure.status in (429, 502, 503, 504) or failure.retry_after is not None


def _in_doubt(failure: CCQError) -> bool:
    """Whether the request may have been carried out; docs/service.md says after which errors it was not."""
    if isinstance(failure, TransportError):
        return failure.arrived
    if isinstance(failure, ApiError):
        return failure.status >= 500 and failure.status != 507 and failure.code != "overloaded"
    return True


def _refused(failure: CCQError) -> bool:
    """Whether the service looked at what was asked for, and refused it."""
    return isinstance(failure, ApiError) and failure.status in (400, 409, 412, 413, 422)
