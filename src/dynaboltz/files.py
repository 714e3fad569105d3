"""Writing files so that a crash leaves the old content or the new, never half of it."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from dynaboltz.errors import UserError


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write ``content`` to a temporary file beside ``path``, flush it to the disk, and rename it over ``path``."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def make_folder(folder: Path) -> Path:
    """``folder``, made if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {folder}: {error.strerror}\n  choose another with --out") from None
    if not os.access(folder, os.W_OK):
        raise UserError(f"cannot write into the folder {folder}\n  choose another with --out")
    return folder
