"""Writing files so that a crash leaves the old content or the new, never half of it."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from dynaboltz.errors import UserError


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A binary file that takes the place of ``path`` once it is written and on disk; on any failure nothing changes."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_directory(path.parent)
    except OSError as fault:
        raise UserError(f"cannot write {path}: {fault.strerror or fault}") from fault
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _sync_directory(directory: Path) -> None:
    """The rename itself must survive a power cut. Windows has no such call and needs none."""
    if os.name != "posix":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write ``content`` in place of ``path``."""
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def make_folder(folder: Path) -> Path:
    """``folder``, made if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {folder}: {error.strerror}\n  choose another with --out") from None
    if not os.access(folder, os.W_OK):
        raise UserError(f"cannot write into the folder {folder}\n  choose another with --out")
    return folder
