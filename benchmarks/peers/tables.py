"""A run as tables in Markdown: for people on a terminal, and for docs/peers.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.peers.measure import TARGET, AtEffort, Result, Searches
from benchmarks.peers.results import Report

_HOLDING = ["training s", "items/s indexed", "memory, indexed", "memory, restarted", "disk"]
_PLAIN = ["recall@10", "1: queries/s", "1: p50 / p99 ms", "64: queries/s", "64: p50 / p99 ms"]
_FILTERED = ["filtered: recall@10", "1: p50 ms", "64: queries/s"]


def summary(report: Report) -> str:
    """One row for each service, with the least effort that reaches the target; what misses it comes last.

    Memory and disk are bytes an item; filtered searches are at the default effort.
    """
    ordered = sorted(report.results, key=_by_speed_at_target)
    rows = [
        [_name(one, shown), *_holding(one), *_searching(shown), *_filtered(one)]
        for one in ordered
        for shown in [_shown(one)]
    ]
    return _table(["", *_HOLDING, *_PLAIN, *_FILTERED], rows)


def all_efforts(report: Report) -> str:
    """One row for each service and effort; defaults in bold."""
    rows = [[_name(one, at, bold=True), *_searching(at)] for one in report.results for at in one.efforts]
    return _table(["", *_PLAIN], rows)


def conditions(report: Report) -> str:
    """Where, with what and how it was measured, in a sentence or two."""
    services = ", ".join(dict.fromkeys(one.service for one in report.results))
    machine = report.machine
    limits = " and ".join(f"{load.rate:,.0f} by {connections}" for connections, load in report.client.items())
    return (
        f"{report.items:,} items, {report.queries:,} queries, seed {report.seed}, {report.seconds:g} s a load; "
        f"{machine.cores} cores ({machine.processor}) that server and client share, "
        f"Python {machine.python}; {services}. "
        f"The client itself gets {limits} connections, in replies a second from a server that only answers. "
        f"The run took {report.seconds_in_all / 60:.1f} minutes, and other programs took {_others(report)} of the "
        "processors while a service was measured."
    )


def in_full(report: Report) -> str:
    """Conditions and both tables."""
    least = (
        f"The least effort with recall@10 of at least {TARGET:g}, fastest first; † misses it. Memory and disk are "
        "bytes an item; filtered searches are at the default effort."
    )
    return "\n\n".join(
        [
            conditions(report),
            least,
            summary(report),
            "Every effort that was tried; defaults in bold.",
            all_efforts(report),
        ]
    )


def _others(report: Report) -> str:
    shares = [one.others for one in report.results]
    return f"{min(shares):.0%} to {max(shares):.0%}"


def _shown(result: Result) -> AtEffort:
    return result.at_target() or max(result.efforts, key=lambda at: at.plain.recall)


def _by_speed_at_target(result: Result) -> tuple[bool, float]:
    return result.at_target() is None, -_shown(result).plain.many.rate


def _name(result: Result, at: AtEffort, *, bold: bool = False) -> str:
    effort = f", {result.effort_name} {at.effort}" if result.effort_name else ""
    if bold:
        return f"**{result.name}{effort}**" if at.default else f"{result.name}{effort}"
    return f"{result.name}{effort}{'' if at.plain.recall >= TARGET else ' †'}"


def _holding(result: Result) -> list[str]:
    numbers = (result.training, result.indexed, result.memory, result.memory_again, result.disk)
    return [f"{number:,.0f}" for number in numbers]


def _searching(at: AtEffort) -> list[str]:
    one, many = at.plain.one, at.plain.many
    alone, together = f"{one.p50:.2f} / {one.p99:.2f}", f"{many.p50:.1f} / {many.p99:.1f}"
    return [_share(at.plain), f"{one.rate:,.0f}", alone, f"{many.rate:,.0f}", together]


def _filtered(result: Result) -> list[str]:
    found = result.filtered()
    if found is None:
        return ["-"] * len(_FILTERED)
    return [_share(found), f"{found.one.p50:.2f}", f"{found.many.rate:,.0f}"]


def _share(searches: Searches) -> str:
    return f"{searches.recall:.3f}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    marks = ["---", *["---:"] * (len(head) - 1)]
    lines = [[word for _, word in zip(head, line, strict=True)] for line in (head, marks, *rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
