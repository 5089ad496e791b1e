"""Arrays that start where the hardware likes it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

_LINE = 64
_LARGE_PAGE = 1 << 21


def aligned_empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Like `numpy.empty`, with the first byte at a cache line, that of a long array at a large page.

    NumPy asks the system for large pages where an array is long enough, and gets them for what is aligned to them.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    alignment = _LARGE_PAGE if size >= 2 * _LARGE_PAGE else _LINE
    room = np.empty(size + alignment, dtype=np.uint8)
    start = -room.ctypes.data % alignment
    return room[start : start + size].view(dtype).reshape(shape)
