"""Who is told what becomes of collections: whoever has another copy of their codes."""

from __future__ import annotations

from service.store.interface import Change, CollectionRecord


class Followers:
    """Told in the order of the commits, from any thread, and before a write returns. Must not raise, and not wait.

    This base does nothing with what it is told.
    """

    def replaced(self, record: CollectionRecord) -> None:
        """A collection is loaded, or has another model: all of its codes are others."""

    def changed(self, record: CollectionRecord, change: Change, records: bytes | None) -> None:
        """A collection was written to; `records`: the packed code records of what was added."""

    def dropped(self, record: CollectionRecord) -> None:
        """A collection was deleted."""


NOBODY = Followers()
