"""Fixtures: the service in this process, with an empty default collection, and with items in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

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
