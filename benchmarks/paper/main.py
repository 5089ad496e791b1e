"""The driver: which experiments, on what, and where results go."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from benchmarks.paper import binarization, curves, search_time, semi, sensitivity, table, training
from benchmarks.paper.data import load_data
from benchmarks.paper.methods import methods, rivals
from benchmarks.paper.plan import BITS, Plan

FIGURES, REPORT, ALL = "figures", "report", "all"
MEASURED = (
    table.NAME, curves.NAME, binarization.NAME, semi.NAME, sensitivity.NAME, search_time.NAME, training.NAME,
)  # fmt: skip


def _numbers(_context: click.Context, _parameter: click.Parameter, value: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(part.replace("_", "")) for part in value.split(","))
    except ValueError:
        numbers = ()
    if not numbers or min(numbers) < 1:
        raise click.BadParameter(f"expected whole numbers from 1 up with commas between them, got {value!r}")
    return numbers


@click.command()
@click.argument(
    "experiments",
    nargs=-1,
    required=True,
    type=click.Choice([*MEASURED, FIGURES, REPORT, ALL]),
    metavar="EXPERIMENT...",
)
@click.option(
    "--wiki", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="The Wiki data set, an .npz."
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("build/paper"),
    show_default=True,
    help="Folder of CSV files and figures.",
)
@click.option("--seeds", type=click.IntRange(1), default=10, show_default=True, help="Seeds of `map`.")
@click.option(
    "--repeats", type=click.IntRange(1), default=3, show_default=True, help="Seeds of `binarization`, `semi`, `lambda`."
)
@click.option(
    "--bits", callback=_numbers, default=",".join(map(str, BITS)), show_default=True, help="Code lengths of `map`."
)
@click.option("--methods", "names", help="Only these methods, with commas between them; all by default.")
@click.option(
    "--search-items",
    callback=_numbers,
    default=",".join(map(str, search_time.SIZES)),
    show_default=True,
    help="Database sizes of `search-time`.",
)
@click.option(
    "--training-pairs",
    callback=_numbers,
    default=",".join(map(str, training.SIZES)),
    show_default=True,
    help="Sizes of `training`.",
)
@click.option(
    "--dims", nargs=2, type=click.IntRange(1), default=training.DIMS, show_default=True, help="Of `training`."
)
@click.option(
    "--limit", type=float, default=training.LIMIT, show_default=True, help="Seconds that one training may take."
)
@click.option(
    "--batch", type=click.IntRange(1), default=training.BATCH, show_default=True, help="Pairs of a mini-batch."
)
@click.option(
    "--reference",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The paper's table as JSON, for `report`; its Wiki columns are in the repository.",
)
@click.option(
    "--report",
    "report_file",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("docs/paper.md"),
    show_default=True,
    help="Where `report` writes; the figures go to a folder beside it.",
)
def main(
    experiments: Sequence[str],
    wiki: Path | None,
    output: Path,
    seeds: int,
    repeats: int,
    bits: tuple[int, ...],
    names: str | None,
    search_items: tuple[int, ...],
    training_pairs: tuple[int, ...],
    dims: tuple[int, int],
    limit: float,
    batch: int,
    reference: Path | None,
    report_file: Path,
) -> None:
    """Measure again what the paper measured, on Wiki and on emoji.

    EXPERIMENT is one or more of `map`, `curves`, `binarization`, `semi`, `lambda`, `search-time`, `training`; `figures`
    draws what has been measured, `report` draws it and writes the report; `all` is everything.

    Results are kept in CSV files: what is there is not measured again, so an interrupted run goes on where it was. Move
    the files away after a change to a method or to the data.
    """
    chosen = set(experiments)
    if ALL in chosen:
        chosen.update((*MEASURED, REPORT))
    found = methods()
    if not rivals():
        click.echo("benchmarks.rivals is not here: CCQ alone is measured")
    if names is not None:
        unknown = [name for name in names.split(",") if name not in found]
        if unknown:
            raise click.BadParameter(f"--methods: no {unknown[0]!r} among {', '.join(found)}")
        found = {name: found[name] for name in names.split(",")}
    if wiki is None and chosen & {table.NAME, curves.NAME, binarization.NAME, semi.NAME, sensitivity.NAME}:
        click.echo("--wiki is not given: emoji alone are measured")
    plan = Plan(load_data(wiki), found, output, seeds, repeats, bits, click.echo)
    try:
        for experiment in (table, curves, binarization, semi, sensitivity):
            if experiment.NAME in chosen:
                experiment.run(plan)
        if search_time.NAME in chosen:
            search_time.run(plan, search_items)
        if training.NAME in chosen:
            training.run(plan, training_pairs, dims, limit, batch)
        if chosen & {FIGURES, REPORT}:
            _draw(output, reference, report_file if REPORT in chosen else None)
    except ValueError as error:  # files and settings of no use
        raise click.ClickException(str(error)) from None


def _draw(output: Path, reference: Path | None, report_file: Path | None) -> None:
    # Here, so that measuring needs no matplotlib.
    try:
        from benchmarks.paper import figures, report
    except ModuleNotFoundError as error:
        raise click.ClickException(f"figures need matplotlib (pip install '.[bench]'): {error}") from None
    made = figures.draw_all(output)
    click.echo(f"{len(made)} figures in {output}")
    if report_file is not None:
        report.write(output, report_file, made, report.read_reference(reference))
        click.echo(f"{report_file} is written")
