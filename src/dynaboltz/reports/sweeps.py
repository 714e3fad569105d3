"""Value iteration as a reader can replay it: the values of every sweep of several summaries, packed for a page."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from dynaboltz.errors import UserError
from dynaboltz.mdp import MDP
from dynaboltz.mdp.grid import GOAL, START
from dynaboltz.planning import solve

SUMMARIES: Mapping[str, str] = {
    "max": "hard_max",
    "Boltzmann, β = t² (DBS)": "boltzmann(beta=power(2))",
    "Boltzmann, β = t (DBS)": "boltzmann(beta=power(1))",
    "Boltzmann, β = 10": "boltzmann(beta=10)",
    "Boltzmann, β = 1": "boltzmann(beta=1)",
    "log-sum-exp, β = 10": "log_sum_exp(beta=10)",
    "mellowmax, β = 10": "mellowmax(beta=10)",
    "mellowmax, β = t²": "mellowmax(beta=power(2))",
}
"""What the sweep slider offers to compare, by the name that a reader sees."""


def sweep_data(
    mdp: MDP, discount: float, *, sweeps: int = 60, summaries: Mapping[str, str] = SUMMARIES
) -> dict[str, Any]:
    """What the sweep slider of a page shows, ready for JSON: a grid world, V*, and a trace of each summary.

    Values are 32-bit floats in base64, sweep after sweep from V_0 = 0. Where another sweep changes nothing the trace
    ends, and its last entry stands for the sweeps that are left.

    Args:
        mdp: a model with a map.
        discount: γ.
        sweeps: how many, at least 1.
        summaries: name → text form.
    """
    if mdp.grid is None:
        raise UserError("the sweep slider draws a map, and this model has none\n  build it with a world such as grid()")
    optimum = solve(mdp, discount=discount, error=1e-12).values
    traces = []
    for name, summary in summaries.items():
        trace = solve(
            mdp, discount=discount, summary=summary, method="jacobi", error=1e-300, max_sweeps=sweeps,
            trace="values", optimum=optimum,
        ).trace  # fmt: skip
        assert trace is not None
        assert trace.values is not None
        values = _padded(trace.values, sweeps + 1)
        betas = np.full(len(trace.beta), np.inf) if summary == "hard_max" else trace.beta
        columns = {"beta": betas, "bound": trace.bound, "loss": trace.loss}
        padded = {key: _padded(column, sweeps).tolist() for key, column in columns.items()}
        traces.append({"name": name, "summary": summary, "values": packed(values), **padded})
    cells = mdp.grid.cells
    return {
        "discount": discount,
        "sweeps": sweeps,
        "states": mdp.grid.states.tolist(),
        "start": _place(cells, START),
        "goal": _place(cells, GOAL),
        "optimum": packed(optimum[: mdp.grid.n_states]),
        "traces": traces,
    }


def packed(values: npt.NDArray[np.float64]) -> str:
    """The numbers as little-endian 32-bit floats in base64.

    >>> packed(np.array([1.0]))
    'AACAPw=='
    """
    return base64.b64encode(np.ascontiguousarray(values, "<f4").tobytes()).decode()


def _padded(rows: npt.NDArray[np.float64], length: int) -> npt.NDArray[np.float64]:
    return np.concatenate([rows, np.repeat(rows[-1:], length - len(rows), axis=0)])


def _place(cells: npt.NDArray[np.uint8], mark: int) -> list[int] | None:
    """Row and column of the first such cell."""
    found = np.argwhere(cells == mark)
    return [int(number) for number in found[0]] if len(found) else None
