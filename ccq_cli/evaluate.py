"""`ccq evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import fmean, pstdev
from typing import Any

import click
from click.core import ParameterSource
from rich.table import Table

from ccq_cli.console import err, out
from ccq_cli.data import column_option
from ccq_cli.options import model_parameters, training_options
from ccq_cli.shown import local_json_option, print_json
from ccq_cli.unlabelled import HELD_OUT, Unlabelled, mean, measure, read, show
from ccq_core import CCQ
from ccq_core.distances import Metric
from ccq_core.evaluation import LabelledData, evaluate
from ccq_core.files import Arrays

Models = Iterable[tuple[int, Callable[[Arrays], CCQ]]]


@click.command("evaluate")
@click.argument("data", nargs=-1, required=True)
@click.option("--seeds", type=click.IntRange(1), default=5, show_default=True, help="Models to train, one per seed.")
@click.option(
    "--model", "model_file", type=click.Path(exists=True, dir_okay=False), help="Evaluate this model instead."
)
@click.option("-r", "--results", type=click.IntRange(1), default=50, show_default=True, help="The R of MAP@R.")
@column_option
@local_json_option
@training_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    data: tuple[str, ...],
    seeds: int,
    model_file: str | None,
    results: int,
    columns: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Measure how good retrieval is on DATA: MAP@R of every task by labels, or without labels the recall of partners.

    With labels, DATA is an .npz file with NAME_train and NAME_test for each modality, label_train and label_test (one
    label per row, or a 0/1 matrix). The training objects are the database, the test objects the queries.

    Without labels, DATA is such a file that has none, or NAME=FILE.npy for each modality (or an .npz file of arrays
    NAME, or files FILE.parquet with a column of lists for each), of which a tenth is held out. Each test object is then
    sought among all of them, by another of its modalities. With --model, DATA are objects that the model was not
    trained on.
    """
    given = read(data, columns)
    models = _models(model_file, seeds, options)
    if isinstance(given, LabelledData):
        _by_labels(given, models, results, options["metric"], as_json)
    elif ctx.get_parameter_source("results") is ParameterSource.COMMANDLINE:
        raise click.UsageError("-r is for data with labels: arrays label_train and label_test")
    else:
        _by_partners(given, models, 1.0 if model_file else HELD_OUT, options["metric"], as_json)


def _models(file: str | None, seeds: int, options: dict[str, Any]) -> Models:
    """Seeds, and what makes a model of objects with each: the model of a file, or one that is trained."""
    if file is not None:
        model = CCQ.load(file)
        yield 0, lambda _: model
        return
    with err.status("training") as status:
        for seed in range(options["seed"], options["seed"] + seeds):
            status.update(f"training, seed {seed}")
            yield seed, CCQ.preset(**model_parameters({**options, "seed": seed})).fit


def _by_labels(data: LabelledData, models: Models, results: int, metric: Metric | None, as_json: bool) -> None:
    runs = []
    for _, fit in models:
        model = fit(data.train)
        runs.append(evaluate(model, data, r=results, metric=metric))
    scores = {task: {"mean": fmean(v := [run[task] for run in runs]), "std": pstdev(v)} for task in runs[0]}
    if as_json:
        print_json({"bits": model.bits, "seeds": len(runs), "map": scores})
        return
    table = Table(title=f"MAP@{results}, {model.bits} bits, {metric or model.metric}", title_justify="left")
    table.add_column("query -> database")
    table.add_column("mean", justify="right")
    if len(runs) > 1:
        table.add_column("std", justify="right")
    for task, score in scores.items():
        table.add_row(task.replace("->", " -> "), *(f"{score[name]:.4f}" for name in ("mean", "std")[: len(runs)]))
    out.print(table)
    out.print(f"{len(runs)} {'model' if len(runs) == 1 else 'models'}, {len(data.test_labels):,} queries")


def _by_partners(data: Unlabelled, models: Models, share: float, metric: Metric | None, as_json: bool) -> None:
    runs = []
    for seed, fit in models:
        train, test = data.divided(share, seed)
        model = fit(train)
        runs.append(measure(model, test, metric))
    found = mean(runs)
    if as_json:
        print_json({"bits": model.bits, "seeds": len(runs), **found})
        return
    most = max((one["objects"] for one in found["evaluation"]), default=0)
    how = f"{most:,} objects, each sought among all of them by another of its modalities" if most else "one modality"
    models_made = f"{len(runs)} {'model' if len(runs) == 1 else 'models'}"
    out.print(f"{model.bits} bits, {metric or model.metric}, {models_made}; {how}")
    show(found)
