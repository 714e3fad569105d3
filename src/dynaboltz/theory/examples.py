"""Small worlds that attain the bounds or refute what the paper prints, and dense value iteration to run them.

Everything is float64 and dense: the worlds have one or two states, and the iteration is a reference to check
others by.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynaboltz.errors import UserError
from dynaboltz.operators import boltzmann
from dynaboltz.operators.constants import check_actions
from dynaboltz.theory.checks import (
    check_beta_or_zero,
    check_count,
    check_discount,
    check_positive,
    check_rows,
)
from dynaboltz.theory.gaps import sharp_gap_row
from dynaboltz.theory.rates import printed_step_count

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """A dense finite MDP with a discount and a V_0 to start from."""

    rewards: Array
    """Expected rewards, shape (states, actions)."""

    transitions: Array
    """Probabilities of the next state, shape (states, actions, states)."""

    discount: float
    """γ in [0, 1)."""

    initial: Array
    """V_0, shape (states,)."""

    def __post_init__(self) -> None:
        check_discount(self.discount)
        rewards = check_rows("the rewards", self.rewards)
        transitions = check_rows("the transitions", self.transitions)
        initial = check_rows("the initial values", self.initial)
        states = rewards.shape[0]
        expected = (*rewards.shape, states)
        if rewards.ndim != 2 or transitions.shape != expected or initial.shape != (states,):
            raise UserError(
                "rewards, transitions and initial values must have shapes (S, A), (S, A, S) and (S,), "
                f"got {rewards.shape}, {transitions.shape} and {initial.shape}"
            )
        if (transitions < 0.0).any() or not np.allclose(transitions.sum(axis=-1), 1.0, rtol=0.0, atol=1e-9):
            raise UserError("every row of the transitions must be a probability distribution")

    def action_values(self, values: Array) -> Array:
        """``Q(s,a) = r(s,a) + γ Σ_s' p(s'|s,a) V(s')``, shape (states, actions)."""
        return np.asarray(self.rewards + self.discount * (self.transitions @ values))


def iterate(world: World, betas: Iterable[float]) -> list[Array]:
    """The values ``V_0, V_1, …, V_n`` of DBS value iteration, ``V_t = T_{β_t} V_{t−1}``.

    Pan et al. 2020, Eq. (dbs_vi), with steps numbered from 1. β = ∞ is the Bellman optimality operator, 0 the
    mean.

    >>> world = two_cycle(0.5)
    >>> [v.tolist() for v in iterate(world, [math.inf])]
    [[0.1, 0.0], [1.0, 1.05]]
    """
    values = [np.array(world.initial, dtype=np.float64)]
    for t, beta in enumerate(betas, start=1):
        q = world.action_values(values[-1])
        values.append(boltzmann(q, check_beta_or_zero(beta, f"β at step {t}")))
    return values


def optimal_values(world: World) -> Array:
    """V*, by policy iteration with exact linear solves."""
    states = np.arange(world.rewards.shape[0])
    policy = world.rewards.argmax(axis=-1)
    while True:
        system = np.eye(len(states)) - world.discount * world.transitions[states, policy]
        values = np.linalg.solve(system, world.rewards[states, policy])
        q = world.action_values(values)
        # A change must be worth more than rounding, or two equal actions would alternate for ever.
        worth = 1e-12 * (1.0 + np.abs(q).max())
        better = q.max(axis=-1) > q[states, policy] + worth
        if not better.any():
            return np.asarray(values, dtype=np.float64)
        policy = np.where(better, q.argmax(axis=-1), policy)


def find_period(values: Sequence[ArrayLike], tolerance: float = 1e-9) -> int | None:
    """The smallest p for which the last 2p iterates repeat after p steps, or None; 1 means a limit.

    >>> find_period([[5.0], [0.0], [1.0], [0.0], [1.0]])
    2
    """
    tail = np.array([np.ravel(np.asarray(v, dtype=np.float64)) for v in values])
    tolerance = check_positive("the tolerance", tolerance)
    for period in range(1, len(tail) // 2 + 1):
        if np.abs(tail[-period:] - tail[-2 * period : -period]).max() <= tolerance:
            return period
    return None


def one_state(rewards: ArrayLike, discount: float, initial: float = 0.0) -> World:
    """One state with a self loop under every action, the given rewards and V_0.

    V_t = γ V_{t−1} + boltz_{β_t}(r), as boltz is shifted by what shifts every entry.

    >>> optimal_values(one_state([0.0, -1.0], 0.9)).tolist()
    [0.0]
    """
    row = check_rows("the rewards", rewards)
    return World(row[None, :], np.ones((1, row.size, 1)), discount, np.array([initial], dtype=np.float64))


def tight_bandit(beta: float, m: int, discount: float) -> World:
    """One state where value iteration with this fixed β ends exactly ``W((m−1)/e)/(β(1−γ))`` below V* = 0.

    Ours: its rewards are the row of ``sharp_gap_row``. So the first term of ``corollary_sharp`` cannot be
    improved.

    >>> values = iterate(tight_bandit(5.0, 2, 0.9), [5.0] * 400)
    >>> round(-values[-1].item(), 6)
    0.556929
    """
    return one_state(sharp_gap_row(beta, m), discount)


def two_cycle(discount: float = 0.95) -> World:
    """Two states, "switch" (reward 1) and "stay" (0): value iteration with a fixed β can alternate for ever.

    Ours: for γ = 0.95 and a fixed β between about 1.43 and 5.05, V_t from (0.1, 0) has period 2 and no limit,
    which is why the Corollary of Pan et al. 2020 needs limsup. With β_t = t² it converges to V* = 1/(1−γ).

    >>> find_period(iterate(two_cycle(), [3.0] * 600))
    2
    """
    stay, switch = np.eye(2), np.eye(2)[::-1]
    transitions = np.stack([switch, stay], axis=1)
    return World(np.array([[1.0, 0.0], [1.0, 0.0]]), transitions, discount, np.array([0.1, 0.0]))


@dataclass(frozen=True, slots=True)
class PrintedCountExample:
    """One state, rewards 0 and m − 1 times −``drop``, V_0 = −R/(1−γ) with R = ``drop``, and β_t = t^p."""

    discount: float
    """γ in (0, 1)."""

    power: float
    """p > 0."""

    m: int
    """Number of actions."""

    drop: float
    """How much lower the other rewards are; also R = max |r|."""

    error: float
    """ε > 0."""

    @property
    def printed_steps(self) -> int:
        """The paper's step count for this ε, rounded up."""
        return math.ceil(printed_step_count(self.error, self.discount, self.power, self.m, self.drop))

    @property
    def world(self) -> World:
        """The same problem as a dense MDP."""
        row = np.full(check_actions(self.m), -check_positive("the drop", self.drop))
        row[0] = 0.0
        return one_state(row, self.discount, -self.drop / (1.0 - check_discount(self.discount)))

    def error_after(self, steps: int) -> float:
        """``|V_t − V*|`` after t steps, where V* = 0, by the exact scalar recursion."""
        value = self.drop / (1.0 - check_discount(self.discount))
        for t in range(1, check_count("the number of steps", steps) + 1):
            others = (self.m - 1) * math.exp(-(float(t) ** self.power) * self.drop)
            value = self.discount * value + others * self.drop / (1.0 + others)
        return value

    @property
    def excess(self) -> float:
        """``|V_t − V*| / ε`` at the printed step count t: above 1, the count is refuted."""
        return self.error_after(self.printed_steps) / self.error


PRINTED_COUNT_FAILURES = (
    PrintedCountExample(discount=0.1, power=4.0, m=4, drop=0.44, error=0.196),
    PrintedCountExample(discount=0.5, power=10.0, m=4, drop=1e-7, error=2e-8),
)
"""Two MDPs in which the step count printed in the proof of Pan et al. 2020, Theorem 2, is too small."""
