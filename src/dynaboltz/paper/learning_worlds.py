"""Small worlds with chance in them for the learning claims, and their exact action values under any operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynaboltz.mdp import build_world
from dynaboltz.mdp.canonical import from_transitions
from dynaboltz.summaries import parse_summary

if TYPE_CHECKING:
    from dynaboltz.mdp import MDP
    from dynaboltz.paper.learners import Floats

SWEEPS = 20_000


def noisy_garnet(*, states: int = 10, actions: int = 4, branching: int = 3, noise: float = 0.5, seed: int = 0) -> MDP:
    """A GARNET whose rewards are random too: r(s, a) plus or minus ``noise``, by which of the next states comes.

    The noise has the mean 0 under each row's probabilities, so that it changes nothing but what a sample says.
    """
    base = build_world(f"garnet(states={states}, actions={actions}, branching={branching}, seed={seed})")
    rows = np.repeat(np.arange(base.n_rows), np.diff(base.row_ptr))
    extra = noise * np.random.default_rng([seed, 1]).choice([-1.0, 1.0], size=rows.size)
    mean = np.add.reduceat(base.probability * extra, base.row_ptr[:-1])
    return from_transitions(
        base.row_states()[rows], base.action[rows], base.next_state, base.probability,
        base.reward[rows] + extra - mean[rows], n_states=states, n_actions=actions, start=0,
    )  # fmt: skip


def scaled(model: MDP, factor: float) -> MDP:
    """The same world with all rewards multiplied."""
    rows = np.repeat(np.arange(model.n_rows), np.diff(model.row_ptr))
    reward = model.reward[rows] if model.transition_reward is None else model.transition_reward
    return from_transitions(
        model.row_states()[rows], model.action[rows], model.next_state, model.probability, factor * reward,
        n_states=model.n_states, n_actions=model.n_actions, terminal=model.terminal, start=model.start,
    )  # fmt: skip


def endless(model: MDP) -> MDP:
    """The world in which the next step begins anew where an episode would have ended; it has one first state."""
    rows = np.repeat(np.arange(model.n_rows), np.diff(model.row_ptr))
    reward = model.reward[rows] if model.transition_reward is None else model.transition_reward
    assert model.start is not None
    number = np.cumsum(~model.terminal) - 1
    first = int(number[model.start.argmax()])
    return from_transitions(
        number[model.row_states()[rows]], model.action[rows],
        np.where(model.terminal[model.next_state], first, number[model.next_state]), model.probability, reward,
        n_states=int((~model.terminal).sum()), n_actions=model.n_actions, start=first,
    )  # fmt: skip


def action_values(model: MDP, discount: float, operator: str = "hard_max", *, error: float = 1e-10) -> Floats:
    """The fixed point ``Q = r + γ P op(Q)`` that sweeps from 0 end at, states × actions; 0 where a state is terminal.

    With hard_max it is Q*. Every state that is not terminal must have every action.
    """
    summary = parse_summary(operator)
    q = np.zeros((model.n_states, model.n_actions))
    going, starts = ~model.terminal, model.row_ptr[:-1]
    for _ in range(SWEEPS):
        values = np.where(model.terminal, 0.0, summary(q, 1))
        new = model.reward + discount * np.add.reduceat(model.probability * values[model.next_state], starts)
        change = float(np.abs(q[going] - new.reshape(-1, model.n_actions)).max())
        q[going] = new.reshape(-1, model.n_actions)
        if change <= error * (1 - discount):
            break
    return q


def distance(q: Floats, other: Floats) -> float:
    """‖q − other‖ in the sup norm."""
    return float(np.abs(q - other).max())
