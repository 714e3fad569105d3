"""One process a folder: a lock of the operating system's, which no crash leaves behind."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import warnings
from collections.abc import Iterator
from pathlib import Path

from dynaboltz.errors import UserError
from dynaboltz.storage.tree import printable

NAME = ".lock"
NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)
"""What a file system without locks answers, as some network file systems do."""

_held: set[int] = set()


def _let_go_in_child() -> None:
    """A forked child shares the lock, and would keep it when its parent is killed."""
    for handle in _held:
        with contextlib.suppress(OSError):
            os.close(handle)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_in_child)


def _try_lock(handle: int) -> None:
    """Take the lock or raise ``OSError``."""
    if os.name == "nt":
        import msvcrt

        # beyond the end of the text, which stays readable to those who find the lock taken
        os.lseek(handle, 1 << 20, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        os.lseek(handle, 0, os.SEEK_SET)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep every other process out of ``folder``, which is made if it is not there, until the block is left.

    The lock ends with the process, however that ends. A ``UserError`` names the process that holds it.
    """
    path = folder / NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
    except OSError as fault:
        raise UserError(
            f"cannot write into the folder {folder}: {fault.strerror or fault}\n  choose one that can be written"
        ) from fault
    _held.add(handle)
    try:
        try:
            _try_lock(handle)
        except OSError as fault:
            if fault.errno not in NO_LOCKS:
                holder = printable(os.read(handle, 200).decode(errors="replace").strip()) or "another process"
                raise UserError(
                    f"the folder {folder} is in use by {holder}\n  wait until that has ended, or choose another folder"
                ) from None
            warnings.warn(
                f"the file system of {folder} has no locks: nothing keeps a second process out of it", stacklevel=3
            )
        with contextlib.suppress(OSError):  # a full disk is found, and told of, when something is saved
            os.ftruncate(handle, 0)
            os.write(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        yield
    finally:
        if handle in _held:  # not in a forked child, which has closed it
            _held.discard(handle)
            os.close(handle)
