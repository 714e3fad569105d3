"""Bytes on disk in blocks that are compressed, hashed and read apart, by a few threads at once.

An array is cut into blocks of ``BLOCK`` bytes; a block is a zstd frame with its own checksum, or nothing where it is
all zeros, which is what most of a replay is at first: that costs neither disk nor, on loading, memory. A frame is
padded to 1/``DENSEST`` of what it unpacks to, so that a small file that unpacks to a large one is known to be hostile;
the padding is a frame to be skipped, so that the file is a zstd file like any other.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import zstandard

from dynaboltz.storage.tree import Damaged

Bytes: TypeAlias = npt.NDArray[np.uint8]
Entry: TypeAlias = tuple[int, str]
"""Stored bytes of a block and their SHA-256; (0, "") where the block is zeros."""

BLOCK = 4 << 20
LEVEL = 1
DENSEST = 1024
SKIPPED = b"\x50\x2a\x4d\x18"
"""What a frame begins with that readers skip; its length follows in four bytes."""
ZEROS: Entry = (0, "")
THREADS = min(4, os.cpu_count() or 1)
LARGEST_WINDOW = 1 << 23

T = TypeVar("T")
R = TypeVar("R")


def in_order(work: Callable[[T], R], items: Iterable[T], size: int) -> Iterator[R]:
    """``map(work, items)`` by several threads, a few items ahead; without any where ``size`` bytes are one block."""
    if size <= BLOCK:
        yield from map(work, items)
        return
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(THREADS) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > 2 * THREADS:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def flat(array: npt.NDArray[Any]) -> Bytes:
    """The bytes of an array in C order, without a copy."""
    return array.reshape(-1).view(np.uint8)


def cut(data: Bytes) -> Iterator[Bytes]:
    """The blocks of ``data``."""
    for start in range(0, data.size, BLOCK):
        yield data[start : start + BLOCK]


def pack(block: Bytes) -> tuple[bytes, Entry]:
    """A block as it is stored, and its entry."""
    if not block[0] and not block[-1] and not block.any():
        return b"", ZEROS
    stored = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compress(block.data)
    least = -(-block.size // DENSEST)
    if len(stored) < least:
        padding = max(0, least - len(stored) - len(SKIPPED) - 4)
        stored += SKIPPED + padding.to_bytes(4, "little") + bytes(padding)
    return stored, (len(stored), hashlib.sha256(stored).hexdigest())


def unpack(stored: bytes, entry: Entry, target: Bytes) -> None:
    """Fill ``target`` with a block, never more than it; :class:`Damaged` if it is not what the entry says."""
    if hashlib.sha256(stored).hexdigest() != entry[1]:
        raise Damaged("a block does not match its digest")
    view, done = target.data, 0
    try:
        with zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW).stream_reader(stored) as reader:
            while done < target.size and (count := reader.readinto(view[done:])):
                done += count
            if done < target.size or reader.read(1):  # the read past the end also checks the frame's checksum
                raise Damaged("a block has another size than its array")
    except zstandard.ZstdError as fault:
        raise Damaged(f"a block is no zstd frame: {fault}") from fault


def write_all(file: BinaryIO, data: bytes | memoryview) -> None:
    """Write to an unbuffered file, which may take a part of it at a time."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


@contextlib.contextmanager
def synced(path: Path) -> Iterator[BinaryIO]:
    """A new unbuffered file that is on disk when the block is left."""
    with path.open("xb", buffering=0) as file:
        yield file
        os.fsync(file.fileno())
        if hasattr(os, "posix_fadvise"):  # so that reading it again reads the disk
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@contextlib.contextmanager
def plain_file(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """A regular file, not a link to one, open for reading, and its size."""
    flags = [getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY")]
    try:
        handle = os.open(path, os.O_RDONLY | sum(flags))
    except FileNotFoundError as fault:
        raise Damaged(f"{path.name} is missing") from fault
    except OSError:
        if path.is_symlink():
            raise Damaged(f"{path.name} is a link") from None
        raise
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise Damaged(f"{path.name} is not a regular file")
        with open(handle, "rb", buffering=0, closefd=False) as file:
            yield file, found.st_size
    finally:
        os.close(handle)


def read_exactly(file: BinaryIO, size: int) -> bytes:
    """``size`` bytes of a file that has them."""
    parts, missing = [], size
    while missing:
        part = file.read(missing)
        if not part:
            raise Damaged("the file has lost its end")
        parts.append(part)
        missing -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)
