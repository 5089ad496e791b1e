"""Languages: how a text is taken apart into words. Needs the standard library only.

What a tokeniser returns stands for a word and need not be one: a stem in German, two neighbouring kanji in Japanese.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Container
from dataclasses import dataclass

_LONGEST_COMPOUND = 64


@dataclass(frozen=True)
class Language:
    """A tokeniser, and what is known of how the language composes words."""

    code: str
    """Two letters, as in ISO 639."""
    name: str
    """Its English name, for messages."""
    tokenize: Callable[[str], list[str]]
    """The words of a text, normalised, in order."""
    joints: tuple[str, ...] = ()
    """What may follow a part of a compound that is not the last, `""` included; none: compounds stay whole."""
    shortest_part: int = 1
    """Number of characters of the shortest part of a compound."""

    def parts(self, word: str, known: Container[str]) -> list[str]:
        """`word` alone where it is known, else the known words that it is composed of; none where there are none.

        Of several ways to take a compound apart, the one with the longest first part counts.
        """
        if word in known:
            return [word]
        if not self.joints or len(word) > _LONGEST_COMPOUND:
            return []
        rest: dict[int, list[str]] = {len(word): []}  # position -> the parts of what starts there
        for start in range(len(word) - self.shortest_part, -1, -1):
            for end in sorted(rest, reverse=True):
                part = self._part(word[start:end], known, self.joints if rest[end] else ("",))
                if part:
                    rest[start] = [part, *rest[end]]
                    break
        return rest.get(0, [])

    def _part(self, piece: str, known: Container[str], joints: tuple[str, ...]) -> str:
        """`piece` without its joint where that is a known word, else ""."""
        for joint in joints:
            part = piece.removesuffix(joint)
            if piece.endswith(joint) and len(part) >= self.shortest_part and part in known:
                return part
        return ""


_APOSTROPHES = re.compile(r"['\u2018\u2019]")
_INITIALS = re.compile(r"(?<=\b[^\W\d_])\.(?=[^\W\d_]\b)")  # the inner dots of "U.S." and "S.O.S."
_TOKENS = re.compile(r"[#*]|\w+")


def _latin_words(text: str) -> list[str]:
    """Words in Latin letters without case and accents.

    Apostrophes go, other punctuation separates words (`#` and `*`, which are on keys, are words), dots inside initials
    go (`U.S.` is `us`).
    """
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(c for c in decomposed if not unicodedata.combining(c)).replace("_", " ")
    return _TOKENS.findall(_INITIALS.sub("", _APOSTROPHES.sub("", plain)))


# -- English -----------------------------------------------------------------------------------------------------------

STOP_WORDS = frozenset(
    ["a", "an", "and", "at", "by", "for", "from", "in", "into", "of", "on", "or", "out", "the", "to", "with"]
)
"""Words that say how the others hang together, not what is meant; `tokenize` drops them."""

_IRREGULAR = {
    "aries": "aries",
    "bahamas": "bahamas",
    "barbados": "barbados",
    "buses": "bus",
    "calves": "calf",
    "canoes": "canoe",
    "children": "child",
    "christmas": "christmas",
    "cookies": "cookie",
    "feet": "foot",
    "geese": "goose",
    "genies": "genie",
    "halves": "half",
    "headaches": "headache",
    "honduras": "honduras",
    "knives": "knife",
    "laos": "laos",
    "leaves": "leaf",
    "lens": "lens",
    "lenses": "lens",
    "loaves": "loaf",
    "men": "man",
    "mice": "mouse",
    "movies": "movie",
    "news": "news",
    "octopuses": "octopus",
    "people": "person",
    "pies": "pie",
    "pisces": "pisces",
    "rhinoceros": "rhinoceros",
    "rhinoceroses": "rhinoceros",
    "scarves": "scarf",
    "selfies": "selfie",
    "shoes": "shoe",
    "shorts": "shorts",
    "teeth": "tooth",
    "ties": "tie",
    "toes": "toe",
    "wales": "wales",
    "walruses": "walrus",
    "wolves": "wolf",
    "women": "woman",
    "zombies": "zombie",
}


def singular(word: str) -> str:
    """The singular of a lower-case English noun, by rule and a short list of exceptions.

    It is also applied to words that are not nouns: what counts is that a query and a text are treated alike.
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zzes", "oes")):
        return word[:-2]
    return word[:-1]


