"""What a solver hands back: the values, the policy, what is proven of them, and what happened on the way."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dynaboltz.planning.certificate import Certificate, certify
from dynaboltz.planning.states import JacobiState, State
from dynaboltz.planning.target import describe
from dynaboltz.summaries import Summary

if TYPE_CHECKING:
    from dynaboltz.planning.method import Method, Task
    from dynaboltz.planning.problem import Floats


class Progress(NamedTuple):
    """What a progress callable is told after each step."""

    sweep: int
    """Sweeps so far."""
    bound: float
    """The error that is proven now; ∞ before the first certificate."""
    target: float
    """The error that was asked for."""
    seconds: float
    """Since the start, interrupted runs included."""
    remaining_seconds: float
    """An estimate from how fast the bound has fallen; NaN as long as it has not."""


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """One entry a sweep, from t = 1 on."""

    beta: Floats
    """β_t; 0 where the operator has none."""
    step_low: Floats
    """min (V_t − V_{t−1})."""
    step_high: Floats
    """max (V_t − V_{t−1})."""
    bound: Floats
    """What the sweep proves of ‖V_t − V*‖."""
    a_priori: Floats
    """Theorem 1's bound on ‖V_t − V*‖."""
    loss: Floats
    """‖V_t − V*‖, NaN where V* was not given."""
    values: Floats | None
    """V_0, V_1, … as rows, if they were kept."""

    @property
    def residual(self) -> Floats:
        """‖V_t − V_{t−1}‖_∞."""
        return np.maximum(-self.step_low, self.step_high)

    @classmethod
    def of(cls, state: JacobiState) -> Trace:
        """The trace that a state has gathered."""
        columns = np.array(state.trace, np.float64).reshape(-1, 6).T
        beta, step_low, step_high, bound, a_priori, loss = columns
        kept = np.array(state.kept) if state.kept else None
        return cls(beta, step_low, step_high, bound, a_priori, loss, kept)


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """The answer."""

    values: Floats
    """V of each state; 0 where the episode has ended."""
    policy: npt.NDArray[np.int64]
    """The greedy action of each state; −1 where the episode has ended."""
    certificate: Certificate
    """What is proven of the values and the policy."""
    sweeps: int
    """Passes over the states."""
    seconds: float
    method: Method
    summary: Summary
    discount: float
    converged: bool
    """Whether the proven error is within what was asked for."""
    reason: str
    """Why the sweeps ended."""
    trace: Trace | None = None

    def __repr__(self) -> str:
        state = "converged" if self.converged else "not converged"
        return f"Solution({state}: {self.reason}; {self.sweeps} sweeps of {self.method}, {self.seconds:.3g} s)"


def finish(task: Task, method: Method, state: State, reason: str) -> Solution:
    """The solution that a state holds."""
    problem, mdp, target = task.problem, task.problem.mdp, task.target
    certificate, values = certify(
        problem, state.values, state.choice, midpoint=method.midpoint, improver=task.scratch.get("improver")
    )
    proven = certificate.error_bound
    if isinstance(state, JacobiState):
        fixed = math.inf
        if target.optimum:  # the last sweep proves a bound too, and the smaller of two proven bounds is proven
            proven = min(proven, state.bound)
        else:
            fixed = state.bound
        certificate = replace(
            certificate, error_bound=proven, fixed_point_bound=fixed, contraction=target.contraction,
            a_priori_bound=state.a_priori,
        )  # fmt: skip
    elif target.optimum:  # the fixed point of the maximum is V*
        certificate = replace(certificate, fixed_point_bound=proven, contraction=target.contraction)
    reached = proven if target.optimum else certificate.fixed_point_bound
    converged = reached <= task.error
    policy = np.full(mdp.n_states, -1, np.int64)
    acting = ~mdp.terminal
    policy[acting] = mdp.action[mdp.state_ptr[:-1][acting] + state.choice[acting]]
    return Solution(
        values, policy, certificate, state.sweeps, state.seconds, method, task.summary, problem.discount, converged,
        _sentence(task, reached, "" if converged else reason),
        Trace.of(state) if task.traced and isinstance(state, JacobiState) else None,
    )  # fmt: skip


def _sentence(task: Task, reached: float, reason: str) -> str:
    what = "V*" if task.target.optimum else f"the fixed point of {task.summary}"
    proven = f"within {reached:.3g} of {what}"
    if not reason:
        return f"proven to be {proven}"
    unproven = math.isinf(task.target.reach) and not math.isinf(task.target.limit)
    note = f"\n  {describe(task.summary, task.target, task.problem.discount)}" if unproven else ""
    return f"{reason}; proven to be only {proven}, where {task.error:.3g} was asked for{note}"


def remaining(history: list[tuple[float, float]], target: float) -> float:
    """The seconds until the bound meets ``target`` if its logarithm goes on falling as over the later half."""
    if len(history) < 2:
        return math.nan
    (then, old), (now, bound) = history[len(history) // 2 - (len(history) == 2)], history[-1]
    if bound <= target:
        return 0.0
    fallen = math.log(old) - math.log(bound)
    return (math.log(bound) - math.log(target)) * (now - then) / fallen if fallen > 0 else math.nan


def bits(values: Any) -> bytes:
    """The bytes of an array, for digests."""
    return np.ascontiguousarray(values).tobytes()
