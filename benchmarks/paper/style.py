"""How the figures look: two columns of a paper, one colour and marker per method throughout."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLUMN, PAGE = 3.4, 7.1
"""Widths in inches."""

# Any: the names of these settings are a type of matplotlib's own, and differ between its versions.
_RC: Any = {
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.labelsize": 8.5,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 8,
    "axes.linewidth": 0.6,
    "axes.edgecolor": "0.35",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "0.9",
    "grid.linewidth": 0.5,
    "xtick.color": "0.2",
    "ytick.color": "0.2",
    "xtick.major.width": 0.5,
    "ytick.major.width": 0.5,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "lines.linewidth": 1.0,
    "lines.markersize": 3.6,
    "lines.markeredgewidth": 0.7,
    "errorbar.capsize": 1.5,
    "legend.frameon": False,
    "legend.handlelength": 2.2,
    "legend.columnspacing": 1.4,
    "hatch.linewidth": 0.5,
    "figure.constrained_layout.use": True,
    "svg.hashsalt": "ccq",
}


@dataclass(frozen=True)
class Look:
    """Colour, marker and line of one series."""

    color: str
    marker: str
    line: str = "-"

    def line_kwargs(self) -> dict[str, Any]:
        """For `Axes.plot` and `Axes.errorbar`; markers are hollow, so that lines below them stay visible."""
        return {"color": self.color, "marker": self.marker, "linestyle": self.line, "markerfacecolor": "white"}


# Okabe and Ito's palette, which colour-blind readers can tell apart.
_BLUE, _SKY, _ORANGE, _GREEN = "#0072B2", "#56B4E9", "#E69F00", "#009E73"
_RED, _PURPLE, _BLACK, _BROWN = "#D55E00", "#CC79A7", "#222222", "#8C6D31"
LOOKS = {
    "CCQ": Look(_BLUE, "o"),
    "CCQ, mini-batches": Look(_SKY, "s"),
    "CCQ-paper": Look(_SKY, "s", "--"),
    "CCQ, as published": Look("0.45", "x", ":"),
    "CVH": Look(_ORANGE, "^"),
    "CVH-magnitude": Look(_ORANGE, "1", ":"),
    "IMH": Look(_GREEN, "v"),
    "CorrAE": Look(_PURPLE, "D"),
    "CMSSH": Look(_BROWN, "<", "-."),
    "SCM-seq": Look(_RED, ">", "-."),
    "SCM-orth": Look(_RED, "4", ":"),
    "QCH": Look(_BLACK, "p", "-."),
    "Hamming (Faiss)": Look(_RED, "D"),
    "Hamming (NumPy)": Look(_ORANGE, "^", "--"),
}
_SPARE = [Look(color, marker) for color, marker in zip((_GREEN, _PURPLE, _BROWN, _BLACK), "Ph8*", strict=True)]


def styled() -> AbstractContextManager[None]:
    """Everything drawn inside looks as it should."""
    return mpl.rc_context(_RC)


def look(name: str) -> Look:
    """The look of a method; a method that is not known here gets a spare one by its name."""
    return LOOKS.get(name) or _SPARE[sum(name.encode()) % len(_SPARE)]


def in_order(names: Iterable[str]) -> list[str]:
    """Methods in the order of `LOOKS`, those unknown behind them."""
    known = list(LOOKS)
    return sorted(set(names), key=lambda name: (known.index(name) if name in LOOKS else len(known), name))


def new_figure(
    rows: int, columns: int, *, width: float = PAGE, height: float = 1.75, **shared: Any
) -> tuple[Figure, list[Axes]]:
    """A figure of panels, `height` inches each, row by row."""
    figure = Figure(figsize=(width, rows * height + 0.3), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **shared)
    return figure, list(axes.flat)


def legend(figure: Figure, axes: Iterable[Axes], columns: int | None = None) -> None:
    """One legend for all panels, above them: methods in their order, in two lines if there are many."""
    found: dict[str, Any] = {}
    for panel in axes:
        handles, labels = panel.get_legend_handles_labels()
        for handle, label in zip(handles, labels, strict=True):
            found.setdefault(label, handle)
    labels = in_order(found) if set(found) <= set(LOOKS) else list(found)
    columns = columns or (len(found) if len(found) <= 8 else -(-len(found) // 2))
    figure.legend([found[label] for label in labels], labels, loc="outside upper center", ncols=columns)


def save(figure: Figure, folder: Path, name: str) -> Path:
    """Write NAME.svg and NAME.png; the SVG's path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.svg"
    figure.savefig(path, metadata={"Date": None})
    figure.savefig(path.with_suffix(".png"), dpi=200)
    return path
