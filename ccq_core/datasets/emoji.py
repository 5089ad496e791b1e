"""Emoji as image-text pairs: a picture's features, an English description, a group.

The data file `emoji.npz` beside this module is made by `examples/emoji/build.py`; its sources and licences are in
`ATTRIBUTION.md`. It holds features and words, no pictures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from itertools import chain

import numpy as np
import numpy.typing as npt

from ccq_core.datasets.text import TextProjection

KEYWORD_SEPARATOR = " | "
"""What stands between the keywords of one emoji in the data file."""


def item_text(name: str, keywords: Sequence[str]) -> str:
    """The text of one emoji: its name and keywords as one string, as it was embedded for the stored text feature."""
    return KEYWORD_SEPARATOR.join([name, *keywords])


@dataclass(frozen=True, repr=False)
class EmojiItems:
    """n emoji, row by row; every field has n entries in the same order."""

    features: Mapping[str, npt.NDArray[np.float32]]
    """`image`: picture features; `text`: text features with rows of length about one. Each (n, 128) float32."""
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

    def __len__(self) -> int:
        return len(self.glyphs)

    def __repr__(self) -> str:
        return f"<{len(self):,} emoji, {' '.join(self.glyphs[:3])} ...>"

    @property
    def texts(self) -> tuple[str, ...]:
        """Name and keywords of each emoji as one string: what its text feature was computed from."""
        return tuple(item_text(name, words) for name, words in zip(self.names, self.keywords, strict=True))


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
        )

    def embed_text(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Text features of any English texts, (q, 128) float32, in the space of `features["text"]`.

        Case, accents, punctuation and plurals do not matter; unknown words are passed over. A text without any known
        word is a ValueError that names the text and offers the nearest known words.
        """
        return self.projection.embed(texts)


def load_emoji() -> EmojiDataset:
    """Load the emoji data set from the package."""
    source = resources.files("ccq_core.datasets").joinpath("emoji.npz")
    with source.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        group_names = _strings(arrays["group_names"])
        subgroup_names = _strings(arrays["subgroup_names"])
        return EmojiDataset(
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


def _items(
    arrays: Mapping[str, npt.NDArray[np.generic]],
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
        keywords=tuple(tuple(line.split(KEYWORD_SEPARATOR)) for line in _strings(arrays[f"keywords_{part}"])),
        groups=tuple(group_names[label] for label in labels),
        subgroups=tuple(subgroup_names[label] for label in sublabels),
        labels=labels,
        sublabels=sublabels,
    )


def _strings(array: npt.NDArray[np.generic]) -> tuple[str, ...]:
    return tuple(str(value) for value in array.tolist())
