"""Files: written so that a crash leaves the old content or the new, read only where they are plain files."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
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
        sync_directory(path.parent)
    except OSError as fault:
        raise UserError(f"cannot write {path}: {fault.strerror or fault}") from fault
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def sync_directory(directory: Path) -> None:
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


def opened(path: Path) -> BinaryIO:
    """``path`` open for reading, if it is a regular file: a pipe would hang and a device has no end."""
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError) as fault:
        raise UserError(f"cannot read {path}: {getattr(fault, 'strerror', None) or fault}") from fault
    if not regular:
        raise UserError(f"cannot read {path}: it is not a regular file")
    try:
        return path.open("rb")
    except OSError as fault:
        raise UserError(f"cannot read {path}: {fault.strerror or fault}") from fault


def make_folder(folder: Path) -> Path:
    """``folder``, made if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {folder}: {error.strerror}\n  choose another with --out") from None
    if not os.access(folder, os.W_OK):
        raise UserError(f"cannot write into the folder {folder}\n  choose another with --out")
    return folder
