"""Stacked frames of bytes as a convolution multiplies them: bfloat16, the channels of a pixel side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

AT_ONCE = 4
"""Channels of a pixel that are written as one word."""


@njit(nogil=True, cache=True, error_model="numpy")
def interleave(frames: Any, words: Any) -> None:
    """Bytes (n, channels, pixels) into (n, pixels, channels/4) words of four bfloat16 each, exactly.

    A bfloat16 is the upper half of a float32, and holds every whole number up to 256.
    """
    n, channels, pixels = frames.shape
    for i in range(n):
        for word in range(channels // AT_ONCE):
            for pixel in range(pixels):
                bits = np.uint64(0)
                for k in range(AT_ONCE):
                    number = np.float32(frames[i, AT_ONCE * word + k, pixel])
                    bits |= np.uint64(number.view(np.uint32) >> 16) << np.uint64(16 * k)
                words[i, pixel, word] = bits
