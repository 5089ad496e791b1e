"""Build `emoji.npz` and `emoji_languages.npz` in `ccq_core/datasets`, the emoji data set that ships with the project.

For developers only. Needs three Debian packages, the project itself and the Python packages of `requirements.txt`:

    apt-get install fonts-noto-color-emoji unicode-cldr-core unicode-data
    pip install -e .
    pip install -r examples/emoji/requirements.txt
    python examples/emoji/build.py

`--output FILE` writes elsewhere, the languages beside it; `--sheet FILE.png` also draws every picture, to check by
eye that each emoji got its own. The same packages on the same machine give the same bytes; other builds of the linear
algebra library may round some last digits differently, and take another basis of the directions of equal singular
value, of which the English texts have a few (see `settle` in `words.py`).
"""

from __future__ import annotations

import argparse
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
from ccq_core.datasets.languages import ENGLISH, LANGUAGES, Language  # noqa: E402
from examples.emoji.pictures import image_blocks, render  # noqa: E402
from examples.emoji.words import DIMENSIONS, Floats, fit_text, fix_signs, quantize  # noqa: E402

EMOJI_TEST = Path("/usr/share/unicode/emoji/emoji-test.txt")
ANNOTATIONS = {
    code: [Path(f"/usr/share/unicode/cldr/common/{name}/{code}.xml") for name in ("annotations", "annotationsDerived")]
    for code in LANGUAGES
}
FONT = Path("/usr/share/fonts/truetype/noto/NotoColorEmoji.ttf")
OUTPUT = ROOT / "ccq_core" / "datasets" / "emoji.npz"

SKIN_TONES = range(0x1F3FB, 0x1F400)
VARIATION_SELECTOR = "\ufe0f"
HELD_OUT = 500
SPLIT_SEED = 20240


@dataclass(frozen=True)
class Emoji:
    """One emoji of the list with its annotations by language."""

    glyph: str
    names: Mapping[str, str]
    keywords: Mapping[str, tuple[str, ...]]
    group: str
    subgroup: str

    def text(self, language: Language) -> str:
        """Name and keywords in one language, as they are embedded."""
        return item_text(self.names[language.code], self.keywords[language.code])


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
    annotations = {code: read_annotations(paths) for code, paths in ANNOTATIONS.items()}
    english_names, english_keywords = annotations[ENGLISH.code]
    emoji = []
    for glyph, group, subgroup in read_emoji_list(EMOJI_TEST):
        plain = glyph.replace(VARIATION_SELECTOR, "")
        if plain in english_names and plain in english_keywords:
            names = {code: found[0][plain] for code, found in annotations.items()}
            keywords = {code: found[1][plain] for code, found in annotations.items()}
            emoji.append(Emoji(glyph, names, keywords, group, subgroup))
    return emoji


def held_out_mask(count: int) -> npt.NDArray[np.bool_]:
    """True for the `HELD_OUT` rows of the test part, drawn at random with a fixed seed."""
    mask = np.zeros(count, dtype=bool)
    # The generator of RandomState is frozen by numpy's compatibility policy, unlike that of default_rng.
    mask[np.random.RandomState(SPLIT_SEED).permutation(count)[:HELD_OUT]] = True
    return mask


def fit_pca(features: Floats) -> tuple[Floats, Floats]:
    """Mean (P,) and the first principal directions (128, P) of the rows of `features` (n, P)."""
    mean = features.mean(axis=0)
    return mean, fix_signs(np.linalg.svd(features - mean, full_matrices=False)[2][:DIMENSIONS])


def build_arrays(emoji: Sequence[Emoji], pictures: npt.NDArray[np.uint8]) -> dict[str, npt.NDArray[Any]]:
    """Every array of `emoji.npz`, by name."""
    test = held_out_mask(len(emoji))
    blocks = image_blocks(pictures)
    mean, directions = fit_pca(blocks[~test])
    texts = [item.text(ENGLISH) for item in emoji]
    projection = fit_text(texts, ~test)
    group_names = list(dict.fromkeys(item.group for item in emoji))
    subgroup_names = list(dict.fromkeys(item.subgroup for item in emoji))
    columns: dict[str, npt.NDArray[Any]] = {
        "image": ((blocks - mean) @ directions.T).astype(np.float16),
        "text": projection.embed(texts).astype(np.float16),
        "label": np.array([group_names.index(item.group) for item in emoji], dtype=np.int16),
        "subgroup": np.array([subgroup_names.index(item.subgroup) for item in emoji], dtype=np.int16),
        "glyph": np.array([item.glyph for item in emoji]),
        **annotation_columns(emoji, ENGLISH),
    }
    return in_parts(columns, test) | {
        "group_names": np.array(group_names),
        "subgroup_names": np.array(subgroup_names),
        "vocabulary": np.array(projection.vocabulary),
        "idf": projection.idf,
        "text_projection": projection.vectors,
        "text_projection_scale": projection.scale,
    }


def build_language(emoji: Sequence[Emoji], language: Language) -> dict[str, npt.NDArray[Any]]:
    """The arrays of `emoji_languages.npz` for one language, by name; rows as in `emoji.npz`."""
    test = held_out_mask(len(emoji))
    texts = [item.text(language) for item in emoji]
    projection = fit_text(texts, ~test, language)
    features, steps = quantize(projection.embed(texts))
    columns = {"text": features, "text_scale": steps, **annotation_columns(emoji, language)}
    arrays = in_parts(columns, test) | {
        "vocabulary": np.array(projection.vocabulary),
        "spellings": np.array(projection.spellings),
        "idf": projection.idf,
        "text_projection": projection.vectors,
        "text_projection_scale": projection.scale,
    }
    return {f"{language.code}_{name}": array for name, array in arrays.items()}


def annotation_columns(emoji: Sequence[Emoji], language: Language) -> dict[str, npt.NDArray[Any]]:
    """Names and keywords in one language, a string for each emoji."""
    return {
        "name": np.array([item.names[language.code] for item in emoji]),
        "keywords": np.array([KEYWORD_SEPARATOR.join(item.keywords[language.code]) for item in emoji]),
    }


def in_parts(columns: Mapping[str, npt.NDArray[Any]], test: npt.NDArray[np.bool_]) -> dict[str, npt.NDArray[Any]]:
    """The rows of each column in two arrays, `NAME_train` and `NAME_test`."""
    parts = (("train", ~test), ("test", test))
    return {f"{name}_{part}": column[rows] for part, rows in parts for name, column in columns.items()}


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
    others: dict[str, npt.NDArray[Any]] = {}
    for language in LANGUAGES.values():
        if language is not ENGLISH:
            others |= build_language(emoji, language)
    beside = options.output.with_name(f"{options.output.stem}_languages.npz")
    write_npz(beside, others)
    for path in (options.output, beside):
        print(f"{len(emoji)} emoji, {path.stat().st_size:,} bytes: {path}")


if __name__ == "__main__":
    main()
