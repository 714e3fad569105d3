"""``.txt``: the text map of a grid world without slip."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dynaboltz.errors import UserError
from dynaboltz.files import replacing
from dynaboltz.mdp.files.disk import read_lines
from dynaboltz.mdp.grids import from_text

if TYPE_CHECKING:
    from dynaboltz.mdp.model import MDP


def read(path: Path, reward: str | None = None) -> MDP:
    """The MDP of the map in ``path``."""
    if reward is not None:
        raise UserError(f"{path}: a map has no reward structure to choose; leave out reward={reward!r}")
    try:
        return from_text("\n".join(read_lines(path)))
    except UserError as fault:
        raise fault if str(path) in str(fault) else UserError(f"{path}: {fault}") from fault


def write(mdp: MDP, path: Path) -> None:
    """Write the map of ``mdp``, provided that the map says all of it."""
    if mdp.grid is None or not _same(mdp, mdp.grid.text):
        raise UserError(f"cannot write {path}: this model is not that of a map without slip; use .npz")
    with replacing(path) as file:
        file.write(mdp.grid.text.encode("ascii") + b"\n")


def _same(mdp: MDP, text: str) -> bool:
    try:
        return from_text(text).equals(mdp)
    except UserError:
        return False
