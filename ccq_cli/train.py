"""`ccq train`."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from ccq_cli.api import connect_for_long, service_options
from ccq_cli.console import err, training_progress
from ccq_cli.data import TRAINING_HELP, column_option, is_parquet, open_batches, read_features
from ccq_cli.info import describe
from ccq_cli.jobview import detach_option, follow
from ccq_cli.options import NewName, model_parameters, training_options
from ccq_cli.shown import json_option, print_json
from ccq_cli.sizing import USUAL_BITS, few
from ccq_core import CCQ
from ccq_core.batches import ROWS
from ccq_core.modelfile import check_writable
from ccq_core.presets import PRESETS
from ccq_core.quantizer import K

_FOR_SERVICES = ("url", "collection", "detach")


@click.command("train", epilog=TRAINING_HELP)
@click.argument("data", nargs=-1)
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Model file to write.")
@click.option(
    "--name", type=NewName(), help="Instead of -o: train in a running service, and store the model there by this name."
)
@click.option("--collection", help="With --name, instead of DATA: train on what this collection keeps.")
@click.option(
    "--batch-rows",
    type=click.IntRange(1),
    help=f"Leave DATA on disk and hold so many objects in memory at a time; {ROWS} for Parquet.",
)
@column_option
@training_options
@detach_option
@json_option
@service_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    data: tuple[str, ...],
    output: str | None,
    name: str | None,
    collection: str | None,
    batch_rows: int | None,
    columns: tuple[str, ...],
    detach: bool,
    as_json: bool,
    url: str,
    api_key: str | None,
    **options: Any,
) -> None:
    """Train a model on DATA and write it to a file, or with --name train in a running service, and wait for that."""
    if (output is None) == (name is None):
        both = "" if output is None else ", not both"
        raise click.UsageError(f"expected -o FILE to train here, or --name MODEL to train in a service{both}")
    if name is None:
        given = [one for one in _FOR_SERVICES if ctx.get_parameter_source(one) is ParameterSource.COMMANDLINE]
        if given:
            raise click.UsageError(f"--{given[0]} is for training in a service: expected --name")
    elif batch_rows is not None:
        raise click.UsageError("--batch-rows is for training here: a service is sent all at once")
    if columns and not any(map(is_parquet, data)):
        raise click.UsageError("--column is for files FILE.parquet")
    if bool(data) == (collection is not None):
        other = ", or --collection" if name else ""
        raise click.UsageError(f"expected DATA to train on{other}{', not both' if data else ''}")
    if name is None:
        _train_here(data, str(output), batch_rows, columns, options, as_json)
        return
    settings = model_parameters(options)
    settings = {**PRESETS[settings.pop("name")], **settings}
    features = read_features(data, columns, complete=True) if data else None
    with connect_for_long(url, api_key) as client:
        job = client.models.train(name, features, collection=collection, **settings)
        follow(client, job, as_json, detach=detach)


def _train_here(
    data: tuple[str, ...],
    output: str,
    batch_rows: int | None,
    columns: tuple[str, ...],
    options: dict[str, Any],
    as_json: bool,
) -> None:
    check_writable(output)
    in_batches = batch_rows is not None or any(map(is_parquet, data))
    features = open_batches(data, batch_rows or ROWS, columns) if in_batches else read_features(data)
    model = CCQ.preset(**model_parameters(options))
    with training_progress("training") as report:
        model.fit(features, callback=report)
    model.save(output)
    rows = model.objects_ or 0
    if rows < K:
        err.print(
            f"note: {rows:,} object{'s are' if rows > 1 else ' is'} fewer than the {K} codewords of a codebook, which "
            "repeat them and learn nothing else: train on some thousand"
        )
    elif few(rows, model.bits) and model.bits > USUAL_BITS:
        err.print(
            f"note: {rows:,} objects are few for {K * model.bits // 8:,} codewords; fewer bits may serve as well; "
            'see "Choosing bits" in the documentation'
        )
    if as_json:
        print_json({"output": output, "objects": rows, **describe(model)})
        return
    err.print(
        f"{output}: {model.bits} bits, {' + '.join(f'{n} ({p})' for n, p in model.dims.items())}, "
        f"{rows:,} objects, {len(model.losses_)} iterations, loss {model.losses_[-1]:.4f}"
    )
