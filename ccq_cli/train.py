"""`ccq train`."""

from __future__ import annotations

from typing import Any

import click

from ccq_cli.console import err, training_progress
from ccq_cli.data import TRAINING_HELP, is_parquet, open_batches, read_features
from ccq_cli.options import model_parameters, training_options
from ccq_core import CCQ
from ccq_core.batches import ROWS
from ccq_core.modelfile import check_writable
from ccq_core.quantizer import K


@click.command("train", epilog=TRAINING_HELP)
@click.argument("data", nargs=-1, required=True)
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False), help="Model file to write.")
@click.option(
    "--batch-rows",
    type=click.IntRange(1),
    help=f"Leave DATA on disk and hold so many objects in memory at a time; {ROWS} for Parquet.",
)
@training_options
def command(data: tuple[str, ...], output: str, batch_rows: int | None, **options: Any) -> None:
    """Train a model on DATA and write it to a file."""
    check_writable(output)
    in_batches = batch_rows is not None or any(map(is_parquet, data))
    features = open_batches(data, batch_rows or ROWS) if in_batches else read_features(data)
    model = CCQ.preset(**model_parameters(options))
    with training_progress("training") as report:
        model.fit(features, callback=report)
    model.save(output)
    rows = model.objects_ or 0
    if rows < 10 * K * model.bits // 8:
        err.print(
            f"note: {rows:,} objects are few for {K * model.bits // 8:,} codewords; fewer bits may serve as well, "
            "`ccq evaluate` tells"
        )
    err.print(
        f"{output}: {model.bits} bits, {' + '.join(f'{n} ({p})' for n, p in model.dims.items())}, "
        f"{rows:,} objects, {len(model.losses_)} iterations, loss {model.losses_[-1]:.4f}"
    )
