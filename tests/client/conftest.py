"""Fixtures: each client, of a service in this process."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from tests.client.kinds import KINDS, app_transport, connected
from tests.service.harness import MODEL_FILE, PAIRS


@pytest.fixture(params=KINDS)
def kind(request) -> str:
    return request.param


@contextmanager
def _of_empty_collection(kind, data):
    with connected(kind, app_transport(kind, data)) as client:
        client.models.upload("tiny", MODEL_FILE)
        client.collections.create("default", "tiny")
        yield client


@pytest.fixture
def client(kind, tmp_path):
    """A client of an empty default collection."""
    with _of_empty_collection(kind, tmp_path / "data") as client:
        yield client


@pytest.fixture(scope="module", params=KINDS)
def shared(request, tmp_path_factory):
    """The same for the tests of a module, which leave nothing behind."""
    with _of_empty_collection(request.param, tmp_path_factory.mktemp("shared") / "data") as client:
        yield client


@pytest.fixture
def filled(client):
    """The same, with the first 60 pairs: each third has an image only, each third a text only, each third both."""
    features = {name: array[:60].copy() for name, array in PAIRS.items()}
    features["text"][0::3] = float("nan")
    features["image"][1::3] = float("nan")
    client.index([f"item-{i}" for i in range(60)], features, [{"n": i, "even": i % 2 == 0} for i in range(60)])
    return client
