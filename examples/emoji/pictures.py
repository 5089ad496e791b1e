"""Emoji pictures from a colour bitmap font, and image features of them: HOG, colours, thumbnail, silhouette."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import uharfbuzz
from fontTools.ttLib import TTFont
from PIL import Image

SIDE = 136
"""Pictures are padded to squares of this many pixels: 8 cells of 17, and 17 cells of 8."""

Floats = npt.NDArray[np.float64]


def render(glyphs: Sequence[str], font_path: Path) -> npt.NDArray[np.uint8]:
    """The font's bitmap of each emoji, RGBA, (n, height, width, 4) uint8.

    Shaping joins a sequence (flag, family, profession, keycap) into one glyph; a sequence that stays several glyphs
    has no picture of its own and is a ValueError.
    """
    tables = TTFont(font_path)
    bitmaps = tables["CBDT"].strikeData[0]
    font = uharfbuzz.Font(uharfbuzz.Face(uharfbuzz.Blob.from_file_path(str(font_path))))
    pictures = []
    for text in glyphs:
        buffer = uharfbuzz.Buffer()
        buffer.add_str(text)
        buffer.guess_segment_properties()
        uharfbuzz.shape(font, buffer)
        shaped = [tables.getGlyphName(info.codepoint) for info in buffer.glyph_infos]
        if len(shaped) != 1 or shaped[0] not in bitmaps:
            points = " ".join(f"U+{ord(character):04X}" for character in text)
            raise ValueError(f"{points}: expected one glyph with a bitmap, got {shaped}")
        picture = Image.open(io.BytesIO(bitmaps[shaped[0]].imageData)).convert("RGBA")
        pictures.append(np.asarray(picture))
    return np.stack(pictures)


def image_blocks(pictures: npt.NDArray[np.uint8]) -> Floats:
    """Image features (n, P) of RGBA pictures: six blocks, each of length one in every row."""
    colours, opacity = on_white_squares(pictures)
    blocks = [
        hog(colours, cell=17, bins=9, signed=False),
        hog(colours, cell=17, bins=12, signed=True),
        hog(shrink(colours, 2), cell=17, bins=9, signed=False),
        colour_histogram(colours, opacity),
        unit_rows(1.0 - shrink(colours, 8)),
        unit_rows(shrink(opacity, 8)),
    ]
    return np.concatenate(blocks, axis=1)


def on_white_squares(pictures: npt.NDArray[np.uint8]) -> tuple[Floats, Floats]:
    """Colours on white (n, 136, 136, 3) and opacity (n, 136, 136), both in 0..1, pictures centred in the square."""
    count, height, width, _ = pictures.shape
    top, left = (SIDE - height) // 2, (SIDE - width) // 2
    padded = np.zeros((count, SIDE, SIDE, 4))
    padded[:, top : top + height, left : left + width] = pictures / 255.0
    opacity = padded[..., 3]
    return padded[..., :3] * opacity[..., None] + 1.0 - opacity[..., None], opacity


def shrink(images: Floats, factor: int) -> Floats:
    """Mean over squares of `factor` x `factor` pixels, (n, h, w, ...) to (n, h / factor, w / factor, ...)."""
    count, height, width = images.shape[:3]
    tiles = images.reshape(count, height // factor, factor, width // factor, factor, *images.shape[3:])
    return np.asarray(tiles.mean(axis=(2, 4)))


def unit_rows(values: Floats) -> Floats:
    """Each item's values as one row of length one, (n, P); all-zero rows stay."""
    rows = values.reshape(len(values), -1)
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9))


def hog(images: Floats, *, cell: int, bins: int, signed: bool) -> Floats:
    """Histograms of oriented gradients, (n, blocks * 4 * bins), rows of length one.

    Per pixel the strongest channel's gradient, shared between its two nearest of `bins` orientations (of a half
    turn, or of a full turn where `signed`); per block of 2 x 2 cells of `cell` pixels normalised, clipped at 0.2.
    """
    dy, dx = np.zeros_like(images), np.zeros_like(images)
    dy[:, 1:-1] = images[:, 2:] - images[:, :-2]
    dx[:, :, 1:-1] = images[:, :, 2:] - images[:, :, :-2]
    strongest = (dx**2 + dy**2).argmax(axis=-1)[..., None]
    dx = np.take_along_axis(dx, strongest, -1)[..., 0]
    dy = np.take_along_axis(dy, strongest, -1)[..., 0]
    magnitude = np.hypot(dx, dy)
    period = 2.0 * np.pi if signed else np.pi
    place = np.arctan2(dy, dx) % period / period * bins
    lower = np.floor(place).astype(np.int64)
    share = place - lower
    lower %= bins
    cells = np.stack(
        [
            shrink(magnitude * ((lower == k) * (1.0 - share) + ((lower + 1) % bins == k) * share), cell)
            for k in range(bins)
        ],
        axis=-1,
    )
    blocks = np.concatenate([cells[:, :-1, :-1], cells[:, 1:, :-1], cells[:, :-1, 1:], cells[:, 1:, 1:]], axis=-1)
    blocks = np.minimum(blocks / (np.linalg.norm(blocks, axis=-1, keepdims=True) + 0.05), 0.2)
    return unit_rows(blocks)


def colour_histogram(images: Floats, opacity: Floats) -> Floats:
    """Square roots of a colour histogram, (n, 40), rows of length one: 12 hues x 3 values, then 4 greys.

    Pixels count by their opacity.
    """
    red, green, blue = (images[..., channel] for channel in range(3))
    value = images.max(axis=-1)
    chroma = value - images.min(axis=-1)
    divisor = np.maximum(chroma, 1e-9)
    hue = np.where(
        value == red,
        (green - blue) / divisor % 6.0,
        np.where(value == green, (blue - red) / divisor + 2.0, (red - green) / divisor + 4.0),
    )
    hue_bin = np.minimum((hue * 2.0).astype(np.int64), 11)
    coloured = chroma > 0.2 * value
    bins = np.where(
        coloured,
        hue_bin * 3 + np.minimum((value * 3.0).astype(np.int64), 2),
        36 + np.minimum((value * 4.0).astype(np.int64), 3),
    )
    counts = [((bins == number) * opacity).sum(axis=(1, 2)) for number in range(40)]
    return unit_rows(np.sqrt(np.stack(counts, axis=1)))
