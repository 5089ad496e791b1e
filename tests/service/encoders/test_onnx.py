"""Encoders by ONNX Runtime: what they give is what their models compute, and what does not fit is told at the start."""

import io
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="extra onnx")
pytest.importorskip("tokenizers", reason="extra onnx")
pytest.importorskip("onnx", reason="makes the models")

from onnx import TensorProto
from PIL import Image

from service.encoders.configuration import open_encoders
from service.encoders.interface import ValueRefusedError
from service.encoders.onnx_image import ImageOptions, prepare
from service.errors import SettingError
from service.settings import Settings
from tests.service.encoders import onnxmodels
from tests.service.encoders.fakes import base64_of, serving
from tests.service.encoders.onnxmodels import TABLE, unit, vectors
from tests.service.harness import assert_problem, fill

TEXTS = ["a red car", "blue", "a bicycle car car"]
TEXT = "kind = 'onnx-text'\nmodel = 'text.onnx'\ntokenizer = 'tokenizer.json'\n"
IMAGE = "kind = 'onnx-image'\nmodel = 'image.onnx'\nsize = 8\n"
PLAIN = "mean = [0.0, 0.0, 0.0]\nstd = [1.0, 1.0, 1.0]\nnormalize = false\n"


@pytest.fixture
def opened(tmp_path):
    """Opens the encoder `x` of a table with these options, in a folder with the models."""
    onnxmodels.write_tokenizer(tmp_path / "tokenizer.json")
    onnxmodels.write_text_model(tmp_path / "text.onnx")
    onnxmodels.write_image_model(tmp_path / "image.onnx", 8)

    def open_(options, **settings):
        file = tmp_path / "encoders.toml"
        file.write_text(f"[x]\n{options}")
        return open_encoders(Settings(data=tmp_path / "data", encoders=file, **settings))["x"]

    return open_


def png(array, kind="PNG", **options):
    file = io.BytesIO()
    Image.fromarray(array).save(file, kind, **options)
    return file.getvalue()


def plain(colour, width, height):
    return np.tile(np.array(colour, np.uint8), (height, width, 1))


# -- texts -----------------------------------------------------------------------------------------------------------


def near(got, want):
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_texts_are_what_the_model_makes_of_them(opened):
    encoder = opened(TEXT)
    assert (encoder.takes, encoder.dim) == ("text", 8)
    near(encoder.encode(TEXTS), unit(np.array([x.sum(axis=0) for x in vectors(*TEXTS)])))
    for text in TEXTS:  # padding makes no difference
        near(encoder.encode([text]), unit(vectors(text)[0].sum(axis=0))[None])


def test_features_are_left_as_they_are_if_so_wanted(opened):
    near(opened(TEXT + "normalize = false").encode(TEXTS), np.array([x.sum(axis=0) for x in vectors(*TEXTS)]))


@pytest.mark.parametrize(("pool", "reduce"), [("mean", lambda x: x.mean(axis=0)), ("first", lambda x: x[0])])
def test_vectors_of_tokens_are_pooled(opened, pool, reduce):
    encoder = opened(TEXT + f"output = 'tokens'\npool = '{pool}'\nnormalize = false")
    near(encoder.encode(TEXTS), np.array([reduce(x) for x in vectors(*TEXTS)]))


def test_long_texts_are_cut(opened):
    encoder = opened(TEXT + "max_tokens = 2")
    near(encoder.encode(["a red car blue"]), encoder.encode(["a red"]))


@pytest.mark.parametrize("more", ["pad = 'max_tokens'\nmax_tokens = 9", "pad_id = 5"])
def test_padding_may_be_chosen(opened, more):
    near(opened(TEXT + more).encode(TEXTS), unit(np.array([x.sum(axis=0) for x in vectors(*TEXTS)])))


def test_what_is_padded_with_is_seen_by_models_without_a_mask(opened, tmp_path):
    """Which token that is: the option says so, unless the tokenizer's file does."""
    first = TEXT + "output = 'tokens'\npool = 'first'\nnormalize = false\n"
    for padding, options, token in (({}, "", 0), ({}, "pad_id = 5", 5), ({"pad_id": 4}, "pad_id = 5", 4)):
        onnxmodels.write_tokenizer(tmp_path / "tokenizer.json", **padding)
        encoder = opened(first + "pad = 'max_tokens'\nmax_tokens = 3\n" + options)
        near(encoder.encode([""]), TABLE[[token]])


@pytest.mark.parametrize("kind", [TensorProto.INT64, TensorProto.INT32])
@pytest.mark.parametrize("extra", [None, "token_type_ids"])
def test_inputs_are_of_the_types_that_the_model_has(opened, tmp_path, kind, extra):
    onnxmodels.write_text_model(tmp_path / "text.onnx", kind, extra)
    near(opened(TEXT).encode(["car"]), unit(TABLE[[5]]))


