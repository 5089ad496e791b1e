"""kill -9 while a collection is encoded anew and written to: it has the old model and its codes, or the new and its.

    python -m tests.campaigns.reencodes --kills 300 --data DIR

Writers write as in `tests.campaigns.kills`; the collection that they share is encoded anew again and again, by one
model and the other. After each restart the job that was cut short is cancelled, or left to end; then every item has
just the codes that the model of its collection gives for its features.
"""

from __future__ import annotations

import sys
import threading
import time
from contextlib import suppress
from typing import Any

import httpx

from tests.campaigns.facts import Facts, item_facts
from tests.campaigns.kills import Campaign, main
from tests.campaigns.writers import SHARED
from tests.service.harness import ServerProcess
from tests.service.reencoded import MODELS, OTHER_CHECKSUM, OTHER_FILE, exact

_FAILED = "job_failed"  # of a job under which the server died too often


class ReencodingCampaign(Campaign):
    """Kills while a collection gets another model."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._model = "tiny"
        self._pending: str | None = None
        self._others["model", "other"] = OTHER_CHECKSUM

    def _first(self) -> str:
        """Slices so small, now and then, that a job takes many commits, and is killed between any two of them."""
        size = self._rng.choice([4, 32, 2048])
        return f"from service import reencoding; reencoding._SLICE = {size}; reencoding._LAST = 4"

    def _prepare(self, server: ServerProcess) -> None:
        assert server.client.put("/models/other", content=OTHER_FILE).status_code == 201

    def _beside(self, server: ServerProcess) -> list[threading.Thread]:
        return [threading.Thread(target=self._reencode, args=(server.url,))]

    def _reencode(self, url: str) -> None:
        with httpx.Client(base_url=url, timeout=60) as client, suppress(httpx.TransportError):
            while True:
                after = next(name for name in MODELS if name != self._model)
                self._pending = after
                reply = client.post(f"/collections/{SHARED}/reencode", json={"model": after})
                if reply.status_code != 202:
                    self._wrong(f"encoding {SHARED} anew: {reply.text}")
                    return
                info = self._ended(client, reply.json())
                if info["state"] != "done":
                    self._wrong(f"encoding {SHARED} anew: {info}")
                    return
                self._model, self._pending = after, None
                self.report.jobs += 1

    def _served(self, server: ServerProcess) -> Facts:
        """What a server holds, as if the shared collection had its first model: where codes are of the one it has."""
        self._settle(server.client)
        facts = super()._served(server)
        model, indexes = facts["collection", SHARED]
        if model != self._model:
            self.report.jobs_carried_out += 1
            if model != self._pending:
                self._wrong(f"collection {SHARED} has model {model}, not {self._model}; pending was {self._pending}")
        self._model, self._pending = model, None
        facts["collection", SHARED] = ("tiny", indexes)
        for key in [key for key in facts if key[:2] == ("item", SHARED)]:
            payload, near = facts[key]
            if near == _near(payload["n"], near, model):
                facts[key] = (payload, _near(payload["n"], near, "tiny"))
        return facts

    def _settle(self, client: Any) -> None:
        """Let a job end that a kill cut short, and find out how."""
        for job in client.get("/jobs").json()["jobs"]:
            if job["state"] not in ("queued", "running"):
                continue
            self.report.jobs_cut += 1
            if self._rng.random() < 0.5:
                client.delete(f"/jobs/{job['id']}")
            info = self._ended(client, job)
            if info["state"] == "done":
                self._model, self._pending = job["parameters"]["model"], None
                self.report.jobs_carried_out += 1
            elif info["state"] == "failed" and info["error"]["code"] != _FAILED:
                self._wrong(f"after a restart: {info}")

    @staticmethod
    def _ended(client: Any, job: Any) -> Any:
        while True:
            reply = client.get(f"/jobs/{job['id']}")
            if reply.status_code == 404:  # it was cancelled, and forgotten by being cancelled once more
                return {**job, "state": "cancelled"}
            if reply.json()["state"] not in ("queued", "running"):
                return reply.json()
            time.sleep(0.002)

    def _write_and_kill(self, server: ServerProcess) -> None:
        super()._write_and_kill(server)
        if self._rng.random() < 0.3:  # with codes that are staged, as they mostly are now
            server.process.wait()
            self._check()


def _near(n: int, databases: Any, model: str) -> Any:
    """What an item with some features has in the facts, by a model."""
    kinds = [name for name in databases if name != "pair"]
    one = {"id": "x", "features": exact(n, *kinds), "payload": None}
    ((_, near),) = item_facts("c", [one], MODELS[model]).values()
    return near


if __name__ == "__main__":
    sys.exit(main(ReencodingCampaign, __doc__))
