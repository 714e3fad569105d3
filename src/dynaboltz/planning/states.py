"""What a method carries from one step to the next: all of it, so that a step depends on nothing else."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dynaboltz.planning.problem import Choice, Floats


@dataclass(slots=True, kw_only=True, eq=False)
class State:
    """The part every method shares.

    Fields are arrays, numbers and lists of them, so that a checkpoint is the fields.
    """

    values: Floats
    choice: Choice
    """The greedy row of each state, counted from its first."""
    sweeps: int = 0
    """Passes over the states."""
    bound: float = math.inf
    """What is proven of the error so far."""
    allowance: float = 0.0
    """The part of it that is for rounding."""
    stuck: bool = False
    """Whether another step would change nothing."""
    seconds: float = 0.0


@dataclass(slots=True, kw_only=True, eq=False)
class JacobiState(State):
    """Sweeps of a summary."""

    magnitude: float = 0.0
    """max |V_t|."""
    spread: float = math.inf
    """A bound on max_a Q − min_a Q in every state and sweep."""
    a_priori: float = math.inf
    """Theorem 1's bound after this sweep."""
    trace: list[tuple[float, ...]] = field(default_factory=list)
    """β_t, least and largest step, the proven bound, Theorem 1's bound and the true error of each sweep."""
    kept: list[Floats] = field(default_factory=list)
    """V_0, V_1, … if they are kept."""


@dataclass(slots=True, kw_only=True, eq=False)
class InPlaceState(State):
    """Max backups in place."""

    certified_at: int = 0
    """The sweep after which the certificate was last looked at."""


@dataclass(slots=True, kw_only=True, eq=False)
class PolicyState(State):
    """Policy iteration."""

    width: float = math.inf
    """How far the certificate's sides are apart."""
    rates: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(2))
    """How fast each kind of evaluation has closed them: log of the ratio a sweep."""
    mixes: bool = False
    """Whether the last plain sweeps evened out the residual faster than the discount does."""
    cycles: int = 0
