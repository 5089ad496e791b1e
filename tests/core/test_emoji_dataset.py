"""The emoji data set: what is in the file, and that typed words land where the items' own texts are."""

from __future__ import annotations

import importlib.util
import sys
from importlib import resources
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from ccq_core.datasets import EmojiDataset, load_emoji
from ccq_core.datasets.languages import singular, tokenize

ROOT = Path(__file__).resolve().parents[2]
FLOAT16_TOLERANCE = 2e-3
OTHER_BASIS = 0.01
"""Share of the English text's numbers that differ with the linear algebra library: some singular values are equal."""


@pytest.fixture(scope="module")
def emoji() -> EmojiDataset:
    return load_emoji()


def nearest(emoji: EmojiDataset, query: str, count: int) -> list[str]:
    scores = emoji.all.features["text"] @ emoji.embed_text([query])[0]
    return [emoji.all.glyphs[row] for row in np.argsort(-scores, kind="stable")[:count]]


def mean_average_precision(
    queries: np.ndarray, items: np.ndarray, query_labels: np.ndarray, item_labels: np.ndarray, depth: int = 50
) -> float:
    order = np.argsort(-(queries @ items.T), axis=1, kind="stable")[:, :depth]
    relevant = item_labels[order] == query_labels[:, None]
    precision = np.cumsum(relevant, axis=1) / np.arange(1, depth + 1)
    return float(np.mean((precision * relevant).sum(axis=1) / np.maximum(relevant.sum(axis=1), 1)))


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class TestContents:
    def test_counts(self, emoji: EmojiDataset) -> None:
        assert (len(emoji.train), len(emoji.test), len(emoji.all)) == (1349, 500, 1849)
        assert (len(emoji.group_names), len(emoji.subgroup_names)) == (9, 99)

    def test_glyphs_are_unique_without_skin_tones(self, emoji: EmojiDataset) -> None:
        glyphs = emoji.all.glyphs
        assert len(set(glyphs)) == len(glyphs)
        assert not any(0x1F3FB <= ord(character) <= 0x1F3FF for glyph in glyphs for character in glyph)

    def test_parts_are_disjoint(self, emoji: EmojiDataset) -> None:
        assert not set(emoji.train.glyphs) & set(emoji.test.glyphs)

    @pytest.mark.parametrize("part", ["train", "test", "all"])
    def test_every_field_has_one_entry_per_item(self, emoji: EmojiDataset, part: str) -> None:
        items = getattr(emoji, part)
        count = len(items)
        assert set(items.features) == {"image", "text"}
        for features in items.features.values():
            assert features.shape == (count, 128)
            assert features.dtype == np.float32
            assert np.isfinite(features).all()
            assert (np.linalg.norm(features, axis=1) > 0.01).all()
        for field in ("names", "keywords", "groups", "subgroups", "labels", "sublabels", "texts"):
            assert len(getattr(items, field)) == count
        assert all(items.names)
        assert all(all(words) and words for words in items.keywords)
        assert [emoji.group_names[label] for label in items.labels] == list(items.groups)
        assert [emoji.subgroup_names[label] for label in items.sublabels] == list(items.subgroups)

    @pytest.mark.parametrize(
        ("glyph", "name", "group"),
        [
            ("🦒", "giraffe", "Animals & Nature"),
            ("🇯🇵", "flag: Japan", "Flags"),
            ("👨‍👩‍👧", "family: man, woman, girl", "People & Body"),
            ("7️⃣", "keycap: 7", "Symbols"),
            ("👩‍🚀", "woman astronaut", "People & Body"),
        ],
    )
    def test_known_items(self, emoji: EmojiDataset, glyph: str, name: str, group: str) -> None:
        row = emoji.all.glyphs.index(glyph)
        assert (emoji.all.names[row], emoji.all.groups[row]) == (name, group)

    def test_all_is_train_then_test(self, emoji: EmojiDataset) -> None:
        assert emoji.all.glyphs == emoji.train.glyphs + emoji.test.glyphs
        assert np.array_equal(emoji.all.features["image"][1349:], emoji.test.features["image"])

    def test_file_follows_the_evaluation_names_without_pickles(self) -> None:
        source = resources.files("ccq_core.datasets").joinpath("emoji.npz")
        with source.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            for part, count in (("train", 1349), ("test", 500)):
                assert arrays[f"image_{part}"].shape == arrays[f"text_{part}"].shape == (count, 128)
                assert arrays[f"image_{part}"].dtype == arrays[f"text_{part}"].dtype == np.float16
                assert np.issubdtype(arrays[f"label_{part}"].dtype, np.integer)
                assert arrays[f"label_{part}"].shape == arrays[f"subgroup_{part}"].shape == (count,)
            assert not any(arrays[name].dtype.hasobject for name in arrays.files)

    def test_file_is_small(self) -> None:
        assert len(resources.files("ccq_core.datasets").joinpath("emoji.npz").read_bytes()) < 1_500_000

    def test_attribution_names_every_source(self) -> None:
        text = resources.files("ccq_core.datasets").joinpath("ATTRIBUTION.md").read_text(encoding="utf-8")
        for needle in (
            "Noto Color Emoji",
            "SIL Open Font License",
            "CLDR 41",
            "Unicode-DFS-2016",
            "Emoji 15.0",
        ):
            assert needle in text


