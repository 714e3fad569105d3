"""``.npz``: the arrays as they are, uncompressed, without pickle.

Everything about an array is read from its header and held against limits before memory is taken for it: its name must
be one we write, its type a plain number, its size what the archive says, and the archive no more than a hundred times
the size of the file.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy

from dynaboltz.errors import UserError
from dynaboltz.files import replacing
from dynaboltz.mdp.files.disk import opened
from dynaboltz.mdp.grid import Grid

if TYPE_CHECKING:
    import numpy.typing as npt

    from dynaboltz.mdp.model import MDP

VERSION = 1
NEEDED = {
    "state_ptr": "iu",
    "action": "iu",
    "row_ptr": "iu",
    "next_state": "iu",
    "probability": "f",
    "reward": "f",
    "terminal": "b",
    "meta": "u",
}
OPTIONAL = {"start": "f", "transition_reward": "f", "cells": "u"}
EXPANSION, ALLOWANCE = 100, 1 << 24
"""An archive may unpack to so many times its size, plus an allowance for small ones."""


def write(mdp: MDP, path: Path) -> None:
    """Write ``mdp`` to ``path`` in one step."""
    meta = {
        "format": "dynaboltz mdp",
        "version": VERSION,
        "n_actions": mdp.n_actions,
        "state_labels": mdp.state_labels,
        "action_labels": mdp.action_labels,
    }
    arrays = {name: getattr(mdp, name) for name in (*NEEDED, *OPTIONAL) if name not in ("meta", "cells")}
    arrays["meta"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    arrays["cells"] = None if mdp.grid is None else mdp.grid.cells
    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            if array is not None:
                # A fixed date: the same model makes the same file.
                member = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
                with archive.open(member, "w", force_zip64=True) as target:
                    npy.write_array(target, array, allow_pickle=False)


def read(path: Path, reward: str | None = None) -> MDP:
    """The MDP in ``path``; a ``UserError`` for any file that is not one of ours, whatever it holds."""
    if reward is not None:
        raise UserError(f"{path}: .npz holds one reward; leave out reward={reward!r}")
    from dynaboltz.mdp.model import MDP

    with opened(path) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                arrays = _arrays(archive, path)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError) as fault:
            raise UserError(f"{path} is not a readable .npz file: {fault}") from fault
    meta = _meta(arrays.pop("meta").tobytes(), path)
    cells = arrays.pop("cells", None)
    try:
        return MDP(
            **arrays,
            n_actions=meta["n_actions"],
            state_labels=_labels(meta["state_labels"]),
            action_labels=_labels(meta["action_labels"]),
            grid=None if cells is None else Grid(cells),
        )
    except UserError as fault:
        raise UserError(f"{path}: {fault}") from fault


def _arrays(archive: zipfile.ZipFile, path: Path) -> dict[str, npt.NDArray[Any]]:
    members = archive.infolist()
    names = [member.filename.removesuffix(".npy") for member in members]
    known = NEEDED | OPTIONAL
    for member, name in zip(members, names, strict=True):
        if name not in known or member.filename != f"{name}.npy" or names.count(name) > 1:
            raise UserError(f"{path}: unexpected member {member.filename[:60]!r}; it should hold {', '.join(known)}")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise UserError(f"{path}: member {member.filename!r} is compressed in an unusual way")
    if missing := [name for name in NEEDED if name not in names]:
        raise UserError(f"{path}: the array {missing[0]!r} is missing")
    size = path.stat().st_size
    if (total := sum(member.file_size for member in members)) > EXPANSION * size + ALLOWANCE:
        raise UserError(f"{path}: {size:,} bytes that unpack to {total:,} are refused")
    arrays = {}
    for member, name in zip(members, names, strict=True):
        with archive.open(member) as stream:
            arrays[name] = _array(stream, member.file_size, name, known[name], path)
    return arrays


def _array(stream: IO[bytes], size: int, name: str, kinds: str, path: Path) -> npt.NDArray[Any]:
    try:
        version = npy.read_magic(stream)
        readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
        shape, column_major, dtype = readers[version](stream)
    except Exception as fault:  # NumPy evaluates the header as Python text and raises whatever its tokenizer does
        raise UserError(f"{path}: array {name!r} has no readable header: {str(fault)[:200]}") from fault
    if dtype.kind not in kinds or dtype.hasobject:
        raise UserError(f"{path}: array {name!r} has the type {dtype}, not one of kind {kinds!r}")
    dimensions = 2 if name == "cells" else 1
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


def _meta(data: bytes, path: Path) -> dict[str, Any]:
    try:
        meta = json.loads(data)
    except (ValueError, RecursionError) as fault:
        raise UserError(f"{path}: the description in 'meta' is not JSON: {fault}") from fault
    if not isinstance(meta, dict) or meta.get("format") != "dynaboltz mdp":
        raise UserError(f"{path}: not a dynaboltz MDP: 'meta' does not say so")
    if meta.get("version") != VERSION:
        raise UserError(f"{path}: written in format version {meta.get('version')!r}; this release reads {VERSION}")
    if missing := {"n_actions", "state_labels", "action_labels"} - meta.keys():
        raise UserError(f"{path}: 'meta' lacks {', '.join(sorted(missing))}")
    return meta


def _labels(values: Any) -> Any:
    return tuple(values) if isinstance(values, list) else values
