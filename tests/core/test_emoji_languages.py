"""The emoji in German and Japanese: rows as the English ones, features fitted on training rows, four modalities."""

from __future__ import annotations

import hashlib
import sys
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from ccq_core import CCQ
from ccq_core.datasets import EmojiDataset, load_emoji
from ccq_core.datasets.languages import GERMAN, JAPANESE
from ccq_core.evaluation import LabelledData, evaluate

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = {"de": GERMAN, "ja": JAPANESE}
MODALITIES = ("image", "text", "de", "ja")


@pytest.fixture(scope="module")
def emoji() -> EmojiDataset:
    return load_emoji(languages=["de", "ja"])


@pytest.fixture(params=LANGUAGES)
def code(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch):
    """The part of the builder that fits words."""
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    from examples.emoji import words

    return words


def nearest(emoji: EmojiDataset, query: str, code: str, count: int = 5) -> list[str]:
    scores = emoji.all.features[code] @ emoji.embed_text([query], language=code)[0]
    return [emoji.all.glyphs[row] for row in np.argsort(-scores, kind="stable")[:count]]


class TestLoading:
    def test_without_languages_nothing_changes(self) -> None:
        emoji = load_emoji()
        assert list(emoji.all.features) == ["image", "text"]
        assert not emoji.all.translations
        digest = hashlib.sha256()
        for part in (emoji.train, emoji.test):
            for array in (*part.features.values(), part.labels, part.sublabels):
                digest.update(array.tobytes())
            digest.update(repr((part.glyphs, part.names, part.keywords, part.groups, part.subgroups)).encode())
        projection = emoji.projection
        for array in (projection.idf, projection.vectors, projection.scale):
            digest.update(array.tobytes())
        digest.update(repr(projection.vocabulary).encode())
        assert digest.hexdigest() == "afcefafe20a68ecef25d8f68199963cf5796a40a6ebb4348cac28c3f19951849"
        file = resources.files("ccq_core.datasets").joinpath("emoji.npz").read_bytes()
        assert hashlib.sha256(file).hexdigest() == "d5928df0a86fa22b00c54082ac60f476df2ada197bc1b2491f3a3355a59d89bc"

    def test_languages_only_add(self, emoji: EmojiDataset) -> None:
        alone = load_emoji()
        assert emoji.train.glyphs == alone.train.glyphs
        assert np.array_equal(emoji.test.features["text"], alone.test.features["text"])
        assert np.array_equal(emoji.test.labels, alone.test.labels)

    def test_order_and_repetition(self) -> None:
        assert list(load_emoji(["ja", "de", "ja"]).train.features) == ["image", "text", "ja", "de"]
        assert set(load_emoji(("ja",)).all.translations) == {"ja"}

    @pytest.mark.parametrize("unknown", ["fr", "en", ""])
    def test_unknown_language(self, unknown: str) -> None:
        with pytest.raises(ValueError, match=rf"languages: expected 'de' or 'ja', got '{unknown}'"):
            load_emoji(["de", unknown])

    def test_a_single_string_is_refused(self) -> None:
        with pytest.raises(TypeError, match=r"pass \['de'\]"):
            load_emoji("de")


class TestContents:
    @pytest.mark.parametrize(("part", "count"), [("train", 1349), ("test", 500), ("all", 1849)])
    def test_every_field_has_one_entry_per_item(self, emoji: EmojiDataset, code: str, part: str, count: int) -> None:
        items = getattr(emoji, part)
        assert list(items.features) == list(MODALITIES)
        features = items.features[code]
        assert features.shape == (count, 128)
        assert features.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1.0, atol=0.02)
        translation = items.translations[code]
        assert len(translation.names) == len(translation.keywords) == len(translation.texts) == count
        assert all(translation.names)
        assert all(words and all(words) for words in translation.keywords)

    @pytest.mark.parametrize(
        ("glyph", "german", "japanese"),
        [
            ("🍎", "Apfel", "りんご"),
            ("🐱", "Katze", "猫"),
            ("🇯🇵", "Flagge: Japan", "旗: 日本"),
            ("👩‍🚀", "Astronautin", "女性宇宙飛行士"),
            ("🌈", "Regenbogen", "虹"),
            ("7️⃣", "Taste: 7", "囲み数字: 7"),
        ],
    )
    def test_known_items(self, emoji: EmojiDataset, glyph: str, german: str, japanese: str) -> None:
        row = emoji.all.glyphs.index(glyph)
        for code, word in (("de", german), ("ja", japanese)):
            translation = emoji.all.translations[code]
            assert word in (translation.names[row], *translation.keywords[row])

    @pytest.mark.parametrize("part", ["train", "test"])
    def test_every_flag_is_on_its_row(self, emoji: EmojiDataset, part: str) -> None:
        items = getattr(emoji, part)
        flags = [name.startswith("flag: ") for name in items.names]
        assert sum(flags) > 50
        for code, start in (("de", "Flagge: "), ("ja", "旗: ")):
            assert [name.startswith(start) for name in items.translations[code].names] == flags

    def test_file_is_small_without_pickles(self) -> None:
        source = resources.files("ccq_core.datasets").joinpath("emoji_languages.npz")
        assert len(source.read_bytes()) < 1_200_000
        with source.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            assert not any(arrays[name].dtype.hasobject for name in arrays.files)

    def test_attribution(self) -> None:
        text = resources.files("ccq_core.datasets").joinpath("ATTRIBUTION.md").read_text(encoding="utf-8")
        assert "German and Japanese" in text
        assert "emoji_languages.npz" in text


