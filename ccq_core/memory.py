"""Arrays that start at a cache line, as the kernels like them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

_LINE = 4096


def aligned_empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Like `numpy.empty`, with the first byte at a multiple of 64."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    room = np.empty(size + _LINE, dtype=np.uint8)
    start = -room.ctypes.data % _LINE
    return room[start : start + size].view(dtype).reshape(shape)
