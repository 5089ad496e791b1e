"""What counts as a word in German and Japanese; English is in test_emoji_dataset.py."""

from __future__ import annotations

import pytest

from ccq_core.datasets.languages import ENGLISH, GERMAN, tokenize_german, tokenize_japanese


@pytest.mark.parametrize(
    ("forms", "stem"),
    [
        ("Apfel Äpfel Äpfeln Aepfel APFEL", "apfel"),
        ("Katze Katzen", "katz"),
        ("Arzt Ärzte Ärztin Ärztinnen", "arzt"),
        ("Haus Häuser Häusern", "haus"),
        ("Stern Sterne Sternen", "stern"),
        ("Kartoffel Kartoffeln", "kartoffel"),
        ("Auto Autos", "auto"),
        ("rot rote roter rotes roten", "rot"),
        ("grün gruen grüne", "grun"),
        ("blau blaue", "blau"),
        ("Straße STRASSE Straßen", "strass"),
    ],
)
def test_german_stems(forms: str, stem: str) -> None:
    assert set(tokenize_german(forms)) == {stem}


def test_german_function_words_go() -> None:
    assert tokenize_german("die Katze mit dem Hund für Ärzte") == ["katz", "hund", "arzt"]


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("apfelkuch", ["apfel", "kuch"]),
        ("katzenkuch", ["katz", "kuch"]),
        ("geburtstagskuch", ["geburt", "tag", "kuch"]),
        ("apfel", ["apfel"]),
        ("apfelx", []),
        ("apfelkuchen", []),  # no joint at the end: the stemmer has been there
        ("apfel" * 13, []),  # 65 characters
    ],
)
def test_german_compounds(word: str, parts: list[str]) -> None:
    assert GERMAN.parts(word, {"apfel", "kuch", "katz", "geburt", "tag"}) == parts


def test_english_words_stay_whole() -> None:
    assert ENGLISH.parts("catfish", {"cat", "fish"}) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("赤いリンゴ", ["赤", "りんご"]),
        ("ﾘﾝｺﾞ りんご リンゴ", ["りんご", "りんご", "りんご"]),
        ("宇宙飛行士", ["宇宙", "宙飛", "飛行", "行士"]),
        ("ネコの顔", ["ねこ", "顔"]),
        ("F\uff11レース #", ["f1", "れーす", "#"]),
        ("らーめん・ラーメン", ["らーめん", "らーめん"]),
        ("の を!", []),
    ],
)
def test_japanese_words(text: str, words: list[str]) -> None:
    assert tokenize_japanese(text) == words
