"""A solution on disk: ``.npz`` with everything a reader needs to show it, or ``.csv`` with one line a state."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaboltz import archive
from dynaboltz.errors import UnknownNameError, UserError
from dynaboltz.files import write_atomically
from dynaboltz.mdp.grid import Grid

if TYPE_CHECKING:
    from dynaboltz.mdp import MDP
    from dynaboltz.planning.outcome import Solution

LAYOUT = archive.Layout(
    kind="dynaboltz solution",
    version=1,
    needed={"values": "f", "policy": "i", "lower": "f", "upper": "f"},
    optional={"cells": "u"},
    tables=frozenset({"cells"}),
    meta=frozenset({"summary", "method", "discount", "error_bound", "converged", "action_labels"}),
)
SUFFIXES = (".csv", ".npz")


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """What a solution file holds for a reader."""

    values: Any
    policy: Any
    lower: Any
    upper: Any
    grid: Grid | None
    meta: dict[str, Any]


def check_target(path: Path) -> None:
    """Refuse a target that a solution could not be written to, before the work is done."""
    if path.suffix.lower() not in SUFFIXES:
        raise UnknownNameError("solution format", path.suffix or "(no suffix)", SUFFIXES, repr(str(path)))
    if not path.absolute().parent.is_dir():
        raise UserError(f"cannot write {path}: its folder does not exist")


def save(solution: Solution, mdp: MDP, path: Path) -> None:
    """Write the solution as the suffix says: ``.npz`` for :func:`load_solution`, ``.csv`` for anything else."""
    check_target(path)
    certificate = solution.certificate
    if path.suffix.lower() == ".csv":
        write_atomically(path, _csv(solution, mdp))
        return
    arrays = {
        "values": solution.values, "policy": solution.policy, "lower": certificate.lower, "upper": certificate.upper,
        "cells": None if mdp.grid is None else mdp.grid.cells,
    }  # fmt: skip
    meta = {
        "summary": str(solution.summary), "method": str(solution.method), "discount": solution.discount,
        "error_bound": certificate.error_bound, "converged": solution.converged, "action_labels": mdp.action_labels,
    }  # fmt: skip
    archive.write(path, LAYOUT, arrays, meta)


def load_solution(path: Path) -> Shown:
    """What :func:`save` wrote to an ``.npz`` file; nothing in it is executed."""
    arrays, meta = archive.read(path, LAYOUT)
    sizes = {name: array.size for name, array in arrays.items() if name != "cells"}
    if len(set(sizes.values())) != 1:
        raise UserError(f"{path}: its arrays are of different lengths: {sizes}")
    cells = arrays.pop("cells", None)
    grid = None if cells is None else Grid(cells)
    if grid is not None and grid.n_states > arrays["values"].size:
        raise UserError(f"{path}: its map has {grid.n_states} cells for {arrays['values'].size} values")
    return Shown(**arrays, grid=grid, meta=meta)


def _csv(solution: Solution, mdp: MDP) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("state", "label", "value", "lower", "upper", "action", "action label"))
    labels, actions = mdp.state_labels, mdp.action_labels
    columns = (solution.values, solution.certificate.lower, solution.certificate.upper, solution.policy)
    for state, (value, lower, upper, action) in enumerate(zip(*(np.asarray(c).tolist() for c in columns), strict=True)):
        name = actions[action] if actions is not None and action >= 0 else ""
        writer.writerow(
            (state, labels[state] if labels else "", value, lower, upper, action if action >= 0 else "", name)
        )
    return text.getvalue()
