"""The service with search processes, to which goes all that they can answer, and counts of what they did."""

from __future__ import annotations

import asyncio
from typing import Any

import service.gathering
import service.searchers.link
from service.waiting import Found
from tests.service.harness import InProcess


class Beside(InProcess):
    """The app with search processes; `asked` counts searches that they have answered."""

    def __init__(self, data: Any, monkeypatch: Any, processes: int = 1, **settings: Any) -> None:
        self.asked = 0
        by_process = Found.by_process

        def counted(reply: Any) -> Found:
            self.asked += 1
            return by_process(reply)

        monkeypatch.setattr(Found, "by_process", counted)
        monkeypatch.setattr(service.gathering, "_MANY", 1)
        monkeypatch.setattr(service.gathering, "_FEW", 1)
        # Between requests nothing runs here, and the machine may have other things to do.
        monkeypatch.setattr(service.searchers.link, "_SILENT_SECONDS", 30.0)
        monkeypatch.setattr(service.searchers.link, "_DEAD_SECONDS", 60.0)
        super().__init__(data, search_processes=processes, **settings)

    @property
    def links(self) -> list[Any]:
        return self.app.state.runtime.processes._links

    def wait_for_processes(self, name: str = "default", others: tuple[int, ...] = ()) -> None:
        """Wait until all processes have a collection, and none has one of these numbers of others."""
        number = self.catalog.collection(name).record.number
        for _ in range(4000):
            ready = [link for link in self.links if link.has(number) and link.room and not any(map(link.has, others))]
            if len(ready) == self.settings.search_processes:
                return
            self.run(asyncio.sleep(0.005))
        raise AssertionError("no process has loaded the collection in time")

    def search(self, **body: Any) -> Any:
        """The reply to a search, without what differs each time."""
        reply = self.post("/search", body).json()
        return {name: value for name, value in reply.items() if name not in ("took_ms", "request_id")}
