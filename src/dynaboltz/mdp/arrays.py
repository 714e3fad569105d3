"""Array types and the few array helpers that the whole package shares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dynaboltz.errors import UserError

Ints: TypeAlias = npt.NDArray[np.integer[Any]]
Floats: TypeAlias = npt.NDArray[np.floating[Any]]
Bools: TypeAlias = npt.NDArray[np.bool_]

BLOCK = 1 << 20
"""Rows treated at a time where a pass over the whole model would need large temporaries."""


def index_dtype(largest: int) -> type[np.int32] | type[np.int64]:
    """The narrowest index type that holds ``largest``: half the memory traffic of a sweep is indices."""
    return np.int32 if largest <= np.iinfo(np.int32).max else np.int64


def integers(name: str, values: npt.ArrayLike, *, size: int | None = None) -> Ints:
    """``values`` as a one-dimensional integer array; anything else is refused by name."""
    array = np.asarray(values)
    if array.size == 0 and not isinstance(values, np.ndarray):
        array = array.astype(np.int64)  # an empty list has no type of its own
    if array.dtype.kind not in "iu":
        raise UserError(f"{name} must hold integers, got values of type {array.dtype}")
    _one_dimensional(name, array, size)
    return array


def reals(name: str, values: npt.ArrayLike, *, size: int | None = None) -> Floats:
    """``values`` as a one-dimensional float array, float32 kept and all else float64."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise UserError(f"{name} must hold real numbers, got values of type {array.dtype}")
    _one_dimensional(name, array, size)
    return array if array.dtype == np.float32 else array.astype(np.float64, copy=False)


def _one_dimensional(name: str, array: npt.NDArray[Any], size: int | None) -> None:
    if array.ndim != 1:
        raise UserError(f"{name} must have one dimension, got the shape {array.shape}")
    if size is not None and array.size != size:
        raise UserError(f"{name} must have {size} entries, got {array.size}")


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """``array`` itself, contiguous and no longer writeable."""
    array = np.ascontiguousarray(array)
    array.flags.writeable = False
    return array


def blocks(pointer: Ints) -> Iterator[tuple[slice, slice, Ints]]:
    """Consecutive ``(segments, entries, starts)`` of a CSR pointer, ``starts`` counted from the block's first entry."""
    for low in range(0, pointer.size - 1, BLOCK):
        high = min(low + BLOCK, pointer.size - 1)
        first, last = int(pointer[low]), int(pointer[high])
        yield slice(low, high), slice(first, last), pointer[low:high] - first


def pointer(lengths: Ints) -> Ints:
    """The CSR pointer of segments of the given lengths.

    >>> pointer(np.array([2, 0, 3]))
    array([0, 2, 2, 5], dtype=int32)
    """
    total = int(lengths.sum(dtype=np.int64))
    result = np.zeros(lengths.size + 1, index_dtype(total))
    np.cumsum(lengths, out=result[1:])
    return result


def first(mask: Bools) -> int | None:
    """The first index where ``mask`` is true, or None."""
    index = int(mask.argmax()) if mask.size else 0
    return index if mask.size and mask[index] else None
