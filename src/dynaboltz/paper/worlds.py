"""What the planning claims share: the models they are tested on, and losses sweep by sweep."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dynaboltz.mdp import MDP, build_world
from dynaboltz.planning import solve

Floats = npt.NDArray[np.float64]

DISCOUNT = 0.9
"""The paper's γ on the GridWorld."""
LAYOUTS = {"no walls": "paper_grid(walls='empty')", "two walls": "paper_grid(walls='interleaved')"}
"""The paper says where neither walls are nor what bumping into one does. Ours: two layouts, and bumping is staying."""


@lru_cache(maxsize=64)
def optimum(world: str, discount: float) -> tuple[MDP, Floats]:
    """The model of a world's text form, and its V* to rounding."""
    model = build_world(world)
    return model, solve(model, discount=discount, error=1e-12).values


@lru_cache(maxsize=256)
def losses(world: str, discount: float, summary: str, sweeps: int) -> Floats:
    """‖V_t − V*‖_∞ for t = 0, …, sweeps with V_0 = 0; where another sweep changes nothing, the last loss stays."""
    model, best = optimum(world, discount)
    found = solve(
        model, discount=discount, summary=summary, method="jacobi", error=1e-300, max_sweeps=sweeps,
        trace=True, optimum=best,
    ).trace  # fmt: skip
    assert found is not None
    start = float(np.abs(best).max())
    tail = np.full(sweeps - found.loss.size, found.loss[-1] if found.loss.size else start)
    return np.concatenate([[start], found.loss, tail])


def first_below(loss: Floats, level: float) -> int | None:
    """The first sweep after which the loss is below ``level`` for good, or None."""
    above = np.flatnonzero(loss >= level)
    after = 0 if above.size == 0 else int(above[-1]) + 1
    return after if after < loss.size else None
