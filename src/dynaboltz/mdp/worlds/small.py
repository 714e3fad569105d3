"""Chains, GARNET, and the tiny worlds that isolate one fact about an operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynaboltz.errors import UserError
from dynaboltz.mdp.arrays import Ints, index_dtype
from dynaboltz.mdp.calls import number, whole
from dynaboltz.mdp.canonical import from_transitions
from dynaboltz.mdp.worlds.limits import check_size

if TYPE_CHECKING:
    from dynaboltz.mdp.model import MDP

ROWS_AT_A_TIME = 1 << 16


def chain(*, states: int = 10, slip: float = 0.0) -> MDP:
    """States in a line, actions back and forward, reward 1 on entering the last state, which ends the episode.

    With probability ``slip`` an action goes the other way. V* of the first state is γ^(states − 2) without slip.
    """
    whole("states", states, 2)
    number("slip", slip, 0.0, 1.0)
    check_size("chain", 4 * states)
    last = states - 1
    s = np.arange(last)
    back, forward = np.maximum(s - 1, 0), s + 1
    targets = np.stack([back, forward, forward, back], axis=1).ravel()
    return from_transitions(
        np.repeat(s, 4),
        np.tile([0, 0, 1, 1], last),
        targets,
        np.tile([1.0 - slip, slip] * 2, last),
        np.where(targets == last, 1.0, 0.0),
        terminal=[last],
        start=0,
        action_labels=["back", "forward"],
    )


def garnet(*, states: int = 100, actions: int = 4, branching: int = 5, seed: int = 0) -> MDP:
    """A random MDP of the family of Archibald et al. (1995), without terminal states; it starts in state 0.

    Each row has ``branching`` distinct next states, uniform spacings as probabilities, and r(s, a) uniform in [0, 1].
    """
    whole("states", states, 1)
    whole("actions", actions, 1)
    whole("branching", branching, 1, states)
    check_size("garnet", states * actions * branching)
    rng = np.random.default_rng(whole("seed", seed, 0))
    rows = states * actions
    targets = np.empty((rows, branching), index_dtype(states))
    for low in range(0, rows, ROWS_AT_A_TIME):
        targets[low : low + ROWS_AT_A_TIME] = _distinct(rng, min(ROWS_AT_A_TIME, rows - low), states, branching)
    cuts = np.sort(rng.random((rows, branching - 1)), axis=1)
    probability = np.diff(cuts, axis=1, prepend=0.0, append=1.0)
    state, action = np.divmod(np.arange(rows), actions)
    return from_transitions(
        np.repeat(state, branching),
        np.repeat(action, branching),
        targets.ravel(),
        probability.ravel(),
        np.repeat(rng.random(rows), branching),
        n_states=states,
        n_actions=actions,
        start=0,
    )


def _distinct(rng: np.random.Generator, rows: int, n: int, k: int) -> Ints:
    """``k`` distinct numbers below ``n`` in each row, every set equally likely; in increasing order."""
    if 4 * k > n:
        chosen = rng.permuted(np.broadcast_to(np.arange(n), (rows, n)), axis=1)[:, :k]
    else:
        # Floyd's sampling over all rows at once: a number drawn before is replaced by the largest one allowed.
        chosen = np.empty((rows, k), np.int64)
        for column, largest in enumerate(range(n - k, n)):
            draw = rng.integers(0, largest + 1, rows)
            taken = (chosen[:, :column] == draw[:, None]).any(axis=1)
            chosen[:, column] = np.where(taken, largest, draw)
    return np.sort(chosen, axis=1)


def two_cycle() -> MDP:
    """Two states; ``switch`` goes to the other and pays 1, ``stay`` pays 0.

    Value iteration with a fixed β can cycle here for ever: at γ = 0.95 and β = 3 the iterates from
    V = (0.1, 0) alternate between (19.863, 18.948) and its swap.
    """
    return from_transitions(
        [0, 0, 1, 1],
        [0, 1, 0, 1],
        [1, 0, 0, 1],
        np.ones(4),
        [1.0, 0.0, 1.0, 0.0],
        start=0,
        action_labels=["switch", "stay"],
    )


def bandit(*, rewards: tuple[float, ...] | list[float] = (0.0, -0.44, -0.44, -0.44)) -> MDP:
    """One state that every action leads back to, with these rewards."""
    if not isinstance(rewards, tuple | list) or not rewards:
        raise UserError(f"rewards must be a list of at least one number, got {rewards!r}")
    payoffs = [number(f"reward {arm}", value) for arm, value in enumerate(rewards)]
    arms, zeros = np.arange(len(payoffs)), np.zeros(len(payoffs), np.int64)
    return from_transitions(zeros, arms, zeros, np.ones(len(payoffs)), payoffs, start=0)


def tight_bandit(*, beta: float = 5.0, m: int = 2) -> MDP:
    """The bandit on which fixed β errs as much as it ever can, W((m−1)/e)/(β(1−γ)): rewards 0 and −(1+W)/β."""
    from dynaboltz.operators.constants import gap_constant

    number("beta", beta, 1e-300)
    whole("m", m, 1)
    check_size("tight_bandit", m)
    return bandit(rewards=[0.0] + [-(1.0 + gap_constant(m)) / beta] * (m - 1))
