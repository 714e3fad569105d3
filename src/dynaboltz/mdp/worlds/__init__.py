"""Worlds by name: one table, and the text form ``garnet(states=100, actions=4, branching=5, seed=0)``.

A new world costs one function with keyword parameters and one entry here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dynaboltz import text
from dynaboltz.mdp.calls import parse_call
from dynaboltz.mdp.worlds.examples import inventory, maintenance
from dynaboltz.mdp.worlds.grids import drawn, grid, paper_grid, pgq_grid
from dynaboltz.mdp.worlds.small import bandit, chain, garnet, tight_bandit, two_cycle

if TYPE_CHECKING:
    from dynaboltz.mdp.model import MDP

__all__ = ["WORLDS", "build_world"]

WORLDS: dict[str, Callable[..., MDP]] = {
    "bandit": bandit,
    "chain": chain,
    "garnet": garnet,
    "grid": grid,
    "inventory": inventory,
    "maintenance": maintenance,
    "map": drawn,
    "paper_grid": paper_grid,
    "pgq_grid": pgq_grid,
    "tight_bandit": tight_bandit,
    "two_cycle": two_cycle,
}
"""Name → factory. All parameters are keywords, and all but the map's text have defaults."""


def build_world(spec: str) -> MDP:
    """The MDP of a world's text form, ``name`` or ``name(key=value, …)`` with literal values.

    >>> build_world("chain(states=4)")
    MDP(states=4, actions=2, rows=6, transitions=6, terminal=1)
    """
    world: MDP = text.build("world", WORLDS, parse_call(spec))
    return world
