"""Build `ccq_core/datasets/emoji.npz`, the emoji data set that ships with the project. For developers only.

Needs three Debian packages, the project itself and the Python packages of `requirements.txt`:

    apt-get install fonts-noto-color-emoji unicode-cldr-core unicode-data
    pip install -e .
    pip install -r examples/emoji/requirements.txt
    python examples/emoji/build.py

`--output FILE` writes elsewhere, `--sheet FILE.png` also draws every picture, to check by eye that each emoji got
its own. The same packages on the same machine give the same bytes; other builds of the linear algebra library may
round some last digits differently.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import sys
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from ccq_core.datasets.emoji import KEYWORD_SEPARATOR, item_text  # noqa: E402
from ccq_core.datasets.text import TextProjection, term_weights  # noqa: E402
from examples.emoji.pictures import image_blocks, render  # noqa: E402

EMOJI_TEST = Path("/usr/share/unicode/emoji/emoji-test.txt")
ANNOTATIONS = [Path(f"/usr/share/unicode/cldr/common/{name}/en.xml") for name in ("annotations", "annotationsDerived")]
FONT = Path("/usr/share/fonts/truetype/noto/NotoColorEmoji.ttf")
OUTPUT = ROOT / "ccq_core" / "datasets" / "emoji.npz"

SKIN_TONES = range(0x1F3FB, 0x1F400)
VARIATION_SELECTOR = "\ufe0f"
DIMENSIONS = 128
HELD_OUT = 500
SPLIT_SEED = 20240
SIGNATURE_WEIGHT = 0.2
"""How much of its own signature a word keeps: more finds rare words better, less groups related texts better."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Emoji:
    """One emoji of the list with its English annotations."""

    glyph: str
    name: str
    keywords: tuple[str, ...]
    group: str
    subgroup: str


def read_emoji_list(path: Path) -> list[tuple[str, str, str]]:
    """(glyph, group, subgroup) of every fully-qualified emoji without a skin tone, in file order."""
    rows = []
    group = subgroup = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# group: "):
            group = line.removeprefix("# group: ").strip()
        elif line.startswith("# subgroup: "):
            subgroup = line.removeprefix("# subgroup: ").strip()
        elif "; fully-qualified" in line:
            points = [int(field, 16) for field in line.split(";")[0].split()]
            if not any(point in SKIN_TONES for point in points):
                rows.append(("".join(map(chr, points)), group, subgroup))
    return rows


def read_annotations(paths: Sequence[Path]) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """Names and keywords by emoji, the emoji written without variation selectors as CLDR does."""
    names: dict[str, str] = {}
    keywords: dict[str, tuple[str, ...]] = {}
    for path in paths:
        for element in ET.parse(path).iter("annotation"):
            glyph, text = element.attrib["cp"], element.text or ""
            if element.get("type") == "tts":
                names[glyph] = text.strip()
            else:
                keywords[glyph] = tuple(word.strip() for word in text.split("|"))
    return names, keywords


def read_emoji() -> list[Emoji]:
    """The emoji of the list that CLDR annotates; those newer than the CLDR release are left out."""
    names, keywords = read_annotations(ANNOTATIONS)
    emoji = []
    for glyph, group, subgroup in read_emoji_list(EMOJI_TEST):
        plain = glyph.replace(VARIATION_SELECTOR, "")
        if plain in names and plain in keywords:
            emoji.append(Emoji(glyph, names[plain], keywords[plain], group, subgroup))
    return emoji


def held_out_mask(count: int) -> npt.NDArray[np.bool_]:
    """True for the `HELD_OUT` rows of the test part, drawn at random with a fixed seed."""
    mask = np.zeros(count, dtype=bool)
    # The generator of RandomState is frozen by numpy's compatibility policy, unlike that of default_rng.
    mask[np.random.RandomState(SPLIT_SEED).permutation(count)[:HELD_OUT]] = True
    return mask


def fix_signs(directions: Floats) -> Floats:
    """Turn each row so that its entry of largest magnitude is positive: an SVD leaves the sign open."""
    peaks = directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)]
    return np.asarray(directions * np.where(peaks < 0, -1.0, 1.0)[:, None])


def fit_pca(features: Floats) -> tuple[Floats, Floats]:
    """Mean (P,) and the first principal directions (128, P) of the rows of `features` (n, P)."""
    mean = features.mean(axis=0)
    return mean, fix_signs(np.linalg.svd(features - mean, full_matrices=False)[2][:DIMENSIONS])


