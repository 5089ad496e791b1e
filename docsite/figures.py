"""Draws the figures of docs/explanation/method.md from a real model of the emoji: `python -m docsite.figures`.

Each figure shows numbers of that model, except the codebooks: those of 32 dimensions cannot be seen, so two small ones
are trained on two of its principal axes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from ccq_core import CCQ
from ccq_core.datasets import EmojiDataset, load_emoji

FOLDER = Path(__file__).parents[1] / "docs/images"
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#E69F00", "#009E73", "0.6"
"""Okabe and Ito's colours, which colour-blind readers can tell apart."""

# Any: the names of these settings are a type of matplotlib's own, and differ between its versions.
_STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.hashsalt": "ccq",
    "svg.fonttype": "path",
}
_SHOWN = ("cat face", "full moon", "blue heart", "flag: Japan", "pizza")
Array = NDArray[Any]


def draw_all(folder: Path = FOLDER) -> list[Path]:
    """Draw every figure into a folder; the files, SVG."""
    emoji = load_emoji()
    model = CCQ(bits=32, seed=0).fit(emoji.all.features)
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    with mpl.rc_context(_STYLE):
        for name, figure in (
            ("space", space(model, emoji)),
            ("codebooks", codebooks(model, emoji)),
            ("look-up", look_up(model, emoji)),
            ("norm-byte", norm_byte(model, emoji)),
        ):
            path = folder / f"{name}.svg"
            figure.savefig(path, metadata={"Date": None}, dpi=150)
            made.append(path)
    return made


def space(model: CCQ, emoji: EmojiDataset) -> Figure:
    """Pictures and words in the shared space, some pairs joined by a line; and how near pairs are, and strangers."""
    pictures, words = (model.project({name: emoji.all.features[name]}) for name in ("image", "text"))
    figure, (left, right) = _panels(2, (8.2, 4.1))
    clouds = np.split(_axes_of(np.concatenate([pictures, words])), 2)
    rows = [emoji.all.names.index(name) for name in _SHOWN]
    for cloud, color, label in zip(clouds, (BLUE, ORANGE), ("pictures", "words"), strict=True):
        left.scatter(*_xy(cloud), s=4, color=color, alpha=0.25, linewidths=0, rasterized=True)
        left.scatter(*_xy(cloud[rows]), s=26, color=color, label=label, zorder=3, edgecolor="white", linewidth=0.6)
    pairs = np.stack([cloud[rows] for cloud in clouds], axis=1)
    left.add_collection(LineCollection(list(pairs), colors="0.25", linewidths=1, zorder=2))
    for name, (picture, _) in zip(_SHOWN, pairs, strict=True):
        left.annotate(name, picture, xytext=(6, -3), textcoords="offset points", fontsize=8)
    left.set(xticks=[], yticks=[], title="the shared space, two axes of 32")
    left.legend(loc="lower right", fontsize=8)
    units = [z / np.linalg.norm(z, axis=1, keepdims=True) for z in (pictures, words)]
    own = np.einsum("nd,nd->n", *units)
    others = np.einsum("nd,nd->n", units[0], np.roll(units[1], 901, axis=0))
    for values, color, label in (
        (others, GREY, "a picture, words of another"),
        (own, GREEN, "a picture, its own words"),
    ):
        right.hist(values, bins=60, range=(-1, 1), color=color, alpha=0.75, label=label)
    right.set(
        ylim=(0, 215), xlabel="cosine in the shared space", ylabel="emoji", title="pairs are near, strangers are not"
    )
    right.legend(loc="upper left", fontsize=8)
    return figure


def codebooks(model: CCQ, emoji: EmojiDataset) -> Figure:
    """Two codebooks of four codewords in the plane make sixteen points: each is a sum of one of both."""
    points = _axes_of(model.project(emoji.all.features), 3)
    first, second = _two_codebooks(points, 4)
    figure, (left, right) = _panels(2, (8.2, 4.1))
    for panel in (left, right):
        panel.scatter(*_xy(points[::2]), s=4, color=GREY, alpha=0.4, linewidths=0, rasterized=True)
        panel.set(xticks=[], yticks=[], aspect="equal")
    left.scatter(*_xy(first), color=BLUE, s=50, label="codebook 1", zorder=3)
    left.scatter(*_xy(second), color=ORANGE, marker="D", s=40, label="codebook 2", zorder=3)
    left.legend(loc="lower left", fontsize=8)
    left.set_title("2 codebooks of 4 codewords: 2 + 2 bits an item")
    for word in first:
        sums = word + second
        right.plot(*np.stack([np.repeat(word[None], 4, 0), sums], 1).reshape(-1, 2).T, color="0.7", lw=0.8, zorder=1)
        right.scatter(*_xy(sums), color=GREEN, s=32, zorder=3)
        right.scatter(word[0], word[1], color=BLUE, s=32, zorder=2)
    right.set_title("their 16 sums stand for all items")
    return figure