class TestQuality:
    """Held-out queries against the training items, raw cosine: well above the 0.13 of chance."""

    @pytest.mark.parametrize(("modality", "least"), [("image", 0.5), ("text", 0.55)])
    def test_neighbours_share_the_group(self, emoji: EmojiDataset, modality: str, least: float) -> None:
        queries, items = (unit(part.features[modality]) for part in (emoji.test, emoji.train))
        assert mean_average_precision(queries, items, emoji.test.labels, emoji.train.labels) > least

    def test_pictures_predict_texts(self, emoji: EmojiDataset) -> None:
        images, texts = emoji.train.features["image"], emoji.train.features["text"]
        mean, spread = images.mean(axis=0), images.std(axis=0)
        x = (images - mean) / spread
        y = texts - texts.mean(axis=0)
        weights = np.linalg.solve(x.T @ x + 300.0 * np.eye(128), x.T @ y)
        predicted = unit((emoji.test.features["image"] - mean) / spread @ weights)
        assert mean_average_precision(predicted, unit(y), emoji.test.labels, emoji.train.labels) > 0.5


class TestEmbedText:
    def test_own_text_gives_the_stored_feature(self, emoji: EmojiDataset) -> None:
        embedded = emoji.embed_text(emoji.all.texts)
        assert embedded.dtype == np.float32
        np.testing.assert_allclose(embedded, emoji.all.features["text"], rtol=0, atol=FLOAT16_TOLERANCE)

    @pytest.mark.parametrize(
        ("typed", "same"),
        [
            ("cats", "cat"),
            ("GIRAFFES!", "giraffe"),
            ("Happy Faces", "happy face"),
            ("piñata", "pinata"),
            ("women", "woman"),
            ("a cat on the moon", "cat moon"),
            ("  cat,moon ", "cat moon"),
            ("cat zzzzqqqq", "cat"),
        ],
    )
    def test_spelling_does_not_matter(self, emoji: EmojiDataset, typed: str, same: str) -> None:
        np.testing.assert_array_equal(emoji.embed_text([typed]), emoji.embed_text([same]))

    @pytest.mark.parametrize(
        ("query", "glyph"),
        [
            ("giraffe", "🦒"),
            ("pizza", "🍕"),
            ("cat", "🐈"),
            ("cats", "🐈"),
            ("fast cars", "🏎️"),
            ("flag of Japan", "🇯🇵"),
            ("woman astronaut", "👩‍🚀"),
            ("rainbow", "🌈"),
        ],
    )
    def test_nearest_texts_include_the_emoji(self, emoji: EmojiDataset, query: str, glyph: str) -> None:
        assert glyph in nearest(emoji, query, 5)

    def test_nearly_every_name_finds_its_emoji(self, emoji: EmojiDataset) -> None:
        scores = emoji.embed_text(emoji.all.names) @ emoji.all.features["text"].T
        ranks = (scores > np.diag(scores)[:, None]).sum(axis=1)
        assert np.mean(ranks < 5) > 0.95

    def test_held_out_words_are_known(self, emoji: EmojiDataset) -> None:
        train_words = {word for text in emoji.train.texts for word in tokenize(text)}
        only_held_out = {word for text in emoji.test.texts for word in tokenize(text)} - train_words
        assert len(only_held_out) > 100
        assert np.isfinite(emoji.embed_text(sorted(only_held_out))).all()

    def test_unknown_words_are_named_with_near_ones(self, emoji: EmojiDataset) -> None:
        with pytest.raises(ValueError, match=r"texts\[1\]: no known word in 'girafe'.*'giraffe'"):
            emoji.embed_text(["cat", "girafe"])

    @pytest.mark.parametrize("text", ["", "   ", "the", "?!", "qqqqqqqqq"])
    def test_nothing_known_and_nothing_near(self, emoji: EmojiDataset, text: str) -> None:
        with pytest.raises(ValueError, match=r"texts\[0\]: no known word in .*the vocabulary has \d+ English words"):
            emoji.embed_text([text])

    def test_no_texts(self, emoji: EmojiDataset) -> None:
        assert emoji.embed_text([]).shape == (0, 128)

    def test_a_single_string_is_refused(self, emoji: EmojiDataset) -> None:
        with pytest.raises(TypeError, match="expected a sequence of strings"):
            emoji.embed_text("cat")


