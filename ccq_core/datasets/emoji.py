"""Emoji as image-text pairs: a picture's features, an English description, a group; on request more languages.

The data files `emoji.npz` and `emoji_languages.npz` beside this module are made by `examples/emoji/build.py`; their
sources and licences are in `ATTRIBUTION.md`. They hold features and words, no pictures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import resources
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from ccq_core.datasets.languages import ENGLISH, LANGUAGES
from ccq_core.datasets.text import TextProjection

_Arrays = Mapping[str, npt.NDArray[Any]]

KEYWORD_SEPARATOR = " | "
"""What stands between the keywords of one emoji in the data file."""


def item_text(name: str, keywords: Sequence[str]) -> str:
    """The text of one emoji: its name and keywords as one string, as it was embedded for the stored text feature."""
    return KEYWORD_SEPARATOR.join([name, *keywords])


@dataclass(frozen=True)
class Translation:
    """What n emoji are called in one language, row by row."""

    names: tuple[str, ...]
    """Short names."""
    keywords: tuple[tuple[str, ...], ...]
    """Keywords, at least one for each emoji."""

    @property
    def texts(self) -> tuple[str, ...]:
        """Name and keywords of each emoji as one string: what its feature in this language was computed from."""
        return tuple(item_text(name, words) for name, words in zip(self.names, self.keywords, strict=True))


@dataclass(frozen=True, repr=False)
class EmojiItems:
    """n emoji, row by row; every field has n entries in the same order."""

    features: Mapping[str, npt.NDArray[np.float32]]
    """`image`: picture features; `text`: features of the English text, with rows of length about one; and the same
    under the code of each further language. Each (n, 128) float32."""
    glyphs: tuple[str, ...]
    """The emoji themselves, fully qualified, as strings of one to several code points."""
    names: tuple[str, ...]
    """Short English names, such as "grinning face"."""
    keywords: tuple[tuple[str, ...], ...]
    """English keywords, at least one for each emoji."""
    groups: tuple[str, ...]
    """Name of the group, such as "Food & Drink"."""
    subgroups: tuple[str, ...]
    """Name of the subgroup, such as "food-fruit"."""
    labels: npt.NDArray[np.int64]
    """Number of the group: its position in `EmojiDataset.group_names`, (n,) int64."""
    sublabels: npt.NDArray[np.int64]
    """Number of the subgroup: its position in `EmojiDataset.subgroup_names`, (n,) int64."""
    translations: Mapping[str, Translation] = field(default_factory=dict)
    """Names and keywords by code of each further language."""

    def __len__(self) -> int:
        return len(self.glyphs)

    def __repr__(self) -> str:
        return f"<{len(self):,} emoji, {' '.join(self.glyphs[:3])} ...>"

    @property
    def texts(self) -> tuple[str, ...]:
        """Name and keywords of each emoji as one string: what its text feature was computed from."""
        return Translation(self.names, self.keywords).texts


@dataclass(frozen=True)
class EmojiDataset:
    """Emoji in two disjoint parts; everything fitted (PCA, idf, text projection) was fitted on `train` alone."""

    train: EmojiItems
    """The items to learn from."""
    test: EmojiItems
    """The 500 held-out items."""
    group_names: tuple[str, ...]
    """The groups, in the order of their numbers."""
    subgroup_names: tuple[str, ...]
    """The subgroups, in the order of their numbers."""
    projection: TextProjection
    """What made the text features, and makes them for new texts."""
    translation_projections: Mapping[str, TextProjection] = field(default_factory=dict)
    """The same by code of each further language."""

    @cached_property
    def all(self) -> EmojiItems:
        """All items: those of `train`, then those of `test`."""
        parts = (self.train, self.test)
        return EmojiItems(
            features={key: np.concatenate([part.features[key] for part in parts]) for key in self.train.features},
            glyphs=tuple(chain.from_iterable(part.glyphs for part in parts)),
            names=tuple(chain.from_iterable(part.names for part in parts)),
            keywords=tuple(chain.from_iterable(part.keywords for part in parts)),
            groups=tuple(chain.from_iterable(part.groups for part in parts)),
            subgroups=tuple(chain.from_iterable(part.subgroups for part in parts)),
            labels=np.concatenate([part.labels for part in parts]),
            sublabels=np.concatenate([part.sublabels for part in parts]),
            translations={
                code: Translation(
                    names=tuple(chain.from_iterable(part.translations[code].names for part in parts)),
                    keywords=tuple(chain.from_iterable(part.translations[code].keywords for part in parts)),
                )
                for code in self.train.translations
            },
        )

    def embed_text(self, texts: Sequence[str], language: str = "en") -> npt.NDArray[np.float32]:
        """Text features of any texts in a loaded language, (q, 128) float32, in the space of `features["text"]` or of
        `features[language]`.

        Case, accents, punctuation and inflection do not matter; unknown words are passed over. A text without any known
        word is a ValueError that names the text and offers the nearest known words.
        """
        if language not in LANGUAGES:
            raise ValueError(f"language: expected {_either(LANGUAGES)}, got {language!r}")
        projections = {ENGLISH.code: self.projection, **self.translation_projections}
        if language not in projections:
            raise ValueError(f"language: {language!r} is not loaded; load_emoji(languages=[{language!r}]) does it")
        return projections[language].embed(texts)


def load_emoji(languages: Sequence[str] = ()) -> EmojiDataset:
    """Load the emoji data set from the package.

    Parameters
    ----------
    languages:
        Languages beside English to load, of `"de"` (German) and `"ja"` (Japanese). Each is one more modality.
    """
    if isinstance(languages, str):
        raise TypeError(f"languages: expected a sequence of codes, got one string; pass [{languages!r}]")
    further = [code for code in LANGUAGES if code != ENGLISH.code]
    for code in languages:
        if code not in further:
            raise ValueError(f"languages: expected {_either(further)}, got {code!r}; English is always there")
    with _open("emoji.npz") as arrays:
        group_names = _strings(arrays["group_names"])
        subgroup_names = _strings(arrays["subgroup_names"])
        dataset = EmojiDataset(
            train=_items(arrays, "train", group_names, subgroup_names),
            test=_items(arrays, "test", group_names, subgroup_names),
            group_names=group_names,
            subgroup_names=subgroup_names,
            projection=TextProjection(
                vocabulary=_strings(arrays["vocabulary"]),
                idf=arrays["idf"],
                vectors=arrays["text_projection"],
                scale=arrays["text_projection_scale"],
            ),
        )
    return _with_languages(dataset, tuple(dict.fromkeys(languages))) if languages else dataset


def _with_languages(dataset: EmojiDataset, languages: Sequence[str]) -> EmojiDataset:
    with _open("emoji_languages.npz") as arrays:
        return replace(
            dataset,
            train=_with_translations(dataset.train, arrays, "train", languages),
            test=_with_translations(dataset.test, arrays, "test", languages),
            translation_projections={
                code: TextProjection(
                    vocabulary=_strings(arrays[f"{code}_vocabulary"]),
                    idf=arrays[f"{code}_idf"],
                    vectors=arrays[f"{code}_text_projection"],
                    scale=arrays[f"{code}_text_projection_scale"],
                    language=LANGUAGES[code],
                    spellings=_strings(arrays[f"{code}_spellings"]),
                )
                for code in languages
            },
        )


def _with_translations(items: EmojiItems, arrays: _Arrays, part: str, languages: Sequence[str]) -> EmojiItems:
    features = dict(items.features)
    translations = {}
    for code in languages:
        steps = arrays[f"{code}_text_scale_{part}"].astype(np.float32)
        features[code] = arrays[f"{code}_text_{part}"].astype(np.float32) * steps[:, None]
        translations[code] = Translation(
            names=_strings(arrays[f"{code}_name_{part}"]), keywords=_keywords(arrays[f"{code}_keywords_{part}"])
        )
    return replace(items, features=features, translations=translations)


def _items(
    arrays: _Arrays,
    part: str,
    group_names: tuple[str, ...],
    subgroup_names: tuple[str, ...],
) -> EmojiItems:
    labels = arrays[f"label_{part}"].astype(np.int64)
    sublabels = arrays[f"subgroup_{part}"].astype(np.int64)
    return EmojiItems(
        features={key: arrays[f"{key}_{part}"].astype(np.float32) for key in ("image", "text")},
        glyphs=_strings(arrays[f"glyph_{part}"]),
        names=_strings(arrays[f"name_{part}"]),
        keywords=_keywords(arrays[f"keywords_{part}"]),
        groups=tuple(group_names[label] for label in labels),
        subgroups=tuple(subgroup_names[label] for label in sublabels),
        labels=labels,
        sublabels=sublabels,
    )


@contextmanager
def _open(name: str) -> Iterator[_Arrays]:
    source = resources.files("ccq_core.datasets").joinpath(name)
    with source.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        yield arrays


def _either(codes: Iterable[str]) -> str:
    return " or ".join(repr(code) for code in codes)


def _keywords(array: npt.NDArray[Any]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(line.split(KEYWORD_SEPARATOR)) for line in _strings(array))


def _strings(array: npt.NDArray[Any]) -> tuple[str, ...]:
    return tuple(str(value) for value in array.tolist())
