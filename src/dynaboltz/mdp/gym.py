"""Gymnasium both ways: the transition table ``P`` of a toy-text environment in, any MDP out as an environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaboltz.errors import UserError
from dynaboltz.mdp.canonical import from_transitions
from dynaboltz.mdp.grid import FREE, GOAL, START, Grid

if TYPE_CHECKING:
    import gymnasium

    from dynaboltz.mdp.gym_env import MDPEnv
    from dynaboltz.mdp.model import MDP


ACTION_NAMES = {
    "FrozenLakeEnv": ("left", "down", "right", "up"),
    "CliffWalkingEnv": ("up", "right", "down", "left"),
    "TaxiEnv": ("south", "north", "east", "west", "pickup", "dropoff"),
}
"""What Gymnasium's own environments call their actions; they say so in their documentation only."""


def from_gymnasium(env: gymnasium.Env[Any, Any] | str, **keywords: Any) -> MDP:
    """The MDP in the table ``env.unwrapped.P`` of ``P[s][a] = [(probability, next state, reward, done), …]``.

    A ``done`` transition has no future, even where the state it points at has one (Taxi, CliffWalking). So:

    * a state whose every transition is a reward-free loop (a hole or goal of FrozenLake) becomes terminal;
    * a ``done`` transition to any other state leads to one terminal state that is added, with the next free number.

    All other states keep their numbers and, at every discount, the values that the table gives them.

    Args:
        env: an environment or the id of one.
        keywords: for ``gymnasium.make``, if an id is given.
    """
    if not isinstance(env, str):
        if keywords:
            raise UserError(f"keywords are for an id, not for an environment that exists: {', '.join(keywords)}")
        return _from_table(env.unwrapped, str(env))
    import gymnasium

    try:
        made = gymnasium.make(env, **keywords)
    except (gymnasium.error.Error, TypeError, ValueError, KeyError, ImportError, AttributeError) as fault:
        raise UserError(f"Gymnasium cannot make {env!r}: {fault}") from fault
    try:
        return _from_table(made.unwrapped, repr(env))
    finally:
        made.close()


def to_gymnasium(mdp: MDP, *, max_steps: int | None = None) -> MDPEnv:
    """An environment that plays ``mdp`` from its start distribution, with ``Discrete`` observations and actions.

    Args:
        mdp: needs ``start``. The rewards paid are r(s, a, s') where the model has them, else r(s, a).
        max_steps: truncate an episode after so many steps; what terminates at that very step is not truncated.
    """
    from dynaboltz.mdp.gym_env import MDPEnv

    return MDPEnv(mdp, max_steps)


def _from_table(env: Any, name: str) -> MDP:
    table, n_states, n_actions = _spaces(env, name)
    names = ACTION_NAMES.get(type(env).__name__)
    records, done = [], []
    for state in range(n_states):
        actions = table.get(state)
        if not isinstance(actions, Mapping) or not actions:
            raise UserError(f"{name}: P has no actions for state {state}")
        for action, outcomes in actions.items():
            if not isinstance(action, int | np.integer) or not 0 <= action < n_actions:
                raise UserError(f"{name}: P[{state}] has the action {action!r}, not in 0 … {n_actions - 1}")
            for outcome in outcomes:
                if len(outcome) != 4:
                    raise UserError(
                        f"{name}: P[{state}][{action}] has {outcome!r}, not (probability, next state, reward, done)"
                    )
                records.append((state, int(action), int(outcome[1]), float(outcome[0]), float(outcome[2])))
                done.append(bool(outcome[3]))
    columns = [np.array(column) for column in zip(*records, strict=True)]
    s, a, t, p, r = columns
    if ((t < 0) | (t >= n_states)).any():
        at = int(((t < 0) | (t >= n_states)).argmax())
        raise UserError(f"{name}: P[{s[at]}][{a[at]}] leads to state {t[at]}, not in 0 … {n_states - 1}")
    terminal = np.ones(n_states, np.bool_)
    terminal[s[(p > 0) & ((t != s) | (r != 0))]] = False
    redirected = np.array(done) & ~terminal[t]
    added = bool(redirected.any())
    grid = _grid(env, n_states, t[np.array(done)])
    try:
        return from_transitions(
            s,
            a,
            np.where(redirected, n_states, t),
            p,
            r,
            n_states=n_states + added,
            n_actions=n_actions,
            terminal=np.append(terminal, True) if added else terminal,
            start=_start(env, n_states, added=added),
            grid=grid,
            action_labels=names if names is not None and len(names) == n_actions else None,
        )
    except UserError as fault:
        raise UserError(f"{name}: {fault}") from fault


def _spaces(env: Any, name: str) -> tuple[Mapping[Any, Any], int, int]:
    from gymnasium.spaces import Discrete

    table = getattr(env, "P", None)
    if isinstance(table, list | tuple):
        table = dict(enumerate(table))
    if not isinstance(table, Mapping):
        raise UserError(
            f"{name} has no transition table P; environments that have one: FrozenLake-v1, CliffWalking-v1, Taxi-v4"
        )
    for what, space in (("observation", env.observation_space), ("action", env.action_space)):
        if not isinstance(space, Discrete) or space.start != 0:
            raise UserError(f"{name}: the {what} space must be Discrete from 0, got {space}")
    return table, int(env.observation_space.n), int(env.action_space.n)


def _start(env: Any, n_states: int, *, added: bool) -> np.ndarray[Any, Any] | None:
    start = getattr(env, "initial_state_distrib", None)
    if start is None or np.shape(start) != (n_states,):
        return None
    distribution = np.asarray(start, np.float64)
    distribution = distribution / distribution.sum()
    return np.append(distribution, 0.0) if added else distribution


def _grid(env: Any, n_states: int, ends: np.ndarray[Any, Any]) -> Grid | None:
    """The map, if the environment has one: the letters of ``desc``, else its ``shape`` with start and ends marked."""
    desc = getattr(env, "desc", None)
    if isinstance(desc, np.ndarray) and desc.dtype == np.dtype("S1") and desc.ndim == 2 and desc.size == n_states:
        return Grid(np.ascontiguousarray(desc).view(np.uint8).reshape(desc.shape).copy())
    shape = getattr(env, "shape", None)
    if not (isinstance(shape, tuple) and len(shape) == 2 and shape[0] * shape[1] == n_states):
        return None
    cells = np.full(n_states, FREE, np.uint8)
    if (start := _start(env, n_states, added=False)) is not None:
        cells[start > 0] = START
    cells[ends] = GOAL
    return Grid(cells.reshape(shape))
