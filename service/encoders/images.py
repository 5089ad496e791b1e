"""Image files of strangers, unpacked with care. Needs Pillow (extra `onnx`), and imports it when it is used."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = ("JPEG", "PNG", "WEBP", "GIF")
_NAMES = "JPEG, PNG, WebP or GIF"


def open_image(data: bytes, max_pixels: int) -> Image:
    """An image file (of an animation the first frame) as RGB, the way up that its camera noted.

    Its size is seen to before anything is unpacked: some bytes may announce billions of pixels.

    Raises
    ------
    ValueError
        It is no image of these formats, damaged, or of more than `max_pixels`; the message says which.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            width, height = image.size
            if width * height <= max_pixels:
                ImageOps.exif_transpose(image, in_place=True)  # in place, as is all that can be: images are large
                image.load()
                return image if image.mode == "RGB" else image.convert("RGB")
    except UnidentifiedImageError:
        raise ValueError(f"expected an image file ({_NAMES}), got {len(data)} bytes that are none") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):  # Pillow's own limit, of billions
        raise ValueError(f"expected an image of at most {max_pixels} pixels, got far more") from None
    except Exception as error:  # what a damaged file raises is of any kind
        raise ValueError(f"expected an image file ({_NAMES}), got a damaged one: {error}") from None
    raise ValueError(f"expected an image of at most {max_pixels} pixels, got {width} x {height}")
