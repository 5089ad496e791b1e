"""The paper's own numbers: MAP@50 from its Table 2."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

from benchmarks.paper.results import read_rows

Published = dict[tuple[str, str, int], float]
"""(task, method, bits) to MAP@50."""
OURS = "CCQ"
UNSUPERVISED = ("CVH", "IMH", "CorrAE")


def read_wiki() -> Published:
    """The Wiki columns, from `reference_wiki.csv` beside this module."""
    with resources.as_file(resources.files("benchmarks.paper") / "reference_wiki.csv") as path:
        return {(row["task"], row["method"], int(row["bits"])): float(row["map"]) for row in read_rows(path)}


def read_json(path: Path, dataset: str) -> Published:
    """The columns of one data set from a JSON file, {"map": {dataset: {task: {method: {bits: MAP}}}}}.

    Raises
    ------
    ValueError
        Not of that form, or without this data set.
    """
    try:
        tasks: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["map"][dataset]
        return {
            (task, method, int(bits)): float(value)
            for task, rows in tasks.items()
            for method, row in rows.items()
            for bits, value in row.items()
        }
    except (KeyError, AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            f'{path}: expected {{"map": {{"{dataset}": {{task: {{method: {{bits: MAP}}}}}}}}}} ({error!r})'
        ) from None
