"""Images by a model of ONNX Runtime: resized, cropped and normalised pixels in, a vector for each image out."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ccq_core.features import Float32
from service.encoders.images import open_image
from service.encoders.interface import Surroundings, Takes, ValueRefusedError
from service.encoders.options import local_file, read_options
from service.encoders.sessions import EXTRA, Session, SessionOptions, as_features

if TYPE_CHECKING:
    from PIL.Image import Image

_Three = list[float]


class ImageOptions(SessionOptions):
    """Options, beside those of all models.

    Attributes
    ----------
    size:
        Width and height of what the model is given, in pixels.
    resize:
        What the shorter side is resized to before the middle of that size is cut out; by default `size`.
    mean, std:
        Of each colour, of 0 to 1: by default those of CLIP.
    """

    size: int = Field(default=224, ge=1, le=4096)
    resize: int | None = Field(default=None, ge=1, le=8192)
    mean: _Three = Field(default=[0.48145466, 0.4578275, 0.40821073], min_length=3, max_length=3)
    std: _Three = Field(default=[0.26862954, 0.26130258, 0.27577711], min_length=3, max_length=3)


class OnnxImage:
    """An encoder of images; see `ImageOptions`, and `Session` for what it raises."""

    takes: Takes = "image"

    def __init__(self, options: ImageOptions, surroundings: Surroundings) -> None:
        try:
            from PIL import Image
        except ImportError:
            raise ImportError(EXTRA) from None
        if options.resize is not None and options.resize < options.size:
            raise ValueError(f"resize: expected at least size, {options.size}, got {options.resize}")
        if min(options.std) <= 0:
            raise ValueError(f"std: expected numbers above 0, got {min(options.std)}")
        self._session = Session(local_file(options.model, surroundings), options)
        if len(self._session.inputs) != 1:
            raise ValueError(f"model: expected one input, got {', '.join(self._session.inputs)}")
        self._session.check_inputs(self._session.inputs)
        self._options = options
        self._max_pixels = surroundings.max_image_pixels
        file = io.BytesIO()
        Image.new("RGB", (8, 8)).save(file, "PNG")
        self.dim: int = self.encode([file.getvalue()] * 2).shape[1]  # tried with two: some models take one alone

    def encode(self, values: Sequence[bytes]) -> Float32:
        """See `service.encoders.interface.Encoder`."""
        size = self._options.size
        pixels = np.empty((len(values), 3, size, size), dtype=np.float32)
        for row, data in enumerate(values):
            try:
                image = open_image(data, self._max_pixels)
            except ValueError as error:
                raise ValueRefusedError(row, str(error)) from None
            pixels[row] = prepare(image, self._options)
        (name,) = self._session.inputs
        return as_features(self._session.run({name: pixels}), self._options.normalize)


def prepare(image: Image, options: ImageOptions) -> NDArray[np.float32]:
    """An RGB image as the model takes it: (3, size, size) float32.

    The middle is cut out first and resized then, which is the same, but that a very narrow image stays small.
    """
    from PIL import Image as Pillow

    side = min(image.size) * options.size / (options.resize or options.size)
    left, top = ((length - side) / 2 for length in image.size)
    size = (options.size, options.size)
    cut = image.resize(size, Pillow.Resampling.BICUBIC, box=(left, top, left + side, top + side))
    scaled = np.asarray(cut, dtype=np.float32) / np.float32(255)
    normal = (scaled - np.array(options.mean, np.float32)) / np.array(options.std, np.float32)
    return np.asarray(normal.transpose(2, 0, 1), dtype=np.float32)


def make(options: Mapping[str, Any], surroundings: Surroundings) -> OnnxImage:
    """An encoder from its options in the file of encoders."""
    return OnnxImage(read_options(options, ImageOptions), surroundings)
