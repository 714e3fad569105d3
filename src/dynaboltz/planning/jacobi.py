"""Value iteration with any summary, V_t = T_{β_t} V_{t−1} from t = 1 on.

With Boltzmann and a schedule it is the paper's DBS value iteration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from dynaboltz.planning.certificate import shifts_of
from dynaboltz.planning.horizon import UNIT
from dynaboltz.planning.method import Method, Task, no_choice
from dynaboltz.planning.problem import Change, Floats
from dynaboltz.planning.states import JacobiState
from dynaboltz.planning.target import LARGEST_BETA, beta_at, own_rounding, spread_of, step_error

STEP_TRANSITIONS = 1 << 24
"""What a call into compiled code may do of a small model before control returns: some 20 ms."""
MOST_IN_A_CALL = 4096


@final
@dataclass(frozen=True, repr=False)
class Jacobi(Method):
    """Sweeps that read only the values of the sweep before (Pan et al. 2020, Eq. 7, with β indexed from 1)."""

    name: ClassVar[str] = "jacobi"
    any_summary: ClassVar[bool] = True
    midpoint: ClassVar[bool] = False

    def start(self, task: Task, values: Floats) -> JacobiState:
        """V_0."""
        size = float(np.abs(values).max())
        state = JacobiState(values=values, choice=no_choice(values), magnitude=size)
        state.spread = spread_of(task.problem, size)
        state.a_priori = size + task.problem.reward_bound * task.problem.horizon.steps  # ‖V_0 − V*‖ is at most this
        if task.keep_values:
            state.kept.append(values.copy())
        return state

    def advance(self, task: Task, state: JacobiState, most_sweeps: int) -> None:
        """One sweep, or as many of a small model as take some milliseconds."""
        betas = self._betas(task, state.sweeps, most_sweeps)
        if len(betas) == 1:
            found = self._one(task, state, betas[0])[None]
        else:
            found = self._several(task, state, np.array(betas))
        self._note(task, state, betas, found)

    def _betas(self, task: Task, done: int, most_sweeps: int) -> list[float]:
        count = 1
        if task.problem.small and not task.traced:
            count = min(most_sweeps, MOST_IN_A_CALL, max(1, STEP_TRANSITIONS // task.problem.mdp.n_transitions))
        return [beta_at(task.summary, t) for t in range(done + 1, done + count + 1)]

    def _one(self, task: Task, state: JacobiState, beta: float) -> Floats:
        new = task.buffer("new")
        found = task.problem.sweep(task.parameters, beta, state.values, new)
        state.values, task.scratch["new"] = new, state.values
        return found

    def _several(self, task: Task, state: JacobiState, betas: Floats) -> Floats:
        problem, new = task.problem, task.buffer("new")
        shifts = shifts_of(problem.horizon, problem.reward_bound, Change(0.0, 0.0, state.magnitude))
        wanted = max(task.error - shifts.allowance, shifts.allowance)
        reach = problem.horizon.steps, np.inf if task.target.optimum else task.target.reach
        found = np.empty((betas.size, 7))
        done = problem.kernels.sweeps(
            task.parameters, problem.model, problem.most_actions, problem.discount, betas,
            state.values, new, found, np.array([*reach, wanted]),
        )  # fmt: skip
        if done % 2:
            state.values, task.scratch["new"] = new, state.values
        return found[:done]

    def _note(self, task: Task, state: JacobiState, betas: list[float], found: Floats) -> None:
        """Turn what the sweeps found into bounds, and the trace."""
        problem, horizon = task.problem, task.problem.horizon
        for beta in betas[: len(found)]:
            state.sweeps += 1
            state.a_priori = horizon.largest_row_sum * state.a_priori + step_error(
                problem, task.summary, beta, state.spread
            )
        low, high, lag_low, lag_high, step_low, step_high, size = (float(x) for x in found[-1])
        magnitude = max(size, state.magnitude if len(found) == 1 else float(found[-2, 6]))
        shifts = shifts_of(horizon, problem.reward_bound, Change(low, high, magnitude))
        # V_t lies below T_m V_{t−1} by the lag, and V* within the shifts of it.
        slack = 4 * UNIT * (abs(lag_low) + abs(lag_high))
        to_optimum = max(shifts.high + lag_high, -(shifts.low + lag_low), 0.0) + slack
        step = max(-step_low, step_high)
        to_fixed, rounding = np.inf, shifts.allowance
        if not task.target.optimum and beta == min(task.target.limit, LARGEST_BETA):
            rounding = own_rounding(problem, task.summary, task.target, beta, magnitude)
            to_fixed = task.target.fixed_point_bound(step, rounding)
            rounding *= 1.0 + task.target.reach
        state.magnitude = size
        state.bound = to_optimum if task.target.optimum else to_fixed
        state.allowance = rounding
        state.stuck = step == 0.0 and task.summary.beta(state.sweeps + 1) == task.summary.beta(state.sweeps)
        if task.traced:
            true = np.nan if task.optimum is None else float(np.abs(state.values - task.optimum).max())
            state.trace.append((beta, step_low, step_high, to_optimum, state.a_priori, true))
        if task.keep_values:
            state.kept.append(state.values.copy())