# -- images ----------------------------------------------------------------------------------------------------------


def test_images_are_what_the_model_makes_of_them(opened):
    encoder = opened(IMAGE + PLAIN)
    assert (encoder.takes, encoder.dim) == ("image", 12)
    colours = [[255, 0, 0], [10, 200, 30]]
    got = encoder.encode([png(plain(colour, *size)) for colour, size in zip(colours, [(8, 8), (50, 20)], strict=True)])
    near(got, np.array(colours, np.float32) / 255 @ onnxmodels.COLOURS)


def test_mean_std_and_length(opened):
    encoder = opened(IMAGE + "mean = [0.5, 0.25, 0.0]\nstd = [0.5, 0.5, 2.0]")
    colour = (np.array([255, 0, 51]) / 255 - [0.5, 0.25, 0.0]) / [0.5, 0.5, 2.0]
    near(encoder.encode([png(plain([255, 0, 51], 8, 8))]), unit(colour @ onnxmodels.COLOURS)[None])


@pytest.mark.parametrize(
    ("shape", "resize", "resized", "corner"),
    [((37, 37), 8, (8, 8), (0, 0)), ((20, 60), 8, (24, 8), (8, 0)), ((60, 40), 16, (16, 24), (4, 8))],
)
def test_pixels_are_those_that_resizing_and_then_cropping_gives(shape, resize, resized, corner):
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype=np.uint8))
    left, top = corner
    want = noise.resize(resized, Image.Resampling.BICUBIC).crop((left, top, left + 8, top + 8))
    options = ImageOptions(model="m", size=8, resize=resize, mean=[0, 0, 0], std=[1, 1, 1])
    got = prepare(noise, options).transpose(1, 2, 0) * 255
    np.testing.assert_allclose(got, np.asarray(want, np.float32), atol=1.01)


@pytest.mark.parametrize(("kind", "options"), [("JPEG", {"quality": 100}), ("WEBP", {"lossless": True}), ("GIF", {})])
def test_the_formats_of_the_web(opened, kind, options):
    encoder = opened(IMAGE + PLAIN)
    want = encoder.encode([png(plain([200, 40, 80], 16, 16))])
    np.testing.assert_allclose(encoder.encode([png(plain([200, 40, 80], 16, 16), kind, **options)]), want, atol=0.02)


def test_grey_and_transparent_images_and_palettes_are_colours_too(opened):
    encoder = opened(IMAGE + PLAIN)
    grey = np.full((9, 9), 100, np.uint8)
    want = encoder.encode([png(plain([100, 100, 100], 9, 9))])
    near(encoder.encode([png(grey)]), want)
    near(encoder.encode([png(np.dstack([grey] * 3 + [np.full_like(grey, 7)]))]), want)


def test_a_photo_is_seen_the_way_up_that_its_camera_noted(opened):
    half = plain([255, 0, 0], 30, 10)
    half[:, 20:] = [0, 0, 255]
    turned = Image.fromarray(np.rot90(half))
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter, clockwise
    file = io.BytesIO()
    turned.save(file, "PNG", exif=exif)
    cut = opened(IMAGE + PLAIN)
    near(cut.encode([file.getvalue()]), cut.encode([png(half)]))


def test_numbers_of_half_the_length(opened, tmp_path):
    onnxmodels.write_image_model(tmp_path / "image.onnx", 8, TensorProto.FLOAT16)
    got = opened(IMAGE + PLAIN).encode([png(plain([255, 0, 0], 8, 8))])
    np.testing.assert_allclose(got, onnxmodels.COLOURS[:1], rtol=1e-2)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "expected an image file .*, got 0 bytes that are none"),
        (b"GIF89a", "expected an image file"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "bytes that are none"),
        (png(plain([1, 2, 3], 64, 64))[:-40], "got a damaged one"),
        (png(plain([1, 2, 3], 64, 64), "BMP"), "JPEG, PNG, WebP or GIF"),
        (png(plain([1, 2, 3], 64, 64), "TIFF"), "JPEG, PNG, WebP or GIF"),
        (png(plain([1, 2, 3], 201, 100)), "expected an image of at most 20000 pixels, got 201 x 100"),
    ],
)
def test_what_is_no_image_is_refused(opened, data, words):
    encoder = opened(IMAGE, max_image_pixels=20_000)
    with pytest.raises(ValueRefusedError, match=words) as refused:
        encoder.encode([png(plain([1, 2, 3], 200, 100)), data])
    assert refused.value.row == 1


