"""The arrays behind learning: the world as compiled code samples it, and the state of every seed."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dynaboltz.errors import UserError
from dynaboltz.mdp import MDP
from dynaboltz.storage import available_bytes
from dynaboltz.tabular import streams
from dynaboltz.tabular.clocks import Clocks
from dynaboltz.tabular.layout import COUNTERS
from dynaboltz.tabular.settings import Learning

ARRAYS = ("q", "visits", "streams", "counters", "gained", "steps", "returns", "errors")
"""All that a seed is, in the order of ``compiled.Run``."""
SIZES = 1 << 16
"""Step sizes kept in a table; beyond, n^−ω is computed, to the same bits."""
CONSTANT_ACTIONS: tuple[int, ...] = (2, 4, 8)
"""Numbers of actions that are constants of the compiled code: a row of so many fills a register."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What an agent must know of a world: its size, which pairs exist, and which states are terminal."""

    states: int
    actions: int
    legal: npt.NDArray[np.bool_]
    """(states, actions), false throughout a terminal state."""
    terminal: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, mdp: MDP) -> Shape:
        """That of a model."""
        legal = np.zeros((mdp.n_states, mdp.n_actions), np.bool_)
        legal[mdp.row_states(), mdp.action] = True
        return cls(mdp.n_states, mdp.n_actions, legal, np.array(mdp.terminal))

    @classmethod
    def plain(cls, states: int, actions: int) -> Shape:
        """That of a world of which no more is known."""
        return cls(states, actions, np.ones((states, actions), np.bool_), np.zeros(states, np.bool_))


def fresh(config: Learning, shape: Shape, seeds: tuple[int, ...], root: int, marks: int) -> dict[str, Any]:
    """The state of every seed before its first step."""
    tables = config.parsed_rule.tables
    n, pairs = len(seeds), shape.states * shape.actions
    needed = n * (16 * tables * pairs + 16 * config.episodes + 8 * marks)
    available = available_bytes()
    if available is not None and needed > available:
        raise UserError(
            f"{n:,} seeds of {tables * pairs:,} values and {config.episodes:,} episodes need {needed / 1e9:,.1f} GB, "
            f"and {available / 1e9:,.1f} GB are available\n"
            "  take fewer seeds at a time: what a seed does does not depend on the others"
        )
    q = np.empty((n, tables, shape.states, shape.actions))
    for place, seed in enumerate(seeds):
        q[place] = config.parsed_initial.draw(streams.generator(root, seed), q.shape[1:])
    q[:, :, ~shape.legal] = -math.inf
    q[:, :, shape.terminal] = 0.0
    return {
        "q": q.reshape(n, -1),
        "visits": np.zeros((n, tables * pairs), np.int64),
        "streams": streams.keys(root, seeds),
        "counters": np.zeros((n, COUNTERS), np.int64),
        "gained": np.zeros(n),
        "steps": np.zeros((n, config.episodes), np.int64),
        "returns": np.full((n, config.episodes), math.nan),
        "errors": np.full((n, marks), math.nan),
    }


def form_of(config: Learning, shape: Shape) -> Any:
    """The rule with its parameters, for compiled code."""
    from dynaboltz.operators.compiled import parameters

    prior = config.parsed_prior
    if prior is not None and len(prior) != shape.actions:
        raise UserError(f"the prior has {len(prior)} numbers, and the world has {shape.actions} actions")
    weights = np.ones(shape.actions) if prior is None else np.array(prior)
    summary = config.parsed_summary
    return config.parsed_rule.fill(0 if summary is None else parameters(summary.operator), weights / weights.sum())


def actions_of(shape: Shape) -> Any:
    """Something as long as there are actions: a tuple, whose length compiled code knows, if a row fills a register."""
    return (0,) * shape.actions if shape.actions in CONSTANT_ACTIONS else np.zeros(shape.actions, np.int8)


def world_of(mdp: MDP, shape: Shape) -> Any:
    """The model for sampling."""
    from dynaboltz.tabular.compiled import World

    if mdp.start is None:
        raise UserError("learning needs to know where an episode starts: give the MDP a start distribution")
    first = np.flatnonzero(mdp.start > 0)
    if mdp.terminal[first].any():
        state = int(first[mdp.terminal[first].argmax()])
        raise UserError(f"{mdp.state_name(state)} is terminal and a first state; an episode needs at least one step")
    lengths = np.zeros(shape.states * shape.actions + 1, np.int64)
    lengths[1:][shape.legal.ravel()] = np.diff(mdp.row_ptr)
    rows = np.repeat(np.arange(mdp.n_rows), np.diff(mdp.row_ptr))
    target = mdp.next_state.astype(np.int64)
    reward = mdp.reward[rows] if mdp.transition_reward is None else mdp.transition_reward.astype(np.float64)
    return World(
        actions_of(shape),
        np.cumsum(lengths),
        np.where(mdp.terminal[target], ~target, target),
        cumulated(mdp.probability, mdp.row_ptr),
        reward,
        first,
        np.cumsum(mdp.start[first]),
        np.flatnonzero(shape.legal),
    )


def cumulated(probability: npt.NDArray[Any], pointer: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Cumulative sums that begin anew at each row, added up from the left."""
    total = np.array(probability, np.float64)
    lengths = np.diff(pointer)
    start = np.asarray(pointer[:-1], np.int64)
    for place in range(1, int(lengths.max(initial=0))):
        rows = start[lengths > place]
        total[rows + place] += total[rows + place - 1]
    return total


def plan_of(config: Learning, clocks: Clocks, total: int, optimum: Any, marks: Any, stop_error: float) -> Any:
    """The settings, with the tables that the steps after ``total`` need."""
    from dynaboltz.tabular.compiled import Plan

    scale, omega = config.parsed_step_size.coefficients
    return Plan(
        discount=config.discount,
        episodes=config.episodes,
        max_steps=config.max_steps,
        scale=scale,
        omega=omega,
        sizes=_sizes(scale, omega),
        random_ties=config.ties == "random",
        mask_terminal=config.mask_terminal,
        optimum=optimum,
        marks=marks,
        stop_error=stop_error,
        **clocks.at(total),
    )


def _sizes(scale: float, omega: float) -> npt.NDArray[np.float64]:
    if omega == 0.0:
        return np.full(1, scale)
    return np.array([math.inf] + [scale * float(n) ** -omega for n in range(1, SIZES)])


def fingerprint(mdp: MDP) -> str:
    """A digest of everything in the model that learning reads."""
    found = hashlib.sha256()
    for name in ("state_ptr", "action", "row_ptr", "next_state", "probability", "reward", "start", "transition_reward"):
        array = getattr(mdp, name)
        found.update(f"{name} {'none' if array is None else (array.dtype.str, array.size)} ".encode())
        found.update(b"" if array is None else memoryview(array).cast("B"))
    return found.hexdigest()
