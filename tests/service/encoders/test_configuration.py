"""The file of encoders: what is wrong with it is told at the start, in one line; further kinds are found by name."""

import sys

import numpy as np
import pytest

from ccq_core.datasets import load_emoji
from ccq_core.datasets.text import UnknownWordsError
from service.encoders import ValueRefusedError
from service.encoders.configuration import KINDS, open_encoders
from service.errors import SettingError
from service.runtime import Runtime
from service.settings import Settings
from tests.service.encoders.fakes import serving


def opened(tmp_path, text=None):
    file = None
    if text is not None:
        file = tmp_path / "encoders.toml"
        file.write_text(text)
    return open_encoders(Settings(data=tmp_path / "data", encoders=file))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[a", "not valid TOML"),
        ("a = 1", "encoder 'a' of .*: expected a table with a kind, one of emoji, onnx-image, onnx-text"),
        ("[a]\nlanguage = 'de'", "expected a table with a kind"),
        ("[a]\nkind = 1", "expected a table with a kind"),
        ("[a]\nkind = 'none'", "kind: expected one of emoji, onnx-image, onnx-text, got 'none'"),
        ("['a b']\nkind = 'emoji'", "expected a name of a letter or digit"),
        ("[a]\nkind = 'emoji'\nlanguage = 'fr'", "expected 'de' or 'ja', got 'fr'"),
        ("[a]\nkind = 'emoji'\nlanguage = 1", "language: expected a string"),
        ("[a]\nkind = 'emoji'\nsize = 1", "size: unknown key, expected language"),
        ("[a]\nkind = 'onnx-text'", "model: missing"),
        ("[a]\nkind = 'onnx-image'\nmodel = 'no.onnx'", "expected a file at .*no.onnx, there is none"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(tmp_path, text, words):
    with pytest.raises(SettingError, match=words) as refused:
        opened(tmp_path, text)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("error", "words"), [(RuntimeError("no\nroom"), "no room"), (KeyError(), "KeyError")])
def test_whatever_an_encoder_raises_is_told(tmp_path, monkeypatch, error, words):
    def make(options, surroundings):
        raise error

    monkeypatch.setitem(KINDS, "broken", make)
    with pytest.raises(SettingError, match=f"encoder 'a' of .*: {words}$"):
        opened(tmp_path, "[a]\nkind = 'broken'")


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(SettingError, match="No such file or directory"):
        open_encoders(Settings(data=tmp_path, encoders=tmp_path / "none.toml"))
    assert Settings(data=tmp_path, encoders="").encoders is None


def test_a_server_does_not_start_with_a_wrong_file_and_lets_go_of_its_directory(tmp_path):
    file = tmp_path / "encoders.toml"
    file.write_text("[a]\nkind = 'none'")
    settings = Settings(data=tmp_path / "data", encoders=file)
    with pytest.raises(SettingError):
        Runtime.open(settings)
    file.write_text("")
    Runtime.open(settings).close()


def test_a_kind_of_another_package_is_found_by_its_entry_point(tmp_path, monkeypatch):
    package = tmp_path / "site"
    info = package / "plug-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plug\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[ccq_search.encoders]\nplug-letters = plug_module:make\n")
    (package / "plug_module.py").write_text(
        "from tests.service.encoders.fakes import Letters\n\n\ndef make(options, surroundings):\n"
        "    return Letters(options, surroundings)\n"
    )
    monkeypatch.syspath_prepend(package)
    monkeypatch.delitem(sys.modules, "plug_module", raising=False)
    encoder = opened(tmp_path, "[mine]\nkind = 'plug-letters'\nsome = [1, 2]\n")["mine"]
    assert encoder._encoder.options == {"some": [1, 2]}
    assert encoder._encoder.surroundings.folder == tmp_path
    assert encoder._encoder.surroundings.max_image_pixels == 40_000_000
    np.testing.assert_array_equal(encoder.encode(["abba"]), [[2, 2, 0, 0, 0, 0, 0, 0]])
    with pytest.raises(SettingError, match="expected one of emoji, onnx-image, onnx-text, plug-letters, got 'x'"):
        opened(tmp_path, "[mine]\nkind = 'x'")


# -- emoji -----------------------------------------------------------------------------------------------------------


def test_words_are_projected_as_the_data_set_does(tmp_path):
    known = opened(tmp_path, "[deutsch]\nkind = 'emoji'\nlanguage = 'de'")
    assert list(known) == ["deutsch", "emoji"]
    emoji = load_emoji(languages=["de"])
    words = ["cat", "red fruit"]
    np.testing.assert_array_equal(known["emoji"].encode(words), emoji.embed_text(words))
    np.testing.assert_array_equal(known["deutsch"].encode(["Katze"]), emoji.embed_text(["Katze"], "de"))
    assert known["emoji"].dim == 128
    with pytest.raises(ValueRefusedError, match="no known word in 'girafe'; did you mean 'giraffe'") as refused:
        known["emoji"].encode(["cat", "girafe"])
    assert refused.value.row == 1
    assert list(opened(tmp_path, "[emoji]\nkind = 'emoji'\nlanguage = 'ja'")) == ["emoji"]


def test_near_words_are_looked_for_a_few_times_only(monkeypatch):
    looked = []
    monkeypatch.setattr("difflib.get_close_matches", lambda word, *rest, **more: looked.append(word) or [])
    with pytest.raises(UnknownWordsError, match="the vocabulary has") as refused:
        load_emoji().embed_text(["y" * 5000 + "".join(f" qx{i:x}zj" for i in range(2000))])
    assert refused.value.row == 0
    assert looked == [f"qx{i}zj" for i in range(8)]


def test_pictures_by_words_end_to_end(tmp_path, monkeypatch):
    """What `ccq demo` does, of a model of the data set."""
    from ccq_core import CCQ

    emoji = load_emoji()
    model = CCQ(bits=32, iterations=2, seed=0).fit({name: x[:600] for name, x in emoji.all.features.items()})
    service = serving(tmp_path, monkeypatch, "")
    try:
        assert service.request("PUT", "/models/emoji", content=model.to_bytes()).status_code == 201
        service.ok("PUT", "/collections/default", {"model": "emoji", "encoders": {"text": "emoji"}})
        items = [
            {
                "id": glyph,
                "features": {"image": emoji.all.features["image"][row].tolist(), "text": emoji.all.names[row]},
            }
            for row, glyph in enumerate(emoji.all.glyphs[:200])
        ]
        service.ok("POST", "/index", {"items": items})
        raw = service.ok("POST", "/search", {"query": {"text": "cat"}, "database": "text"})["results"]
        vector = emoji.embed_text(["cat"])[0].tolist()
        assert raw == service.ok("POST", "/search", {"query": {"text": vector}, "database": "text"})["results"]
        assert raw
    finally:
        service.close()
