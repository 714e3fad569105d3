"""What a checkpoint holds, file by file and block by block: written last, read first, trusted in nothing.

The file is JSON: ``{"sha256": "<of all that follows>", "manifest": {…}}``, laid out so that every byte of it counts.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
import re
import sys
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from dynaboltz.errors import UserError
from dynaboltz.storage.blocks import BLOCK, DENSEST, ZEROS, Entry, plain_file, read_exactly
from dynaboltz.storage.tree import Damaged

NAME = "manifest.json"
FORMAT, VERSION = "dynaboltz checkpoint", 1
LARGEST = 4 << 20
"""Bytes of a manifest, which is that of 200 GB: reading as much hostile JSON takes a quarter of a GB and a second."""
MOST_ARRAYS = 50_000
"""So many would not fit into a manifest with their digests; without digests they would take long to make."""
HEAD, MIDDLE, TAIL = b'{"sha256": "', b'", "manifest": ', b"}\n"
DIGITS = 64
PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
TYPE = re.compile(r"[<|][biufc][0-9]{1,2}")
DIGEST = re.compile(r"[0-9a-f]{64}")
REPORTED = ("dynaboltz", "numpy", "zstandard", "safetensors", "torch", "gymnasium", "ale-py", "minatar")


@dataclass(slots=True, kw_only=True)
class Manifest:
    """The description of one checkpoint."""

    run: str
    """Whose it is."""
    step: int
    about: dict[str, str] = field(default_factory=dict)
    """The owner's settings, so that a stranger can be told what differs."""
    files: dict[str, list[Entry]] = field(default_factory=dict)
    """The blocks of each file."""
    arrays: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    """Type and shape of each array; their blocks follow each other in the first file."""
    tree: Any = None

    def raw_bytes(self) -> int:
        """What the arrays take in memory."""
        return sum(raw_size(kind, shape) for kind, shape in self.arrays)

    def stored_bytes(self, name: str) -> int:
        """The size of a file."""
        return sum(size for size, _ in self.files[name])


def encode(manifest: Manifest) -> bytes:
    """The file's content."""
    described = {
        "format": FORMAT, "version": VERSION, "run": manifest.run, "step": manifest.step, "about": manifest.about,
        "packages": _packages(), "files": manifest.files, "arrays": manifest.arrays, "tree": manifest.tree,
    }  # fmt: skip
    body = json.dumps(described, allow_nan=False).encode()
    if len(body) > LARGEST:
        raise UserError(
            f"cannot save a checkpoint whose description takes {len(body):,} bytes; at most {LARGEST:,} are allowed\n"
            "  keep long lists of numbers in NumPy arrays"
        )
    return HEAD + hashlib.sha256(body).hexdigest().encode() + MIDDLE + body + TAIL


def _packages() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in REPORTED:
        if name.replace("-", "_") in sys.modules:
            try:
                found[name] = version(name)
            except PackageNotFoundError:  # run from a source tree
                continue
    return found


def read(folder: Path) -> Manifest:
    """The manifest in ``folder``; :class:`Damaged` if it is anything but whole and of this version."""
    with plain_file(folder / NAME) as (file, size):
        start, end = len(HEAD) + DIGITS + len(MIDDLE), size - len(TAIL)
        if not 0 < end - start <= LARGEST:
            raise Damaged(f"{NAME} has {size:,} bytes")
        data = read_exactly(file, size)
    body = data[start:end]
    if data[:start] + data[end:] != HEAD + hashlib.sha256(body).hexdigest().encode() + MIDDLE + TAIL:
        raise Damaged(f"{NAME} does not match its digest")
    try:
        return _checked(json.loads(body, parse_constant=_no_constant))
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError) as fault:
        raise Damaged(f"{NAME} is not a manifest: {str(fault)[:100]}") from fault


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def _checked(found: dict[str, Any]) -> Manifest:
    if found["format"] != FORMAT:
        raise Damaged("it is not a checkpoint of dynaboltz")
    if found["version"] != VERSION:
        raise Damaged(f"it is written in format version {str(found['version'])[:20]}; this release reads {VERSION}")
    if len(found["arrays"]) > MOST_ARRAYS:
        raise Damaged(f"{len(found['arrays']):,} arrays are refused; at most {MOST_ARRAYS:,} are allowed")
    files = {_name(name): [_entry(*entry) for entry in entries] for name, entries in found["files"].items()}
    arrays = [_array(*entry) for entry in found["arrays"]]
    manifest = Manifest(
        run=_text(found["run"]), step=_count(found["step"]), files=files, arrays=arrays, tree=found["tree"],
        about={_text(name): _text(value) for name, value in found["about"].items()},
    )  # fmt: skip
    entries = files.get(ARRAYS, [])
    if len(entries) != sum(-(-raw_size(kind, shape) // BLOCK) for kind, shape in arrays):
        raise ValueError("arrays and blocks do not match")
    sizes = [part for kind, shape in arrays for part in block_sizes(kind, shape)]
    for raw, entry in zip(sizes, entries, strict=True):
        if entry != ZEROS and raw > DENSEST * entry[0]:
            raise Damaged(f"a block of {entry[0]:,} bytes that unpacks to {raw:,} is refused")
    return manifest


ARRAYS = "arrays.zst"
"""The file of the arrays; the others hold weights."""


def raw_size(kind: str, shape: tuple[int, ...]) -> int:
    """Unpacked bytes of an array."""
    return math.prod(shape) * np.dtype(kind).itemsize


def block_sizes(kind: str, shape: tuple[int, ...]) -> list[int]:
    """Unpacked bytes of each block of an array."""
    size = raw_size(kind, shape)
    return [BLOCK] * (size // BLOCK) + [size % BLOCK] * bool(size % BLOCK)


def _name(name: object) -> str:
    if not isinstance(name, str) or not PLAIN_NAME.fullmatch(name) or name == NAME:
        raise Damaged(f"{str(name)[:60]!r} is no plain file name")
    return name


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:60]!r} is not a text")
    return value


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 62:
        raise ValueError(f"{str(value)[:60]!r} is not a count")
    return value


def _entry(size: object, digest: object) -> Entry:
    entry = (_count(size), _text(digest))
    if entry != ZEROS and (not entry[0] or entry[0] > 2 * BLOCK or not DIGEST.fullmatch(entry[1])):
        raise ValueError("a block has no size or digest")
    return entry


def _array(kind: object, shape: object) -> tuple[str, tuple[int, ...]]:
    if not isinstance(shape, list) or len(shape) > 64 or not TYPE.fullmatch(_text(kind)):
        raise ValueError(f"no array has the type {str(kind)[:20]!r} and this shape")
    dtype, sizes = np.dtype(_text(kind)), tuple(_count(size) for size in shape)
    return dtype.str, sizes