class TestTokenize:
    @pytest.mark.parametrize(
        ("plural", "expected"),
        [
            ("cats", "cat"),
            ("cherries", "cherry"),
            ("cookies", "cookie"),
            ("boxes", "box"),
            ("glasses", "glass"),
            ("houses", "house"),
            ("potatoes", "potato"),
            ("children", "child"),
            ("bus", "bus"),
            ("glass", "glass"),
            ("octopus", "octopus"),
            ("tennis", "tennis"),
        ],
    )
    def test_singular(self, plural: str, expected: str) -> None:
        assert singular(plural) == expected

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("flag: U.S. Virgin Islands", ["flag", "us", "virgin", "island"]),
            ("woman\u2019s hat", ["woman", "hat"]),
            ("keycap: #", ["keycap", "#"]),
            ("Côte d'Ivoire", ["cote", "divoire"]),
            ("Smile-y FACES", ["smile", "y", "face"]),
            ("the of and", []),
        ],
    )
    def test_tokenize(self, text: str, words: list[str]) -> None:
        assert tokenize(text) == words


def test_rebuilding_gives_the_shipped_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = [name for name in ("fontTools", "uharfbuzz", "PIL") if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"build tools not installed: {', '.join(missing)}")
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    from examples.emoji import build

    sources = (build.EMOJI_TEST, build.FONT, *chain.from_iterable(build.ANNOTATIONS.values()))
    absent = [str(path) for path in sources if not path.exists()]
    if absent:
        pytest.skip(f"source files not installed: {', '.join(absent)}")
    build.main(["--output", str(tmp_path / "emoji.npz")])
    for name in ("emoji.npz", "emoji_languages.npz"):
        with np.load(tmp_path / name) as built, np.load(build.OUTPUT.with_name(name)) as shipped:
            assert built.files == shipped.files
            for key in shipped.files:
                if shipped[key].dtype.kind == "f":
                    far = ~np.isclose(built[key], shipped[key], rtol=0, atol=FLOAT16_TOLERANCE)
                elif shipped[key].dtype == np.int8:
                    far = np.abs(built[key].astype(int) - shipped[key]) > 1
                else:
                    far = built[key] != shipped[key]
                assert far.mean() <= (OTHER_BASIS if name == "emoji.npz" and key.startswith("text") else 0.0), key