def tokenize(text: str) -> list[str]:
    """The English words of `text` (see `_latin_words`), without `STOP_WORDS`, plurals turned into singulars."""
    return [singular(word) for word in _latin_words(text) if word not in STOP_WORDS]


# -- German ------------------------------------------------------------------------------------------------------------

# fmt: off
GERMAN_STOP_WORDS = frozenset(
    [
        "als", "am", "an", "auf", "aus", "bei", "das", "dem", "den", "der", "des", "die", "ein", "eine",
        "einem", "einen", "einer", "eines", "fur", "im", "in", "ist", "mit", "nach", "oder", "ohne", "sich",
        "uber", "um", "und", "unter", "vom", "von", "vor", "zu", "zum", "zur",
    ]
)
# fmt: on
"""The same in German, without umlauts; `tokenize_german` drops them."""

_SPELLED_UMLAUT = re.compile(r"(?<![aeq])ue|(?<=[ao])e")
_ENDINGS = ("ern", "em", "en", "er", "es", "e")
_FEMININE = ("inn", "in")


def german_stem(word: str) -> str:
    """A German word, lower-case and without umlauts, without its ending: `katzen` and `katze` are `katz`.

    The feminine ending goes too (`arztinnen`, `arztin`, `arzt`). A stem is for comparison and need not be a word.
    """
    if word.endswith("eln"):
        return word[:-1]
    if len(word) > 4 and word.endswith(("as", "is", "os", "us", "ys")):
        return word[:-1]
    word = _without(word, _ENDINGS, 3)
    return _without(word, _FEMININE, 4)


def _without(word: str, endings: tuple[str, ...], least: int) -> str:
    """`word` without the first of `endings` that leaves at least so many characters."""
    for ending in endings:
        if word.endswith(ending) and len(word) - len(ending) >= least:
            return word[: -len(ending)]
    return word


def tokenize_german(text: str) -> list[str]:
    """The stems of the German words of `text`.

    Umlauts become plain vowels, whether written with dots or with an e (`Äpfel`, `Aepfel`: `apfel`), ß becomes ss,
    `GERMAN_STOP_WORDS` go, endings go.
    """
    words = (_SPELLED_UMLAUT.sub(lambda found: "u" if found[0] == "ue" else "", word) for word in _latin_words(text))
    return [german_stem(word) for word in words if word not in GERMAN_STOP_WORDS]


# -- Japanese ----------------------------------------------------------------------------------------------------------

_KANJI = r"\u3400-\u9fff\u3005\u3007"
_HIRAGANA = r"\u3041-\u3096\u30fc"
_KATAKANA = r"\u30a1-\u30fa\u30fc"
# Hiragana right behind a kanji are its ending.
_RUNS = re.compile(
    rf"[#*]|(?P<kanji>[{_KANJI}]+)[\u3041-\u3096]*|(?P<katakana>[{_KATAKANA}]+)|(?P<hiragana>[{_HIRAGANA}]+)"
    rf"|[^\W_{_KANJI}\u3041-\u30ff]+"
)
_TO_HIRAGANA = {code: code - 0x60 for code in range(0x30A1, 0x30F7)}


def tokenize_japanese(text: str) -> list[str]:
    """The words of a Japanese text, which has no spaces, as far as its scripts tell them apart.

    A run of katakana, of hiragana or of Latin letters and digits is a word; two neighbouring kanji are one, and a
    kanji that stands alone. What a word ends with in hiragana behind kanji goes, and so does a lone hiragana: mostly a
    particle. Width and case do not matter, nor whether a word is in hiragana or in katakana.
    """
    words: list[str] = []
    for run in _RUNS.finditer(unicodedata.normalize("NFKC", text).casefold()):
        if kanji := run["kanji"]:
            words += [kanji[i : i + 2] for i in range(max(1, len(kanji) - 1))]
        elif not (run["hiragana"] and len(run["hiragana"]) == 1):
            words.append(run[0].translate(_TO_HIRAGANA))
    return words


ENGLISH = Language("en", "English", tokenize)
GERMAN = Language("de", "German", tokenize_german, joints=("", "e", "en", "er", "es", "n", "s"), shortest_part=3)
JAPANESE = Language("ja", "Japanese", tokenize_japanese, joints=("",), shortest_part=2)
LANGUAGES = {language.code: language for language in (ENGLISH, GERMAN, JAPANESE)}
