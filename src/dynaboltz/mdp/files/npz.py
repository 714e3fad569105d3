"""``.npz``: the arrays as they are, with nothing lost; see :mod:`dynaboltz.archive`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynaboltz import archive
from dynaboltz.errors import UserError
from dynaboltz.mdp.grid import Grid

if TYPE_CHECKING:
    from dynaboltz.mdp.model import MDP

LAYOUT = archive.Layout(
    kind="dynaboltz mdp",
    version=1,
    needed={
        "state_ptr": "iu",
        "action": "iu",
        "row_ptr": "iu",
        "next_state": "iu",
        "probability": "f",
        "reward": "f",
        "terminal": "b",
    },
    optional={"start": "f", "transition_reward": "f", "cells": "u"},
    tables=frozenset({"cells"}),
    meta=frozenset({"n_actions", "state_labels", "action_labels"}),
)


def write(mdp: MDP, path: Path) -> None:
    """Write ``mdp`` to ``path`` in one step."""
    arrays = {name: getattr(mdp, name) for name in (*LAYOUT.needed, *LAYOUT.optional) if name != "cells"}
    arrays["cells"] = None if mdp.grid is None else mdp.grid.cells
    archive.write(path, LAYOUT, arrays, {name: getattr(mdp, name) for name in sorted(LAYOUT.meta)})


def read(path: Path, reward: str | None = None) -> MDP:
    """The MDP in ``path``; a ``UserError`` for any file that is not one of ours, whatever it holds."""
    if reward is not None:
        raise UserError(f"{path}: .npz holds one reward; leave out reward={reward!r}")
    from dynaboltz.mdp.model import MDP

    arrays, meta = archive.read(path, LAYOUT)
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


def _labels(values: Any) -> Any:
    return tuple(values) if isinstance(values, list) else values
