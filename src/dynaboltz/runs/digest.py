"""One number for a whole state: equal states have equal digests, whatever they are made of."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np


def digest(tree: Any) -> str:
    """The SHA-256 of a tree of mappings, lists, arrays, numbers, texts and None: kinds, shapes and every bit.

    >>> digest({"a": np.zeros(2)}) == digest({"a": np.zeros(2)}), digest([0.0]) == digest([-0.0])
    (True, False)
    """
    found = hashlib.sha256()
    _add(found, tree)
    return found.hexdigest()


def _add(found: Any, value: Any) -> None:
    if isinstance(value, Mapping):
        found.update(b"{%d" % len(value))
        for key in sorted(value):
            _add(found, key)
            _add(found, value[key])
    elif isinstance(value, (list, tuple)):
        found.update(b"[%d" % len(value))
        for one in value:
            _add(found, one)
    elif isinstance(value, np.ndarray):
        found.update(f"array {value.dtype.str} {value.shape}".encode())
        found.update(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)
    elif isinstance(value, (bytes, bytearray)):
        found.update(b"bytes %d " % len(value) + value)
    else:
        plain = value.item() if isinstance(value, np.generic) else value
        found.update(f"{type(plain).__name__} {plain!r} ".encode())
