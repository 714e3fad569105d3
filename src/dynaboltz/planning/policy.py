"""Modified policy iteration: a max backup, then several cheap sweeps of its greedy policy (Puterman & Shin 1978).

The sweeps read the policy's rows alone, which are copied together first. It stops when the certificate's two sides,
which differ by the span of the residual (MacQueen 1966, Porteus 1971), are close enough, and returns their middle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

from dynaboltz.errors import UserError
from dynaboltz.planning.certificate import shifts_of
from dynaboltz.planning.improver import Improver, first_choice
from dynaboltz.planning.method import Method, Task, no_choice
from dynaboltz.planning.problem import Floats
from dynaboltz.planning.states import PolicyState

JACOBI, IN_PLACE = 0, 1
RETRY = 8
"""Cycles after which the evaluation that was slower is tried again, and then after twice as many, and so on."""
MIXING = 0.05
"""The least rate a sweep at which plain sweeps that mix close the certificate, or sweeps in place are tried."""
EVEN = 0.2
"""Plain sweeps have mixed when the span of the residual is this share of what the discount alone would leave of it.

More of them would refine a policy that the next improvement replaces.
"""


@dataclass(frozen=True, repr=False)
class _PolicyMethod(Method):
    evaluations: int = 10
    """Sweeps of a policy between two improvements, at most: fewer where they mix."""

    def __post_init__(self) -> None:
        if isinstance(self.evaluations, bool) or not isinstance(self.evaluations, int) or self.evaluations < 1:
            raise UserError(
                f"method {self.name!r}: evaluations must be an integer of at least 1, got {self.evaluations!r}"
            )

    def start(self, task: Task, values: Floats) -> PolicyState:
        return PolicyState(values=values, choice=first_choice(task.problem, no_choice(values)))

    def advance(self, task: Task, state: PolicyState, most_sweeps: int) -> None:
        before, kind = state.width, JACOBI
        sweeps = 0
        if state.sweeps > 0 and most_sweeps > 1:
            kind = self._kind(task, state)
            sweeps = self._evaluate(task, state, kind, min(self.evaluations, most_sweeps - 1))
        problem = task.problem
        change = _improver(task, state).improve(state.values, task.buffer("other"), state.choice)
        task.scratch["backed_up"] = True
        shifts = shifts_of(problem.horizon, problem.reward_bound, change)
        state.sweeps += sweeps + 1
        state.bound, state.allowance = shifts.half_width, shifts.allowance
        state.width = 2.0 * max(shifts.half_width - shifts.allowance, 0.0)
        state.stuck = state.width == 0.0
        if sweeps and state.width > 0.0 and before < math.inf:
            state.rates[kind] = math.log(before / state.width) / (sweeps + 1)
        state.cycles += 1

    def _kind(self, task: Task, state: PolicyState) -> int:  # noqa: ARG002
        return JACOBI

    def _evaluate(self, task: Task, state: PolicyState, kind: int, most: int) -> int:
        """Sweep the policy; returns how often."""
        improver, problem, even = _improver(task, state), task.problem, 0.0
        for i in range(most):
            other = task.buffer("other")
            if kind == IN_PLACE and i > 0:
                improver.evaluate_in_place(state.values, other, forward=i % 2 == 0)
                continue
            if i > 0 or not task.scratch.pop("backed_up", False):  # the first is what the improvement left there
                span = improver.evaluate(state.values, other)
            state.values, task.scratch["other"] = other, state.values
            if i == 1:
                even = EVEN * span
            elif i > 1:
                even *= problem.discount
                state.mixes = span <= even
                if state.mixes or span * problem.horizon.largest <= task.error:  # the certificate closes by half of it
                    return i + 1
        if kind == IN_PLACE:
            for forward in (True, False):
                problem.relax(state.values, task.buffer("other"), forward=forward)
        return most


def _improver(task: Task, state: PolicyState) -> Improver:
    if "improver" not in task.scratch:
        task.scratch["improver"] = Improver(task.problem, state.choice)
    found: Improver = task.scratch["improver"]
    return found


@final
@dataclass(frozen=True, repr=False)
class ModifiedPolicyIteration(_PolicyMethod):
    """Evaluation by sweeps that read the sweep before: errors that mix go away at once, whatever the discount."""

    name: ClassVar[str] = "mpi"


@final
@dataclass(frozen=True, repr=False)
class Auto(_PolicyMethod):
    """Modified policy iteration that evaluates in whichever way closes the certificate faster.

    Where every state soon leads everywhere (GARNET) the residual evens out and plain sweeps close its span at the rate
    of mixing; where values flow one way (grids, chains) sweeps in place, forward and backward in turn, carry them
    through the whole model at once. Both are tried, the better one goes on, and the other is retried ever more rarely;
    not while plain sweeps mix, since sweeps in place undo the evenness that mixing has reached.
    """

    name: ClassVar[str] = "auto"

    def _kind(self, task: Task, state: PolicyState) -> int:
        discount, (plain, in_place) = task.problem.discount, state.rates
        toll = self._toll(task)
        in_place /= toll
        own = math.log(1.0 / discount) if discount > 0.0 else math.inf
        mixes = (state.mixes or plain > 2.0 * own) and plain > max(MIXING, in_place)
        if state.cycles == 1 or mixes:
            return JACOBI
        if in_place == 0.0:
            return IN_PLACE  # not tried yet
        better = IN_PLACE if in_place > max(plain, own) else JACOBI  # a change of policy can hide what plain sweeps do
        first = RETRY * (toll if better == JACOBI else 1.0)
        retry = state.cycles >= first and state.cycles.bit_count() == 1  # a power of two
        return 1 - better if retry else better

    def _toll(self, task: Task) -> float:
        """How much longer a cycle takes in place, as it ends with two sweeps of every action.

        An improvement reads few of them, about as many rows as two sweeps of a policy.
        """
        mdp = task.problem.mdp
        cycle = self.evaluations + 2
        return 1.0 + 2.0 * mdp.n_rows / max(mdp.n_states, 1) / cycle
