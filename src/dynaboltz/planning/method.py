"""What a method is: a way to move values closer to their target, one resumable step at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dynaboltz import text
from dynaboltz.planning.problem import Floats, Problem
from dynaboltz.planning.states import State
from dynaboltz.planning.target import Target
from dynaboltz.summaries import Summary


@dataclass(slots=True, eq=False)
class Task:
    """What a method works on: the same for all of its steps."""

    problem: Problem
    summary: Summary
    target: Target
    error: float
    """How close the values are wanted."""
    traced: bool = False
    """Whether to note every sweep."""
    keep_values: bool = False
    """Whether to keep the values of every sweep."""
    optimum: Floats | None = None
    """V*, if it is known, for the trace."""
    parameters: Any = None
    """The operator in compiled code."""
    scratch: dict[str, Any] = field(default_factory=dict)
    """Memory that holds nothing from one step to the next but what follows from the state."""

    def buffer(self, name: str) -> Floats:
        """Room for one number a state."""
        if name not in self.scratch:
            self.scratch[name] = np.zeros(self.problem.mdp.n_states)
        array: Floats = self.scratch[name]
        return array


@dataclass(frozen=True)
class Method(ABC):
    """A way to solve; its dataclass fields are its settings and its text form."""

    name: ClassVar[str]
    any_summary: ClassVar[bool] = False
    """Whether it sweeps any summary, or only the maximum."""
    midpoint: ClassVar[bool] = True
    """Whether the answer is the middle of the certificate's two sides, or the last iterate itself."""

    @abstractmethod
    def start(self, task: Task, values: Floats) -> State:
        """The state before the first sweep."""

    @abstractmethod
    def advance(self, task: Task, state: Any, most_sweeps: int) -> None:
        """Take one step of at least one and at most ``most_sweeps`` sweeps, and update the state's bound."""

    def __str__(self) -> str:
        """The spec that parses back to this method."""
        return text.write(self.name, self).removesuffix("()")

    __repr__ = __str__


def no_choice(values: Floats) -> Any:
    """The first row of every state."""
    return np.zeros(values.size, np.int32)
