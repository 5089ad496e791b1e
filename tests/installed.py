"""Tries an installed package, away from the checkout: `make dist` runs it in an empty environment with `python -P`.

What a test of the checkout cannot see is a file that was not packed. So this asks for one of each kind: the model of
the library, the service over its client in one process, and the pages it has for browsers, if there are any.
"""

import importlib.util
import re
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

import httpx
import numpy as np

import ccq_client
import ccq_core
import service
from ccq_client.in_process import AppTransport
from ccq_core import CCQ
from ccq_core.datasets import load_emoji
from service.app import create_app
from service.settings import Settings

SITE = Path(sysconfig.get_path("purelib"))
NOT_PACKED = ("docs", "docsite", "tests", "benchmarks", "examples", "openapi", "mkdocs.yml")


def main() -> None:
    """Raises SystemExit with what is wrong, if anything is."""
    for package in (ccq_client, ccq_core, service):
        where = Path(package.__file__).parent
        if where.parent != SITE:
            raise SystemExit(f"{package.__name__}: expected it in {SITE}, got {where}")
    if packed := [name for name in NOT_PACKED if (SITE / name).exists()]:
        raise SystemExit(f"in the wheel, and should not be: {', '.join(packed)}")
    features = {name: x[:300] for name, x in load_emoji().all.features.items()}
    model = CCQ(bits=8, iterations=1).fit(features)
    with tempfile.TemporaryDirectory() as data:
        app = create_app(Settings(data=Path(data)))
        with ccq_client.Client.for_app(app) as client:
            client.models.upload("emoji", model)
            client.collections.create("default", "emoji")
            client.index(range(300), features)
            hits = client.search(by_id="7", limit=3)
            if len(hits.ids) != 3 or not np.isfinite(hits.scores).all():
                raise SystemExit(f"search by the client: expected three results, got {hits}")
    with tempfile.TemporaryDirectory() as data:
        check_dashboard(create_app(Settings(data=Path(data))))
    for package in (ccq_client, ccq_core):
        if not Path(package.__file__).with_name("py.typed").exists():
            raise SystemExit(f"{package.__name__}: py.typed was not packed")
    print(f"{ccq_core.__version__} in {SITE}: library, service and client work", file=sys.stderr)  # noqa: T201


def check_dashboard(app: Any) -> None:
    """The pages under /ui and what they load, where this version has them."""
    if importlib.util.find_spec("service.routes.pages") is None:
        return
    with httpx.Client(transport=AppTransport(app), base_url="http://test", follow_redirects=True) as client:
        page = client.get("/ui")
        loaded = [page.url.join(name) for name in re.findall(r'(?:src|href)="([^"#:]+)"', page.text)]
        for url in [page.url, *loaded]:
            if (status := client.get(url).status_code) != 200:
                raise SystemExit(f"{url.path}: expected status 200, got {status}; was it packed?")
        if not loaded:
            raise SystemExit("/ui: expected a page that loads scripts and styles, got none that does")


if __name__ == "__main__":
    main()
