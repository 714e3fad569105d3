"""A tree of states taken apart: a skeleton that is JSON, and arrays that are not.

In the skeleton an object is a dict; null, true, numbers and texts are themselves; everything else is a JSON array that
begins with its kind, so that nothing a caller stores can be mistaken for it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dynaboltz.errors import UserError

Tree = Mapping[str, Any]
"""Nested dicts with texts for keys. Leaves: arrays of numbers, bytes, texts, numbers, None, and lists of these."""

DEEPEST = 64
PLAIN_INT = 1 << 62
"""From here on integers are written in base 16, which costs no more than their length."""
WEIGHTS_SUFFIX = ".safetensors"
KINDS = "biufc"


class Damaged(Exception):  # noqa: N818 - caught by the store, which tells of it
    """What is wrong with a checkpoint."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


def printable(text: str) -> str:
    """``text`` without what would move a terminal's cursor: it may come from a file that is not to be trusted."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


class Weights(dict[str, npt.NDArray[Any]]):
    """Named arrays that are of use to others too: a leaf of a tree, and one ``.safetensors`` file on disk."""


@dataclass(slots=True)
class Parts:
    """A tree taken apart."""

    skeleton: Any = None
    arrays: list[npt.NDArray[Any]] = field(default_factory=list)
    """Little-endian and in C order."""
    weights: dict[str, Weights] = field(default_factory=dict)
    """By file name."""


def take_apart(tree: Tree) -> Parts:
    """The parts of ``tree``; arrays are not copied unless their order or byte order has to change."""
    parts = Parts()
    if not isinstance(tree, Mapping):
        raise UserError(f"a checkpoint is a dict, got {type(tree).__name__}")
    parts.skeleton = _apart(tree, (), parts)
    return parts


def _apart(value: Any, path: tuple[str, ...], parts: Parts) -> Any:  # noqa: PLR0912 - one branch a kind of leaf
    if len(path) > DEEPEST:
        raise _refused(path, f"is deeper than {DEEPEST} levels")
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic) and value.dtype.kind in "biuf" and not isinstance(value, np.longdouble):
        value = value.item()
        if isinstance(value, bool):
            return value
    if isinstance(value, int):
        return int(value) if abs(value) < PLAIN_INT else ["int", hex(value)]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else ["float", str(float(value))]
    if isinstance(value, bytes | bytearray | memoryview):
        parts.arrays.append(np.frombuffer(value, np.uint8))
        return ["bytes", len(parts.arrays) - 1]
    if isinstance(value, np.ndarray):
        parts.arrays.append(_plain(value, path))
        return ["array", len(parts.arrays) - 1]
    if isinstance(value, Weights):
        for name, array in value.items():
            if not isinstance(name, str) or not isinstance(array, np.ndarray):
                raise _refused((*path, str(name)), f"is a {type(array).__name__}; weights are NumPy arrays by name")
        file = _file_name(path, parts)
        parts.weights[file] = Weights((name, _plain(array, (*path, name))) for name, array in value.items())
        return ["weights", file, list(value)]
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise _refused(path, f"has the key {key!r}; keys are texts")
        return {str(key): _apart(item, (*path, str(key)), parts) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return ["list", *(_apart(item, (*path, str(index)), parts) for index, item in enumerate(value))]
    raise _refused(path, f"is a {type(value).__name__}, which is neither a number, text, bytes, array, dict nor list")


def _plain(array: npt.NDArray[Any], path: tuple[str, ...]) -> npt.NDArray[Any]:
    if array.dtype.kind not in KINDS:
        raise _refused(path, f"is an array of {array.dtype}; arrays hold numbers or booleans")
    return np.asarray(array, array.dtype.newbyteorder("<"), order="C")


def _refused(path: tuple[str, ...], why: str) -> UserError:
    return UserError(f"cannot save {'.'.join(path[:8]) or 'the tree'}{'…' if len(path) > 8 else ''}: it {why}")


def _file_name(path: tuple[str, ...], parts: Parts) -> str:
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", ".".join(path)).strip(".-")[:64] or "weights"
    taken, name, number = {known.lower() for known in parts.weights}, stem + WEIGHTS_SUFFIX, 1
    while name.lower() in taken:
        number += 1
        name = f"{stem}-{number}{WEIGHTS_SUFFIX}"
    return name


def put_together(skeleton: Any, arrays: list[npt.NDArray[Any]], weights: Mapping[str, Weights]) -> dict[str, Any]:
    """The tree of these parts, none of which is trusted."""
    if not isinstance(skeleton, dict):
        raise Damaged("its tree is not a dict")
    following = enumerate(arrays)
    try:
        tree = {key: _together(item, 1, following, weights) for key, item in skeleton.items()}
    except (LookupError, TypeError, ValueError, StopIteration) as fault:
        raise Damaged(f"its tree is wrong: {str(fault)[:100]}") from fault
    if next(following, None) is not None:
        raise Damaged("its tree leaves an array out")
    return tree


def _together(
    node: Any, depth: int, following: Iterator[tuple[int, npt.NDArray[Any]]], weights: Mapping[str, Weights]
) -> Any:
    """The value of a node; arrays come in the order of the nodes, so that none is there twice."""
    if depth > DEEPEST:
        raise Damaged(f"its tree is deeper than {DEEPEST} levels")
    if isinstance(node, dict):
        return {key: _together(item, depth + 1, following, weights) for key, item in node.items()}
    if not isinstance(node, list):
        return node
    kind, *rest = node
    if kind == "list":
        return [_together(item, depth + 1, following, weights) for item in rest]
    if kind == "weights":
        name, order = rest
        found = weights[name]
        return Weights((str(key), found[key]) for key in order)
    (value,) = rest
    if kind == "int":
        return int(value, 16)
    if kind == "float":
        return {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[value]
    if kind not in ("array", "bytes"):
        raise ValueError(f"unknown node {kind!r}"[:60])
    index, array = next(following)
    if value != index:
        raise ValueError(f"array {value!r} is not the next one"[:60])
    return array if kind == "array" else array.tobytes()