def signature(word: str) -> Floats:
    """A vector of length one that stands for `word` alone: signs read off a hash, (128,)."""
    digest = hashlib.blake2b(word.encode(), digest_size=DIMENSIONS // 8).digest()
    bits = np.unpackbits(np.frombuffer(digest, dtype=np.uint8)).astype(np.float64)
    return np.asarray((2.0 * bits - 1.0) / np.sqrt(DIMENSIONS))


def fit_text(texts: Sequence[str], train: npt.NDArray[np.bool_]) -> TextProjection:
    """The projection of words: truncated SVD of the training texts' tf-idf, and each word's own signature.

    128 singular directions cannot tell 2,600 words apart: a word used once is all but lost in them. So a word's
    vector is its SVD row plus its signature times the length of what the SVD leaves out, times `SIGNATURE_WEIGHT`.
    A word of the held-out texts alone has its signature and the idf of a word never seen: nothing of those texts is
    fitted.
    """
    weights = [term_weights(text) for text in texts]
    vocabulary = sorted({word for text in weights for word in text})
    position = {word: column for column, word in enumerate(vocabulary)}
    table = np.zeros((int(train.sum()), len(vocabulary)))
    for row, text in enumerate(text for text, keep in zip(weights, train, strict=True) if keep):
        for word, weight in text.items():
            table[row, position[word]] = weight
    idf = np.log((1 + len(table)) / (1 + np.count_nonzero(table, axis=0))) + 1.0
    tfidf = table * idf
    tfidf /= np.linalg.norm(tfidf, axis=1, keepdims=True)
    directions = fix_signs(np.linalg.svd(tfidf, full_matrices=False)[2][:DIMENSIONS]).T
    left_out = np.sqrt(np.maximum(0.0, 1.0 - (directions**2).sum(axis=1, keepdims=True)))
    vectors = directions + SIGNATURE_WEIGHT * left_out * np.stack([signature(word) for word in vocabulary])
    scale = np.abs(vectors).max(axis=1) / 127.0
    return TextProjection(
        vocabulary=tuple(vocabulary),
        idf=idf.astype(np.float32),
        vectors=np.rint(vectors / scale[:, None]).astype(np.int8),
        scale=scale.astype(np.float32),
    )


def build_arrays(emoji: Sequence[Emoji], pictures: npt.NDArray[np.uint8]) -> dict[str, npt.NDArray[Any]]:
    """Every array of the data file, by name."""
    test = held_out_mask(len(emoji))
    blocks = image_blocks(pictures)
    mean, directions = fit_pca(blocks[~test])
    texts = [item_text(item.name, item.keywords) for item in emoji]
    projection = fit_text(texts, ~test)
    group_names = list(dict.fromkeys(item.group for item in emoji))
    subgroup_names = list(dict.fromkeys(item.subgroup for item in emoji))
    columns: dict[str, npt.NDArray[Any]] = {
        "image": ((blocks - mean) @ directions.T).astype(np.float16),
        "text": projection.embed(texts).astype(np.float16),
        "label": np.array([group_names.index(item.group) for item in emoji], dtype=np.int16),
        "subgroup": np.array([subgroup_names.index(item.subgroup) for item in emoji], dtype=np.int16),
        "glyph": np.array([item.glyph for item in emoji]),
        "name": np.array([item.name for item in emoji]),
        "keywords": np.array([KEYWORD_SEPARATOR.join(item.keywords) for item in emoji]),
    }
    arrays: dict[str, npt.NDArray[Any]] = {}
    for part, rows in (("train", ~test), ("test", test)):
        arrays |= {f"{name}_{part}": column[rows] for name, column in columns.items()}
    return arrays | {
        "group_names": np.array(group_names),
        "subgroup_names": np.array(subgroup_names),
        "vocabulary": np.array(projection.vocabulary),
        "idf": projection.idf,
        "text_projection": projection.vectors,
        "text_projection_scale": projection.scale,
    }


def write_npz(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write a compressed .npz whose bytes depend on the arrays alone: no clock, no pickles."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            stream = io.BytesIO()
            np.lib.format.write_array(stream, np.ascontiguousarray(array), allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, stream.getvalue(), compresslevel=9)


def draw_sheet(path: Path, pictures: npt.NDArray[np.uint8], columns: int = 43) -> None:
    """Draw all pictures (n, height, width, 4) on one white sheet, in list order."""
    width, height = 42, 40
    rows = -(-len(pictures) // columns)
    sheet = Image.new("RGB", (columns * width, rows * height), "white")
    for number, picture in enumerate(pictures):
        small = Image.fromarray(picture).resize((width, height))
        sheet.paste(small, (number % columns * width, number // columns * height), small)
    sheet.save(path)


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line: build, write, and say what was written."""
    parser = argparse.ArgumentParser(description="Build the emoji data set.")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--sheet", type=Path, help="also write a picture of all emoji here")
    options = parser.parse_args(arguments)
    emoji = read_emoji()
    pictures = render([item.glyph for item in emoji], FONT)
    if options.sheet:
        draw_sheet(options.sheet, pictures)
    write_npz(options.output, build_arrays(emoji, pictures))
    print(f"{len(emoji)} emoji, {options.output.stat().st_size:,} bytes: {options.output}")


if __name__ == "__main__":
    main()
