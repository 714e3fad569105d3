"""Arrays in one ``.npz`` file, uncompressed and without pickle, that can be read without trusting it.

Everything about an array is read from its header and held against limits before memory is taken for it: its name must
be one that is expected, its type a plain number, its size what the archive says, and the archive no more than a hundred
times the size of the file.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy

from dynaboltz.errors import UserError
from dynaboltz.files import opened, replacing

if TYPE_CHECKING:
    import numpy.typing as npt

EXPANSION, ALLOWANCE = 100, 1 << 24
"""An archive may unpack to so many times its size, plus an allowance for small ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What a kind of file holds: for each array the kinds of its type, as in ``dtype.kind``."""

    kind: str
    """What the file says it is."""
    version: int
    needed: Mapping[str, str]
    optional: Mapping[str, str]
    tables: frozenset[str] = frozenset()
    """The arrays that have two dimensions; the others have one."""
    meta: frozenset[str]
    """The entries of its description."""


def write(path: Path, layout: Layout, arrays: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
    """Write the arrays that are not None, and the description, in one step. The same content makes the same file."""
    described = {"format": layout.kind, "version": layout.version, **meta}
    members = {**arrays, "meta": np.frombuffer(json.dumps(described).encode(), np.uint8)}
    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in members.items():
            if array is not None:
                member = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
                with archive.open(member, "w", force_zip64=True) as target:
                    npy.write_array(target, array, allow_pickle=False)


def read(path: Path, layout: Layout) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """The arrays and the description in ``path``; a ``UserError`` for any file that is not of this kind."""
    with opened(path) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                arrays = _arrays(archive, path, layout)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError) as fault:
            raise UserError(f"{path} is not a readable .npz file: {fault}") from fault
    return arrays, _meta(arrays.pop("meta").tobytes(), path, layout)


def _arrays(archive: zipfile.ZipFile, path: Path, layout: Layout) -> dict[str, npt.NDArray[Any]]:
    members = archive.infolist()
    names = [member.filename.removesuffix(".npy") for member in members]
    needed = {**layout.needed, "meta": "u"}
    known = {**needed, **layout.optional}
    for member, name in zip(members, names, strict=True):
        if name not in known or member.filename != f"{name}.npy" or names.count(name) > 1:
            raise UserError(f"{path}: unexpected member {member.filename[:60]!r}; it should hold {', '.join(known)}")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise UserError(f"{path}: member {member.filename!r} is compressed in an unusual way")
    if missing := [name for name in needed if name not in names]:
        raise UserError(f"{path}: the array {missing[0]!r} is missing")
    size = path.stat().st_size
    if (total := sum(member.file_size for member in members)) > EXPANSION * size + ALLOWANCE:
        raise UserError(f"{path}: {size:,} bytes that unpack to {total:,} are refused")
    arrays = {}
    for member, name in zip(members, names, strict=True):
        with archive.open(member) as stream:
            dimensions = 2 if name in layout.tables else 1
            arrays[name] = _array(stream, member.file_size, name, known[name], dimensions, path)
    return arrays


def _array(stream: IO[bytes], size: int, name: str, kinds: str, dimensions: int, path: Path) -> npt.NDArray[Any]:
    try:
        version = npy.read_magic(stream)
        readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
        shape, column_major, dtype = readers[version](stream)
    except Exception as fault:  # NumPy evaluates the header as Python text and raises whatever its tokenizer does
        raise UserError(f"{path}: array {name!r} has no readable header: {str(fault)[:200]}") from fault
    if dtype.kind not in kinds or dtype.hasobject:
        raise UserError(f"{path}: array {name!r} has the type {dtype}, not one of kind {kinds!r}")
    if len(shape) != dimensions or min(shape) < 0 or (column_major and dimensions == 2):
        raise UserError(f"{path}: array {name!r} has the shape {shape}; it must have {dimensions} dimension(s)")
    count = int(shape[0]) * int(shape[-1] if dimensions == 2 else 1)
    data = stream.read(size)
    if len(data) != count * dtype.itemsize:
        raise UserError(
            f"{path}: array {name!r} says {shape} of {dtype}, {count * dtype.itemsize:,} bytes, but has {len(data):,}"
        )
    array = np.frombuffer(data, dtype).reshape(shape)
    return array if dtype.isnative else array.astype(dtype.newbyteorder("="))


def _meta(data: bytes, path: Path, layout: Layout) -> dict[str, Any]:
    try:
        meta = json.loads(data)
    except (ValueError, RecursionError) as fault:
        raise UserError(f"{path}: the description in 'meta' is not JSON: {fault}") from fault
    if not isinstance(meta, dict) or meta.get("format") != layout.kind:
        raise UserError(f"{path}: not a {layout.kind}: 'meta' does not say so")
    if meta.get("version") != layout.version:
        raise UserError(
            f"{path}: written in format version {meta.get('version')!r}; this release reads {layout.version}"
        )
    if missing := layout.meta - meta.keys():
        raise UserError(f"{path}: 'meta' lacks {', '.join(sorted(missing))}")
    return meta