class TestFitting:
    """Held-out texts have no part in what is fitted."""

    def test_shipped_idf_counts_training_texts(self, emoji: EmojiDataset, code: str) -> None:
        projection = emoji.translation_projections[code]
        texts = [set(LANGUAGES[code].tokenize(text)) for text in emoji.train.translations[code].texts]
        counts = np.array([sum(word in text for text in texts) for word in projection.vocabulary])
        assert (counts == 0).sum() > 300
        np.testing.assert_allclose(projection.idf, np.log(1350 / (1 + counts)) + 1, rtol=1e-6)

    def test_words_of_held_out_texts_alone_have_their_signature(self, emoji: EmojiDataset, code: str, words) -> None:
        projection = emoji.translation_projections[code]
        unseen = np.flatnonzero(projection.idf == projection.idf.max())
        expected = words.SIGNATURE_WEIGHT * np.stack([words.signature(projection.vocabulary[row]) for row in unseen])
        np.testing.assert_allclose(projection.vectors[unseen] * projection.scale[unseen, None], expected, rtol=1e-6)

    def test_held_out_compounds_of_training_words_are_no_words(self, emoji: EmojiDataset, code: str) -> None:
        language, vocabulary = LANGUAGES[code], set(emoji.translation_projections[code].vocabulary)
        seen, held_out = (
            {word for text in part.translations[code].texts for word in language.tokenize(text)}
            for part in (emoji.train, emoji.test)
        )
        compounds = {word for word in held_out - seen if language.parts(word, seen)}
        assert compounds
        assert vocabulary == (seen | held_out) - compounds

    def test_other_held_out_texts_change_no_other_vector(self, emoji: EmojiDataset, code: str, words) -> None:
        texts = list(emoji.train.translations[code].texts[:300])
        train = np.arange(300) < 200
        other = [*texts[:200], *texts[250:], *texts[:50]]
        fitted, again = (words.fit_text(some, train, LANGUAGES[code]) for some in (texts, other))
        assert set(fitted.vocabulary) != set(again.vocabulary)
        np.testing.assert_allclose(fitted.embed(texts[:200]), again.embed(texts[:200]), atol=2e-3)

    def test_equal_singular_values_have_one_basis(self, words) -> None:
        rng = np.random.default_rng(0)
        rows = np.linalg.qr(rng.standard_normal((9, 5)))[0].T
        values = np.array([3.0, 2.0, 2.0, 2.0, 1.0])
        turned = rows.copy()
        turned[1:4] = np.linalg.qr(rng.standard_normal((3, 3)))[0] @ rows[1:4]
        turned[4] *= -1.0
        settled = words.settle(values, rows)
        np.testing.assert_allclose(settled, words.settle(values, turned), atol=1e-12)
        np.testing.assert_allclose(settled @ settled.T, np.eye(5), atol=1e-12)
        np.testing.assert_allclose(settled.T * values @ settled, rows.T * values @ rows, atol=1e-12)


