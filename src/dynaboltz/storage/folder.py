"""One checkpoint: a folder of files, written so that they are on disk and read so that nothing of them is believed."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dynaboltz.errors import MissingExtraError, StorageError, UserError
from dynaboltz.files import sync_directory
from dynaboltz.storage import manifest as manifests
from dynaboltz.storage.blocks import (
    BLOCK,
    ZEROS,
    Entry,
    cut,
    flat,
    in_order,
    pack,
    plain_file,
    read_exactly,
    synced,
    unpack,
    write_all,
)
from dynaboltz.storage.manifest import ARRAYS, Manifest
from dynaboltz.storage.memory import as_text, available_bytes
from dynaboltz.storage.tree import Damaged, Parts, Weights, put_together

if TYPE_CHECKING:
    import numpy.typing as npt

LARGEST_HEADER = 16 << 20

T = TypeVar("T")


def write(folder: Path, parts: Parts, manifest: Manifest) -> None:
    """Write the parts into a new folder, the manifest last; ``manifest`` takes up what was written."""
    folder.mkdir()
    if parts.arrays:
        manifest.arrays = [(array.dtype.str, array.shape) for array in parts.arrays]
        blocks = (block for array in parts.arrays for block in cut(flat(array)))
        entries = manifest.files[ARRAYS] = []
        with synced(folder / ARRAYS) as file:
            for stored, entry in in_order(pack, blocks, manifest.raw_bytes()):
                write_all(file, stored)
                entries.append(entry)
    for name, weights in parts.weights.items():
        content = _as_safetensors(weights, name)
        manifest.files[name] = list(_entries(content))
        with synced(folder / name) as file:
            write_all(file, content)
    manifest.tree = parts.skeleton
    with synced(folder / manifests.NAME) as file:
        write_all(file, manifests.encode(manifest))
    sync_directory(folder)


def verify(folder: Path) -> None:
    """Read every byte again; :class:`Damaged` if one is not as it should be."""
    manifest = manifests.read(folder)
    own = threading.local()  # each thread unpacks into a place of its own, time and again

    def check(stored: bytes, entry: Entry, size: int) -> None:
        if not hasattr(own, "place"):
            own.place = np.empty(BLOCK, np.uint8)
        unpack(stored, entry, own.place[:size])

    sizes = (size for kind, shape in manifest.arrays for size in manifests.block_sizes(kind, shape))
    _read_blocks(folder / ARRAYS, manifest, sizes, check)
    for name in manifest.files.keys() - {ARRAYS}:
        _read_weights(folder / name, manifest)


def read(folder: Path, manifest: Manifest) -> dict[str, Any]:
    """The tree of a checkpoint whose manifest has been read; :class:`Damaged` if any of it is not whole."""
    names = manifest.files.keys() - {ARRAYS}
    needed = manifest.raw_bytes() + 2 * sum(map(manifest.stored_bytes, names))  # weights, and the file they are in
    free = available_bytes()
    if free is not None and needed > free:
        raise _too_large(folder, needed, free)
    try:  # zeroed by the system when first touched: blocks of zeros are never written to, and so take no memory
        arrays = [np.zeros(shape, kind) for kind, shape in manifest.arrays]
    except ValueError as fault:
        raise Damaged(f"an array cannot be made: {fault}") from fault
    except MemoryError:
        raise _too_large(folder, needed) from None
    _read_blocks(folder / ARRAYS, manifest, (block for array in arrays for block in cut(flat(array))), unpack)
    weights = {name: _read_weights(folder / name, manifest) for name in names}
    return put_together(manifest.tree, arrays, weights)


def _too_large(folder: Path, needed: int, free: int | None = None) -> StorageError:
    known = "" if free is None else f", and {as_text(free)} are free"
    return StorageError(
        f"checkpoint {folder} takes {as_text(needed)} of memory{known}\n"
        "  close other programs, or load it on a machine with more memory"
    )


def _read_blocks(path: Path, manifest: Manifest, targets: Iterable[T], work: Callable[[bytes, Entry, T], None]) -> None:
    """Read the blocks that are stored, one target each, and let several threads do ``work`` on them."""
    entries = manifest.files.get(ARRAYS, [])
    if not entries:
        return
    with plain_file(path) as (file, size):
        if size != manifest.stored_bytes(ARRAYS):
            raise Damaged(f"{ARRAYS} has {size:,} bytes, not {manifest.stored_bytes(ARRAYS):,}")
        items = (
            (read_exactly(file, entry[0]), entry, target)
            for entry, target in zip(entries, targets, strict=True)
            if entry != ZEROS
        )
        for _ in in_order(lambda item: work(*item), items, manifest.raw_bytes()):
            pass


def _entries(content: bytes) -> Iterator[Entry]:
    view = memoryview(content)
    for start in range(0, len(content), BLOCK):
        part = view[start : start + BLOCK]
        yield len(part), hashlib.sha256(part).hexdigest()


def _as_safetensors(weights: Mapping[str, npt.NDArray[Any]], name: str) -> bytes:
    try:
        from safetensors.numpy import save
    except ImportError:
        raise MissingExtraError("safetensors", "deep", "saving weights") from None
    from safetensors import SafetensorError

    try:
        return save(dict(weights))
    except (SafetensorError, KeyError, ValueError) as fault:
        raise UserError(f"cannot save the weights {name}: {fault}") from fault


def _read_weights(path: Path, manifest: Manifest) -> Weights:
    try:
        from safetensors import SafetensorError
        from safetensors.numpy import load
    except ImportError:
        raise MissingExtraError("safetensors", "deep", "loading weights") from None
    name = path.name
    with plain_file(path) as (file, size):
        if size != manifest.stored_bytes(name):
            raise Damaged(f"{name} has {size:,} bytes, not {manifest.stored_bytes(name):,}")
        content = read_exactly(file, size)
    if list(_entries(content)) != manifest.files[name]:
        raise Damaged(f"{name} does not match its digest")
    if int.from_bytes(content[:8], "little") > LARGEST_HEADER:
        raise Damaged(f"{name} has a header of an impossible size")
    try:
        return Weights(load(content))
    except (SafetensorError, KeyError, ValueError, TypeError) as fault:
        raise Damaged(f"{name} is no safetensors file: {str(fault)[:100]}") from fault
