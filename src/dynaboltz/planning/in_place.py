"""Gauss–Seidel value iteration: max backups that read the newest values there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from dynaboltz.errors import UnknownNameError
from dynaboltz.planning.certificate import error_of, shifts_of
from dynaboltz.planning.method import Method, Task, no_choice
from dynaboltz.planning.problem import Floats
from dynaboltz.planning.states import InPlaceState

CERTIFY_EVERY = 10
"""Sweeps between two looks at the certificate, each of which costs a sweep; more often only when nearly there."""


@final
@dataclass(frozen=True, repr=False)
class GaussSeidel(Method):
    """Max backups in place, in the order of the states or forward and backward in turn.

    A large model is cut into blocks that are swept side by side and read each other's values as they were before the
    sweep; the blocks are the model's, so the result does not depend on the number of threads.
    """

    order: str = "alternating"
    """``"alternating"`` or ``"natural"``."""

    name: ClassVar[str] = "gauss_seidel"
    midpoint: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.order not in ("alternating", "natural"):
            raise UnknownNameError("order", str(self.order), ("alternating", "natural"), "method 'gauss_seidel'")

    def start(self, task: Task, values: Floats) -> InPlaceState:  # noqa: ARG002
        """The state before the first sweep."""
        return InPlaceState(values=values, choice=no_choice(values))

    def advance(self, task: Task, state: InPlaceState, most_sweeps: int) -> None:
        """One sweep, and now and then the certificate."""
        problem, scratch = task.problem, task.buffer("other")
        forward = self.order == "natural" or state.sweeps % 2 == 0
        change = problem.relax(state.values, scratch, forward=forward)
        state.sweeps += 1
        near = change * problem.horizon.largest <= task.error
        if near or state.sweeps - state.certified_at >= CERTIFY_EVERY or most_sweeps == 1:
            found = problem.improve(state.values, scratch, state.choice)
            shifts = shifts_of(problem.horizon, problem.reward_bound, found)
            state.certified_at = state.sweeps
            state.bound, state.allowance = error_of(found, shifts), shifts.allowance
            state.stuck = change == 0.0