class TestEmbedText:
    def test_own_text_gives_the_stored_feature(self, emoji: EmojiDataset, code: str) -> None:
        embedded = emoji.embed_text(emoji.all.translations[code].texts, language=code)
        stored = emoji.all.features[code]
        half_steps = np.abs(embedded).max(axis=1, keepdims=True) / 254
        assert (np.abs(embedded - stored) <= 1.01 * half_steps).all()

    def test_nearly_every_name_finds_its_emoji(self, emoji: EmojiDataset, code: str) -> None:
        names = emoji.embed_text(emoji.all.translations[code].names, language=code)
        scores = names @ emoji.all.features[code].T
        assert np.mean((scores > np.diag(scores)[:, None]).sum(axis=1) < 5) > 0.97

    @pytest.mark.parametrize(
        ("code", "query", "glyph"),
        [
            ("de", "Katzen", "🐈"),
            ("de", "Aepfel rot", "🍎"),
            ("de", "Ärzte", "🧑‍⚕️"),
            ("de", "die Flagge von Japan", "🇯🇵"),
            ("de", "REGENBOGEN!", "🌈"),
            ("ja", "リンゴ", "🍎"),
            ("ja", "ﾗｰﾒﾝ", "🍜"),
            ("ja", "宇宙飛行士", "🧑‍🚀"),
            ("ja", "日本の旗", "🇯🇵"),
            ("ja", "虹", "🌈"),
        ],
    )
    def test_nearest_texts_include_the_emoji(self, emoji: EmojiDataset, code: str, query: str, glyph: str) -> None:
        assert glyph in nearest(emoji, query, code)

    @pytest.mark.parametrize(
        ("code", "typed", "same"),
        [
            ("de", "Katzenauto", "Katze Auto"),
            ("de", "Katze qqqqzzzz", "Katze"),
            ("de", "Straßenkatze", "Strasse Katzen"),
            ("ja", "リンゴパイ", "りんご ぱい"),
            ("ja", "猫 쀍쀍", "猫"),
            ("ja", "パイ", "ﾊﾟｲ"),
        ],
    )
    def test_spelling_does_not_matter(self, emoji: EmojiDataset, code: str, typed: str, same: str) -> None:
        one, other = emoji.embed_text([typed, same], language=code)
        np.testing.assert_array_equal(one, other)

    @pytest.mark.parametrize(
        ("code", "text", "near"), [("de", "Girafe", "Giraffe"), ("de", "Katzn", "Katze"), ("ja", "キリソ", "キリン")]
    )
    def test_unknown_words_are_named_with_near_ones(self, emoji: EmojiDataset, code: str, text: str, near: str) -> None:
        known = emoji.all.translations[code].names[0]
        with pytest.raises(ValueError, match=rf"texts\[1\]: no known word in '{text}'; did you mean .*'{near}'"):
            emoji.embed_text([known, text], language=code)

    @pytest.mark.parametrize(
        ("code", "text"), [("de", ""), ("de", "und"), ("de", "qqqqqqq"), ("ja", "の"), ("ja", "?!"), ("ja", "쀍")]
    )
    def test_nothing_known_and_nothing_near(self, emoji: EmojiDataset, code: str, text: str) -> None:
        name = LANGUAGES[code].name
        with pytest.raises(ValueError, match=rf"no known word in .*the vocabulary has \d+ {name} words"):
            emoji.embed_text([text], language=code)

    def test_languages_that_are_not_there(self, emoji: EmojiDataset) -> None:
        with pytest.raises(ValueError, match=r"language: 'de' is not loaded; load_emoji\(languages=\['de'\]\)"):
            load_emoji().embed_text(["Apfel"], language="de")
        with pytest.raises(ValueError, match="language: expected 'en' or 'de' or 'ja', got 'fr'"):
            emoji.embed_text(["pomme"], language="fr")

    def test_english_is_the_default(self, emoji: EmojiDataset) -> None:
        np.testing.assert_array_equal(emoji.embed_text(["cat"]), emoji.embed_text(["cat"], language="en"))


def four_way_scores(emoji: EmojiDataset, absent: np.ndarray | None = None) -> dict[str, float]:
    """MAP@50 of every direction, trained without the (n, 4) entries that are `absent`; the database is complete."""
    train = {name: emoji.train.features[name].copy() for name in MODALITIES}
    if absent is not None:
        for column, name in enumerate(MODALITIES):
            train[name][absent[:, column]] = np.nan
    model = CCQ(bits=32, seed=0).fit(train)
    complete = (dict(part.features) for part in (emoji.train, emoji.test))
    return evaluate(model, LabelledData(*complete, emoji.train.labels, emoji.test.labels))


@pytest.fixture(scope="module")
def complete(emoji: EmojiDataset) -> dict[str, float]:
    return four_way_scores(emoji)


class TestFourModalities:
    """32 bits, default settings; chance is .13."""

    def test_every_direction(self, complete: dict[str, float]) -> None:
        assert len(complete) == 20
        assert min(complete.values()) > 0.55

    def test_between_languages(self, complete: dict[str, float]) -> None:
        for a in ("text", "de", "ja"):
            for b in ("text", "de", "ja"):
                assert complete[f"{a}->{b}"] > 0.59, (a, b)
        assert complete["de->ja"] > 0.6
        assert complete["ja->text"] > 0.65

    def test_with_four_of_ten_rows_absent(self, emoji: EmojiDataset, complete: dict[str, float]) -> None:
        rng = np.random.default_rng(0)
        absent = rng.random((len(emoji.train), len(MODALITIES))) < 0.4
        empty = np.flatnonzero(absent.all(axis=1))
        absent[empty, rng.integers(len(MODALITIES), size=len(empty))] = False
        assert absent.mean() > 0.37
        scores = four_way_scores(emoji, absent)
        assert min(scores.values()) > 0.53
        assert np.mean(list(scores.values())) > np.mean(list(complete.values())) - 0.03