def _two_codebooks(points: Array, size: int, rounds: int = 20) -> tuple[Array, Array]:
    """Two codebooks (size, 2) float64 whose sums fit points (n, 2): least squares, and all pairs tried for codes."""
    rng = np.random.default_rng(0)
    words: Array = np.stack([points[rng.choice(len(points), size, replace=False)] * scale for scale in (1.0, 0.4)])
    for _ in range(rounds):
        sums = (words[0][:, None] + words[1][None]).reshape(-1, 2)
        best = ((points[:, None] - sums[None]) ** 2).sum(axis=2).argmin(axis=1)
        chosen = np.zeros((len(points), 2 * size))
        chosen[np.arange(len(points)), best // size] = 1
        chosen[np.arange(len(points)), size + best % size] = 1
        # Moving a constant from one codebook to the other changes no sum, so the matrix is singular without a ridge.
        gram = chosen.T @ chosen + 1e-6 * np.eye(2 * size)
        words = np.linalg.solve(gram, chosen.T @ points).reshape(2, size, 2)
    shift = words[1].mean(axis=0)
    return words[0] + shift, words[1] - shift


def look_up(model: CCQ, emoji: EmojiDataset) -> Figure:
    """The tables of one query, and how the five bytes of one item pick their entries."""
    row = emoji.all.names.index("cat face")
    tables = model.distance_tables({"text": emoji.embed_text(["cat"])})
    code = model.encode({"image": emoji.all.features["image"][row : row + 1]})[0]
    planes, width = tables.planes[0], 1.0
    figure = Figure(figsize=(8.2, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.axis("off")
    axes.set(xlim=(-2.6, 10.4), ylim=(-1.1, 4.9))
    scale = np.abs(planes[:-1]).max()
    shown = 32
    for m, plane in enumerate(planes):
        at = 4 - m * 0.95
        norm = m == len(planes) - 1
        bright = np.abs(plane).max() if norm else scale
        value = int(code[m])
        first = min(max(value - shown // 2, 0), 256 - shown)
        axes.imshow(
            plane[None, first : first + shown] / bright,
            extent=(0, 6.4, at, at + 0.5),
            cmap="Greens" if norm else "PuOr",
            vmin=-1 if not norm else 0,
            vmax=1,
            aspect="auto",
        )
        left = (value - first) * 6.4 / shown
        axes.add_patch(Rectangle((left, at), 6.4 / shown, 0.5, fill=False, edgecolor="black", lw=1.6, zorder=4))
        axes.add_patch(Rectangle((-2.5, at), width, 0.5, facecolor=GREEN if norm else BLUE))
        axes.text(-2.0, at + 0.25, str(value), color="white", ha="center", va="center", weight="bold")
        axes.annotate(
            "", (left, at + 0.25), (-1.5, at + 0.25), arrowprops={"arrowstyle": "->", "color": "0.4"}, zorder=3
        )
        label = f"N[{value}] = {plane[value]:.3f}" if norm else f"T{m + 1}[{value}] = {plane[value]:+.3f}"
        axes.text(6.7, at + 0.25, label, va="center", family="monospace")
    total = float(planes[np.arange(len(code) - 1), code[:-1]].sum(dtype=np.float64))
    cosine = total * float(planes[-1, code[-1]])
    axes.text(-2.0, 4.7, "item", ha="center", weight="bold")
    axes.text(3.2, 4.7, "tables of the query, 256 entries each (32 shown)", ha="center", weight="bold")
    axes.text(6.7, 4.7, "picked", weight="bold")
    axes.text(
        3.2,
        -0.8,
        f"1 + ({total:+.3f}) · {planes[-1, code[-1]]:.3f} = {1 + cosine:.3f}: "
        "the distance of “cat” and the picture “cat face”",
        ha="center",
    )
    return figure


def norm_byte(model: CCQ, emoji: EmojiDataset) -> Figure:
    """How long reconstructions are, where the 256 levels lie, and what the norm byte keeps of the order."""
    features = emoji.all.features
    reconstructed = model.decode(model.encode(features))
    figure, (left, right) = _panels(2, (8.2, 3.4))
    left.hist(np.linalg.norm(reconstructed, axis=1), bins=60, color=BLUE, alpha=0.8)
    left.plot(np.sqrt(model.norm_levels_), np.full(256, -4), "|", color=GREEN, ms=7, label="the 256 levels")
    left.set(xlabel="length of a reconstruction", ylabel="emoji")
    left.legend()
    exact = np.linalg.norm(reconstructed, axis=1)
    byte = np.sqrt(model.norm_levels_[model.encode(features)[:, -1]])
    right.hist(100 * (byte / exact - 1), bins=60, color=GREEN)
    right.set(xlabel="error of the length by the norm byte, per cent", ylabel="emoji")
    return figure


def _axes_of(points: Array, first: int = 0) -> Array:
    """Points (n, 2) on two principal axes of points (n, D), from the `first` on; the sign of each axis is fixed."""
    centred = points.astype(np.float64) - points.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    axes = axes[first : first + 2]
    turned: Array = centred @ (axes * np.sign(axes.sum(axis=1, keepdims=True))).T
    return turned


def _xy(points: Array) -> tuple[Array, Array]:
    """The columns of points (n, 2)."""
    return points[:, 0], points[:, 1]


def _panels(columns: int, size: tuple[float, float]) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(1, columns, squeeze=False)
    return figure, list(axes.flat)


if __name__ == "__main__":
    draw_all()
