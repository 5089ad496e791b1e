"""Results into docs/peers.md: `python -m benchmarks.peers.document FILE...`, in the order of the files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from benchmarks.peers.results import Report
from benchmarks.peers.tables import in_full

PAGE = Path(__file__).parents[2] / "docs" / "peers.md"
BEGIN, END = "<!-- results, written by benchmarks.peers.document -->", "<!-- end of results -->"


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--page", default=PAGE, type=click.Path(exists=True, dir_okay=False, path_type=Path), help="The document."
)
def main(files: tuple[Path, ...], page: Path) -> None:
    """Write the tables of FILES, which `--json` of a run made, between the marks of the page."""
    try:
        reports = [Report.read(file) for file in files]
        page.write_text(with_results(page.read_text(encoding="utf-8"), reports), encoding="utf-8")
    except ValueError as error:
        raise click.ClickException(str(error)) from None


def with_results(page: str, reports: Sequence[Report]) -> str:
    """The page with what is between the marks replaced.

    Raises
    ------
    ValueError
        A mark is missing.
    """
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"expected the marks {BEGIN!r} and {END!r} in the page, in this order")
    written = "\n\n".join(f"### {report.items:,} items\n\n{in_full(report)}" for report in reports)
    return f"{head}{BEGIN}\n\n{written}\n\n{END}{tail}"


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.peers.document")
