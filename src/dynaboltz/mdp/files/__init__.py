"""Files in and out, by suffix. A new format costs one module and one entry in ``FORMATS``.

======== ======================================== ==========================================================
suffix   what                                     what it does not hold
======== ======================================== ==========================================================
.npz     our own: the arrays as they are          nothing is lost
.tra     PRISM, with .lab, .srew, .trew beside it r(s, a, s') but its mean, state labels, map, float32
.drn     Storm                                    as .tra
.umb     UMB, through the package ``umbi``        as .tra
.txt     the map of a grid world without slip     any other model
======== ======================================== ==========================================================

A distribution of first states is held by the model checkers' formats if it is uniform, and refused if not.
Probabilities and rewards are written so that they are read back to the bit.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dynaboltz.errors import UnknownNameError
from dynaboltz.mdp.files import drn, maps, npz, prism, umb

if TYPE_CHECKING:
    from dynaboltz.mdp.model import MDP

__all__ = ["FORMATS", "Format", "read", "write"]


class Format(NamedTuple):
    """How one kind of file is read and written."""

    read: Callable[[Path, str | None], MDP]
    """From a path and the name of a reward structure, None if the file has but one."""
    write: Callable[[MDP, Path], None]


FORMATS: dict[str, Format] = {
    ".drn": Format(drn.read, drn.write),
    ".npz": Format(npz.read, npz.write),
    ".tra": Format(prism.read, prism.write),
    ".txt": Format(maps.read, maps.write),
    ".umb": Format(umb.read, umb.write),
}


def read(path: str | os.PathLike[str], *, reward: str | None = None) -> MDP:
    """The MDP in the file at ``path``; its suffix says the format.

    Args:
        path: a regular file with a suffix of ``FORMATS``. No file can run code, and sizes are checked before use.
        reward: which reward structure to take where a file has several.
    """
    return _format(Path(path)).read(Path(path), reward)


def write(mdp: MDP, path: str | os.PathLike[str]) -> None:
    """Write ``mdp`` to ``path`` in the format of its suffix; a reader sees the old file or the whole new one."""
    _format(Path(path)).write(mdp, Path(path))


def _format(path: Path) -> Format:
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise UnknownNameError("file format", suffix or "(no suffix)", FORMATS, repr(str(path)))
    return FORMATS[suffix]
