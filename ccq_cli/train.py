"""`ccq train`."""

from __future__ import annotations

from typing import Any

import click

from ccq_cli.console import out, training_progress
from ccq_cli.data import DATA_HELP, read_features
from ccq_cli.options import model_parameters, training_options
from ccq_core import CCQ


@click.command("train", epilog=DATA_HELP)
@click.argument("data", nargs=-1, required=True)
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False), help="Model file to write.")
@training_options
def command(data: tuple[str, ...], output: str, **options: Any) -> None:
    """Train a model on DATA and write it to a file."""
    features = read_features(data)
    model = CCQ.preset(**model_parameters(options))
    with training_progress("training") as report:
        model.fit(features, callback=report)
    model.save(output)
    rows = len(next(iter(features.values())))
    out.print(
        f"{output}: {model.bits} bits, {' + '.join(f'{n} ({p})' for n, p in model.dims.items())}, "
        f"{rows:,} objects, {len(model.losses_)} iterations, loss {model.losses_[-1]:.4f}"
    )
