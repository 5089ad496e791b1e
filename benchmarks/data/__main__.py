"""`python -m benchmarks.data`: the paper's protocol on published files, or an `.npz` of them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import click

from benchmarks.data import load_flickr1m, load_nus_wide, save, training_sample, unlabelled_pairs
from ccq_core import CCQ
from ccq_core.evaluation import LabelledData, evaluate

LOADERS: dict[str, Callable[..., LabelledData]] = {"nus-wide": load_nus_wide, "flickr1m": load_flickr1m}
_dataset = click.argument("dataset", type=click.Choice(list(LOADERS)))
_folder = click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))


@click.group()
def main() -> None:
    """Read the published files of NUS-WIDE or Flickr1M in FOLDER."""


@main.command("save")
@_dataset
@_folder
@click.argument("output", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--seed", default=0, show_default=True, help="Draws the queries.")
def save_command(dataset: str, folder: Path, output: Path, seed: int) -> None:
    """Write database and queries to OUTPUT, an .npz file."""
    with _explained():
        data = LOADERS[dataset](folder, seed=seed)
    save(data, output)
    click.echo(f"{len(data.train_labels):,} pairs and {len(data.test_labels):,} queries in {output}")


@main.command("evaluate")
@_dataset
@_folder
@click.option("--bits", default="32", show_default=True, help="Code lengths, with commas between them.")
@click.option("--seeds", type=click.IntRange(1), default=10, show_default=True)
@click.option("--preset", type=click.Choice(["default", "paper"]), default="default", show_default=True)
@click.option("--preprocess", help="Other steps than the preset's.")
def evaluate_command(dataset: str, folder: Path, bits: str, seeds: int, preset: str, preprocess: str | None) -> None:
    """Print MAP@50 of every task, mean and standard deviation over seeds, each of which also draws queries.

    NUS-WIDE is trained on 10,000 pairs of the database; Flickr1M on all unlabelled pairs where this version trains on
    batches, else on 10,000 pairs of the database too.
    """
    changes = {} if preprocess is None else {"preprocess": preprocess}
    click.echo("bits,task,mean,std")
    with _explained():
        for length in map(int, bits.split(",")):
            runs = []
            for seed in range(seeds):
                data = LOADERS[dataset](folder, seed=seed)
                model = CCQ.preset(preset, bits=length, seed=seed, **changes)
                fit: Callable[[Any], object] = model.fit
                fit(_training(dataset, folder, data, seed))
                runs.append(evaluate(model, data))
            for task in runs[0]:
                scores = [run[task] for run in runs]
                click.echo(f"{length},{task},{fmean(scores):.4f},{pstdev(scores):.4f}")


def _training(dataset: str, folder: Path, data: LabelledData, seed: int) -> Any:
    if dataset == "flickr1m" and importlib.util.find_spec("ccq_core.batches"):
        return unlabelled_pairs(folder)
    return training_sample(data, min(10_000, len(data.train_labels)), seed)


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise click.ClickException(str(error)) from None


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.data")
