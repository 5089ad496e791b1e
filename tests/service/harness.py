"""Ways to run the service in a test: in this process, and as a real server in its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx

from ccq_core import CCQ
from service.app import create_app
from service.problems import MEDIA_TYPE, Problem
from service.settings import Settings
from tests.core.conftest import make_pairs

DIMS = {"image": 12, "text": 8}
PAIRS = make_pairs(400)
MODEL = CCQ(bits=16, weights={"text": 5.0}, metric="cosine", iterations=5, seed=1).fit(PAIRS)
MODEL_FILE = MODEL.to_bytes()


def features(i: int, *modalities: str) -> dict[str, list[float]]:
    """Features of the i-th pair; of all modalities by default."""
    return {name: PAIRS[name][i % 400].tolist() for name in modalities or DIMS}


def item(i: int, *modalities: str, **payload: Any) -> dict[str, Any]:
    """An item to index; its payload holds its number and what else is given."""
    return {"id": f"item-{i}", "features": features(i, *modalities), "payload": {"n": i, **payload}}


class InProcess:
    """The app over ASGI, started and stopped as a server would. Its methods can be called from plain tests."""

    def __init__(self, data: Path, **settings: Any) -> None:
        self.settings = Settings(data=data, **settings)
        self._runner = asyncio.Runner()
        try:
            self._open()
        except BaseException:
            self._runner.close()
            raise

    def _open(self) -> None:
        self.app = create_app(self.settings)
        self._lifespan = self.app.router.lifespan_context(self.app)
        self.run(self._lifespan.__aenter__())
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://test")

    def run(self, awaitable: Any) -> Any:
        """The result of a coroutine, on the event loop of the app."""
        return self._runner.run(awaitable)

    def restart(self) -> None:
        """Stop, start again on the same data, and wait until all is loaded."""
        self._stop()
        self._open()
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        for _ in range(2000):
            if self.get("/readyz").status_code == 200:
                return
            self.run(asyncio.sleep(0.005))
        raise AssertionError("not ready in time")

    def _stop(self) -> None:
        self.run(self.client.aclose())
        self.run(self._lifespan.__aexit__(None, None, None))

    def close(self) -> None:
        self._stop()
        self._runner.close()

    @property
    def catalog(self) -> Any:
        return self.app.state.runtime.catalog

    def request(self, method: str, path: str, **rest: Any) -> httpx.Response:
        return self.run(self.client.request(method, path, **rest))

    def get(self, path: str, **rest: Any) -> httpx.Response:
        return self.request("GET", path, **rest)

    def post(self, path: str, body: Any, **rest: Any) -> httpx.Response:
        return self.request("POST", path, json=body, **rest)

    def put(self, path: str, body: Any) -> httpx.Response:
        return self.request("PUT", path, json=body)

    def delete(self, path: str) -> httpx.Response:
        return self.request("DELETE", path)

    def ok(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of a response that has to be a success."""
        response = self.request(method, path, **({} if body is None else {"json": body}))
        assert response.status_code < 300, response.text
        return response.json() if response.content else None

    def create(self, name: str = "default", model: str = "tiny") -> None:
        """Upload the model and create a collection with it."""
        assert self.request("PUT", f"/models/{model}", content=MODEL_FILE).status_code in (200, 201)
        assert self.put(f"/collections/{name}", {"model": model}).status_code in (200, 201)


def fill(service: InProcess) -> None:
    """Index 60 items in one request: each third has an image only, each third a text only, each third both."""
    kinds = [("image",), ("text",), ("image", "text")]
    service.ok("POST", "/index", {"items": [item(i, *kinds[i % 3], even=i % 2 == 0) for i in range(60)]})


class ServerProcess:
    """A real server in a process of its own, on a free port of the loopback.

    `first`: what it does before it starts, in Python.
    """

    def __init__(
        self,
        data: Path,
        model: Path | None = None,
        *,
        stderr: Path | None = None,
        scheme: str = "http",
        first: str = "pass",
        **environment: str,
    ) -> None:
        argument = "None" if model is None else f"Path({str(model)!r})"
        code = (
            "from pathlib import Path; from service.server import serve; from service.settings import Settings; "
            f"{first}; serve(Settings(), {argument})"
        )
        with contextlib.nullcontext() if stderr is None else stderr.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code],
                env={**os.environ, "CCQ_DATA": str(data), "CCQ_PORT": "0", "CCQ_LOG_LEVEL": "error", **environment},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        line = self.process.stdout.readline()
        self.url = line.split()[-1] if line else ""
        self.client = httpx.Client(base_url=self.url, timeout=30)
        if not line.startswith(f"ccq serve: listening on {scheme}://127.0.0.1:"):
            self.kill()
            raise AssertionError(f"the server did not start, it said {line!r}")

    def wait_until_ready(self) -> None:
        for _ in range(2000):
            if self.client.get("/readyz").status_code == 200:
                return
        raise AssertionError("not ready in time")

    def kill(self) -> None:
        """End it as a power cut would, as far as a process can tell."""
        self.process.send_signal(signal.SIGKILL)
        self._wait()

    def stop(self) -> int:
        """End it in order; its exit status."""
        self.process.terminate()
        return self._wait()

    def _wait(self) -> int:
        status = self.process.wait(timeout=30)
        self.process.stdout.close()
        self.client.close()
        return status


def assert_problem(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Check that a response is a problem of the one shape; returns it."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == MEDIA_TYPE
    problem = response.json()
    assert set(problem) == set(Problem.model_fields)
    Problem.model_validate(problem, strict=True)
    assert problem["code"] == code, problem
    assert problem["status"] == status
    assert problem["type"] == f"urn:ccq-search:problem:{code}"
    assert problem["request_id"] == response.headers["x-request-id"]
    return problem
