"""Settings compared by cross-validation on training objects alone: `python -m benchmarks.choose --wiki FILE`.

A fold of the training objects are the queries, the others train the model and are its database; test objects and their
labels are never looked at. One setting is changed at a time. What counts is the mean of MAP@50 over tasks, code lengths
and data sets.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import click
import numpy as np

from ccq_core import CCQ
from ccq_core.datasets import load_emoji
from ccq_core.evaluation import LabelledData, evaluate, load_dataset

CHANGES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "metric=euclidean": {"metric": "euclidean"},
    "mapping=procrustes": {"mapping": "procrustes"},
    **{f"mapping_ridge={ridge:g}": {"mapping_ridge": ridge} for ridge in (0.001, 0.01, 0.1, 0.3)},
    **{
        f"preprocess={steps}": {"preprocess": steps}
        for steps in ("zscore,unit", "center,unit", "l2,center,unit", "l2,zca,unit", "sqrt,zca,unit")
    },
    "preprocess=rff,center,unit": {"preprocess": "rff,center,unit"},
    "rff,center,unit for images": {"preprocess": {"image": "rff,center,unit", "text": "zca,unit"}},
    "rff,center,unit for texts": {"preprocess": {"image": "zca,unit", "text": "rff,center,unit"}},
    **{f"text weighs {weight:g}": {"weights": {"image": 1.0, "text": weight}} for weight in (1.0, 2.0, 5.0, 10.0)},
    **{f"effort={effort}": {"effort": effort} for effort in (0, 1, 3)},
    "start=identity": {"start": "identity"},
}


def folds(data: LabelledData, count: int) -> Iterator[LabelledData]:
    """Training objects split into those to learn from and those to ask with, `count` times."""
    n = len(data.train_labels)
    fold = np.random.default_rng(0).permutation(n) % count
    for i in range(count):
        learn, ask = np.flatnonzero(fold != i), np.flatnonzero(fold == i)
        yield LabelledData(
            {name: array[learn] for name, array in data.train.items()},
            {name: array[ask] for name, array in data.train.items()},
            data.train_labels[learn],
            data.train_labels[ask],
        )


@click.command()
@click.option(
    "--wiki", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="The Wiki data set, an .npz."
)
@click.option("--bits", multiple=True, type=int, default=(16, 64), show_default=True)
@click.option("--count", type=click.IntRange(2), default=3, show_default=True, help="Folds.")
@click.option("--only", multiple=True, help="Only settings whose name has this in it.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def main(wiki: Path | None, bits: tuple[int, ...], count: int, only: tuple[str, ...], as_json: bool) -> None:
    """Print the mean MAP@50 of each setting, over all and for each data set."""
    emoji = load_emoji()
    sets = {
        "emoji": LabelledData(
            dict(emoji.train.features), dict(emoji.test.features), emoji.train.labels, emoji.test.labels
        )
    }
    if wiki is not None:
        sets["wiki"] = load_dataset(wiki)
    results: dict[str, dict[str, float]] = {}
    for name, changes in CHANGES.items():
        if only and not any(part in name for part in only):
            continue
        scores = {
            key: fmean(
                fmean(evaluate(CCQ(bits=length, seed=i, **changes).fit(part.train), part).values())
                for length in bits
                for i, part in enumerate(folds(data, count))
            )
            for key, data in sets.items()
        }
        results[name] = {"all": fmean(scores.values()), **scores}
        if not as_json:
            click.echo(f"{name:28s}" + "".join(f"  {key} {score:.4f}" for key, score in results[name].items()))
    if as_json:
        click.echo(json.dumps(results))


if __name__ == "__main__":
    main()
