"""Fixtures: the site as MkDocs builds it."""

import os
import subprocess
import sys

import pytest

from tests.documents import ROOT


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the site, built strictly: a warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder
