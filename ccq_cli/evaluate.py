"""`ccq evaluate`."""

from __future__ import annotations

from statistics import fmean, pstdev
from typing import Any

import click
from rich.table import Table

from ccq_cli.console import err, out
from ccq_cli.options import model_parameters, training_options
from ccq_cli.shown import local_json_option, print_json
from ccq_core import CCQ
from ccq_core.evaluation import evaluate, load_dataset


@click.command("evaluate")
@click.argument("dataset", type=click.Path(exists=True, dir_okay=False))
@click.option("--seeds", type=click.IntRange(1), default=5, show_default=True, help="Models to train, one per seed.")
@click.option(
    "--model", "model_file", type=click.Path(exists=True, dir_okay=False), help="Evaluate this model instead."
)
@click.option("-r", "--results", type=click.IntRange(1), default=50, show_default=True, help="The R of MAP@R.")
@local_json_option
@training_options
def command(
    dataset: str, seeds: int, model_file: str | None, results: int, as_json: bool, metric: str | None, **options: Any
) -> None:
    """Print MAP@R of every retrieval task on DATASET.

    DATASET is an .npz file with NAME_train and NAME_test for each modality, label_train and label_test (one label per
    row, or a 0/1 matrix). The training objects are the database, the test objects the queries.
    """
    data = load_dataset(dataset)
    runs: list[dict[str, float]] = []
    if model_file is not None:
        model = CCQ.load(model_file)
        runs.append(evaluate(model, data, r=results, metric=metric))
    else:
        first = options["seed"]
        with err.status("training") as status:
            for seed in range(first, first + seeds):
                status.update(f"training, seed {seed}")
                parameters = model_parameters({**options, "metric": metric, "seed": seed})
                model = CCQ.preset(**parameters).fit(data.train)
                runs.append(evaluate(model, data, r=results))
    scores = {task: {"mean": fmean(v := [run[task] for run in runs]), "std": pstdev(v)} for task in runs[0]}
    if as_json:
        print_json({"bits": model.bits, "seeds": len(runs), "map": scores})
        return
    table = Table(title=f"MAP@{results}, {model.bits} bits, {metric or model.metric}", title_justify="left")
    table.add_column("query -> database")
    table.add_column("mean", justify="right")
    table.add_column("std", justify="right")
    for task, score in scores.items():
        table.add_row(task.replace("->", " -> "), f"{score['mean']:.4f}", f"{score['std']:.4f}")
    out.print(table)
    out.print(f"{len(runs)} {'model' if len(runs) == 1 else 'models'}, {len(data.test_labels):,} queries")