def bomb(width, height):
    """A PNG of a few bytes that announces as many pixels."""
    whole = bytearray(png(plain([1, 2, 3], 1, 1)))
    whole[16:24] = struct.pack(">II", width, height)
    whole[29:33] = struct.pack(">I", zlib.crc32(whole[12:29]))
    return bytes(whole)


@pytest.mark.parametrize("side", [6_400, 10_000, 30_000, 2**31 - 1])
def test_a_small_file_of_many_pixels_is_not_unpacked(opened, side, monkeypatch):
    encoder = opened(IMAGE)
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", lambda self: pytest.fail("it was unpacked"))
    with pytest.raises(ValueRefusedError, match="expected an image of at most 40000000 pixels, got"):
        encoder.encode([bomb(side, side)])


def test_a_very_narrow_image_stays_small(opened, monkeypatch):
    sizes = []
    resize = Image.Image.resize
    monkeypatch.setattr(
        Image.Image, "resize", lambda self, size, *a, **k: sizes.append(size) or resize(self, size, *a, **k)
    )
    opened(IMAGE).encode([png(plain([1, 2, 3], 1, 50_000))])
    assert set(sizes) == {(8, 8)}


# -- at the start ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (TEXT + "output = 'none'", "output: expected one of pooled, tokens, got 'none'"),
        (TEXT + "output = 'tokens'", r"expected the shape \(n, P\), got \(2, 2, 8\); or set pool"),
        (TEXT + "pool = 'mean'", r"pool: expected an output of the shape \(n, tokens, P\), got \(2, 8\)"),
        (TEXT + "pool = 'last'", "pool: "),
        (TEXT + "max_tokens = 0", "max_tokens: "),
        (TEXT.replace("text.onnx", "tokenizer.json"), "is no model that ONNX Runtime can run"),
        (TEXT.replace("text.onnx", "image.onnx"), "expected inputs input_ids, attention_mask, token_type_ids, got one"),
        (TEXT.replace("tokenizer.json", "text.onnx"), "is no tokenizer.json"),
        (IMAGE.replace("image.onnx", "text.onnx"), "model: expected one input, got input_ids, attention_mask"),
        (IMAGE + "resize = 4", "resize: expected at least size, 8, got 4"),
        (IMAGE + "std = [1.0, 0.0, 1.0]", "std: expected numbers above 0, got 0.0"),
        (IMAGE + "mean = [1.0]", "mean: "),
        (IMAGE.replace("8", "9"), r"model: cannot be run on pixels \(2, 3, 9, 9\)"),
    ],
)
def test_what_does_not_fit_is_told_in_one_line(opened, options, words):
    with pytest.raises(SettingError, match=words) as refused:
        opened(options)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("package", "options"), [("onnxruntime", TEXT), ("tokenizers", TEXT), ("PIL", IMAGE)])
def test_a_missing_package_is_named(opened, monkeypatch, package, options):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SettingError, match=r"pip install 'ccq-search\[onnx\]'"):
        opened(options)


def test_a_server_without_these_encoders_needs_none_of_the_packages(tmp_path):
    code = (
        "import sys; from pathlib import Path; from service.encoders.configuration import open_encoders; "
        "import service.app; from service.settings import Settings; open_encoders(Settings(data=Path('x'))); "
        "print([name for name in ('onnxruntime', 'tokenizers', 'PIL') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# -- over HTTP -------------------------------------------------------------------------------------------------------


def test_texts_and_images_over_http(opened, tmp_path, monkeypatch):
    tables = f"[words]\n{TEXT}\n[pictures]\n{IMAGE}"
    service = serving(tmp_path, monkeypatch, tables, max_image_pixels=100)
    try:
        service.create()
        service.ok("PUT", "/collections/default", {"model": "tiny", "encoders": {"text": "words", "image": "pictures"}})
        fill(service)
        picture = base64_of(png(plain([200, 40, 80], 10, 10)))
        thing = {"id": "car", "features": {"text": "a red car", "image": {"base64": picture}}}
        service.ok("POST", "/index", {"items": [thing]})
        for query in ({"text": "a red car"}, {"image": {"base64": picture}}):
            (database,) = query
            hits = service.ok("POST", "/search", {"query": query, "database": database, "limit": 1})["results"]
            assert hits[0]["id"] == "car"
        large = base64_of(png(plain([200, 40, 80], 11, 10)))
        problem = assert_problem(service.post("/search", {"query": {"image": {"base64": large}}}), 422, "cannot_encode")
        assert problem["detail"] == (
            "query.image: expected an image of at most 100 pixels, got 11 x 10 (encoder pictures)"
        )
    finally:
        service.close()
