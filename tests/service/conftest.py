"""Fixtures: the service in this process, with an empty default collection, and with items in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from service import reencoding
from service.store import segments
from tests.service import reencoded
from tests.service.harness import MODEL_FILE, InProcess, fill


@pytest.fixture
def bare(tmp_path) -> Iterator[InProcess]:
    """The service with neither model nor collection."""
    service = InProcess(tmp_path / "data")
    yield service
    service.close()


@pytest.fixture
def service(bare) -> InProcess:
    """The service with an empty default collection."""
    bare.create()
    return bare


@pytest.fixture
def filled(service) -> InProcess:
    """The service with the 60 items of `fill`."""
    fill(service)
    return service


@pytest.fixture(scope="session")
def model_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "tiny.ccq"
    path.write_bytes(MODEL_FILE)
    return path


@pytest.fixture
def keeping(bare, request) -> InProcess:
    """The service with two models, and a default collection of 90 items that keeps features."""
    reencoded.make(bare, getattr(request, "param", "float16"))
    return bare


@pytest.fixture
def small(monkeypatch):
    """So few items at one time that little data has many slices and segments, when it is encoded anew."""
    monkeypatch.setattr(reencoding, "_SLICE", 16)
    monkeypatch.setattr(reencoding, "_LAST", 4)
    monkeypatch.setattr(segments, "FULL_ROWS", 48)
