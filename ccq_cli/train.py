"""`ccq train`."""

from __future__ import annotations

from typing import Any

import click

from ccq_cli.console import err, training_progress
from ccq_cli.data import DATA_HELP, read_features
from ccq_cli.options import model_parameters, training_options
from ccq_core import CCQ
from ccq_core.modelfile import check_writable
from ccq_core.quantizer import K


@click.command("train", epilog=DATA_HELP)
@click.argument("data", nargs=-1, required=True)
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False), help="Model file to write.")
@training_options
def command(data: tuple[str, ...], output: str, **options: Any) -> None:
    """Train a model on DATA and write it to a file."""
    check_writable(output)
    features = read_features(data)
    model = CCQ.preset(**model_parameters(options))
    with training_progress("training") as report:
        model.fit(features, callback=report)
    model.save(output)
    rows = len(next(iter(features.values())))
    if rows < 10 * K * model.bits // 8:
        err.print(
            f"note: {rows:,} objects are few for {K * model.bits // 8:,} codewords; fewer bits may serve as well, "
            "`ccq evaluate` tells"
        )
    err.print(
        f"{output}: {model.bits} bits, {' + '.join(f'{n} ({p})' for n, p in model.dims.items())}, "
        f"{rows:,} objects, {len(model.losses_)} iterations, loss {model.losses_[-1]:.4f}"
    )
