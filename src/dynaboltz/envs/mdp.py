"""Our own MDPs as environments: ``mdp/<world, file or Gymnasium id>``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dynaboltz.envs.gym import GymWorld
from dynaboltz.envs.names import written
from dynaboltz.envs.pictures import BACKGROUND, LIT, enlarged
from dynaboltz.envs.spec import Environments
from dynaboltz.envs.world import Worlds
from dynaboltz.errors import UserError
from dynaboltz.mdp import MDP, load, to_gymnasium

MAX_STEPS = 1000
"""Steps after which an episode is truncated, if ``max_steps`` does not say otherwise; many MDPs have no end."""

COLOURS = {".": (52, 56, 68), "S": (82, 92, 122), "G": (120, 210, 130), "H": (240, 100, 120)}


def make_mdp(name: str, keywords: dict[str, Any], *, n: int, seed: int, stream: int) -> Environments:
    """``n`` environments of the MDP that ``dynaboltz.mdp.load`` reads; ``max_steps`` (None: no limit) is ours."""
    arguments = dict(keywords)
    max_steps = arguments.pop("max_steps", MAX_STEPS)
    mdp = load(written(name, arguments))
    full = f"mdp/{written(name, keywords)}"
    lacking = np.flatnonzero(~mdp.terminal & (np.diff(mdp.state_ptr) < mdp.n_actions))
    if lacking.size:
        state = int(lacking[0])
        has = mdp.action[mdp.state_ptr[state] : mdp.state_ptr[state + 1]]
        action = int(np.setdiff1d(np.arange(mdp.n_actions), has)[0])
        raise UserError(
            f"{full}: {mdp.state_name(state)} has no {mdp.action_name(action)}; "
            "agents choose among all actions everywhere, so every state must have each of them"
        )
    worlds = [MDPWorld(mdp, max_steps, full) for _ in range(n)]
    return Worlds(worlds, name=full, seed=seed, stream=stream)


class MDPWorld(GymWorld):
    """An MDP that is played; its map, where it has one, is its picture in characters."""

    def __init__(self, mdp: MDP, max_steps: int | None, name: str) -> None:
        super().__init__(to_gymnasium(mdp, max_steps=max_steps), name)
        self.mdp = mdp
        self.spec = replace(self.spec, action_labels=mdp.action_labels)

    def picture(self) -> np.ndarray | None:
        """The map in colours; None without one."""
        grid, state = self.mdp.grid, int(self._last)
        if grid is None:
            return None
        picture = np.full((*grid.cells.shape, 3), BACKGROUND, np.uint8)
        for mark, colour in COLOURS.items():
            picture[grid.cells == ord(mark)] = colour
        picture[grid.states == state] = LIT
        return enlarged(picture)

    def text(self) -> str:
        """The map with the agent's cell in brackets; without a map, the state."""
        grid, state = self.mdp.grid, int(self._last)
        if grid is None:
            return self.mdp.state_name(state)
        rows = zip(grid.cells.tolist(), (grid.states == state).tolist(), strict=True)
        return "\n".join(
            "".join(f"[{chr(cell)}]" if here else f" {chr(cell)} " for cell, here in zip(*row, strict=True))
            for row in rows
        )
