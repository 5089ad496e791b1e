"""Fixtures: a service whose default collection has an encoder for each modality."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.service.encoders.fakes import serving
from tests.service.harness import InProcess, fill

BOTH = {"text": "letters", "image": "bytes"}


@pytest.fixture
def encoding(tmp_path, monkeypatch) -> Iterator[InProcess]:
    """The 60 items of `fill`, and encoders `letters` for texts and `bytes` for images."""
    service = serving(tmp_path, monkeypatch)
    service.create()
    service.ok("PUT", "/collections/default", {"model": "tiny", "encoders": BOTH})
    fill(service)
    yield service
    service.close()
