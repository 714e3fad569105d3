"""Evaluation of a run afterwards: its weights, played by episodes that the training never saw."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynaboltz.errors import UnknownNameError, UserError
from dynaboltz.runs import session
from dynaboltz.runs.config import RunConfig
from dynaboltz.runs.episodes import Score, play
from dynaboltz.runs.layout import Home, read_config
from dynaboltz.runs.protocols import by_protocol
from dynaboltz.runs.rows import line
from dynaboltz.storage import Loaded, Store

if TYPE_CHECKING:
    from dynaboltz.deep.agent import Agent

ASKED = 1
"""Keeps the episodes of an evaluation that is asked for apart from those during the training."""

WHICH = ("last", "best")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """What an evaluation found."""

    folder: str
    which: str
    """``last`` or ``best``."""
    step: int
    """After how many steps of training the weights were so."""
    epsilon: float
    seed: int
    env: str
    """What was played: the run's own world, or its game by the protocol that was asked for."""
    score: Score

    def row(self) -> dict[str, Any]:
        """All of it, flat."""
        about = {"which": self.which, "step": self.step, "epsilon": self.epsilon, "seed": self.seed, "env": self.env}
        return about | self.score.row()


def evaluate(
    folder: Path, *, episodes: int | None = None, which: str = "last", epsilon: float | None = None,
    seed: int | None = None, max_steps: int | None = None, protocol: str | None = None,
    tick: Callable[[], None] = lambda: None,
) -> Evaluated:  # fmt: skip
    """The returns of a run's weights, and a line in its ``evaluations.jsonl``; the run itself stays as it is.

    Args:
        folder: that of the run, finished or not; also one that is being trained.
        episodes: how many; 100, or what the protocol says, if no number is given.
        which: ``last`` weights, or those with the ``best`` evaluation.
        epsilon: share of random actions; that of the run's own evaluations if none is given.
        seed: of the episodes; the run's if none is given.
        max_steps: where an episode is cut; as the run's own evaluations do if none is given.
        protocol: of Atari: the game is played by it, with its ε, its number of episodes and its cap, where it has them.
        tick: called at every step.
    """
    home, config = Home(folder), read_config(folder)
    env, asked = (config.env, {}) if protocol is None else by_protocol(config.env, protocol)
    epsilon = asked.get("evaluation.epsilon", config.evaluation.epsilon) if epsilon is None else epsilon
    seed = config.seed if seed is None else seed
    max_steps = asked.get("evaluation.max_steps", config.evaluation.max_steps) if max_steps is None else max_steps
    if episodes is None:
        episodes = asked.get("evaluation.episodes", 100)
        if not episodes:
            raise UserError(
                f"{protocol} takes the returns of the training and evaluates nothing; say how many episodes"
            )
    if which not in WHICH:
        raise UnknownNameError("choice of weights", which, WHICH)
    for name, value, least, most in (("episodes", episodes, 1, 10**6), ("seed", seed, 0, 2**63 - 1),
                                     ("max_steps", max_steps, 1, 2**53), ("epsilon", epsilon, 0, 1)):  # fmt: skip
        if not least <= value <= most:
            raise UserError(f"{name} must be from {least} to {most:,}, got {value:g}")
    if env != config.env:
        _check_same_sight(env, config.env)
    step, agent = agent_of(home, config, which)
    try:
        score = play(
            env, agent, episodes=episodes, epsilon=epsilon, max_steps=max_steps, key=(seed, ASKED, 0), tick=tick
        )
    finally:
        agent.close()
    found = Evaluated(folder=str(folder), which=which, step=step, epsilon=epsilon, seed=seed, env=env, score=score)
    try:
        handle = os.open(home.evaluations, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        with os.fdopen(handle, "wb") as file:
            file.write(line(found.row()))
    except OSError as fault:
        raise UserError(f"cannot write {home.evaluations}: {fault.strerror or fault}") from fault
    return found


def _check_same_sight(env: str, trained_on: str) -> None:
    """Refuse a world whose frames or actions are not those that the agent was trained on."""
    from dynaboltz.envs import make

    with make(env, stream=1) as envs, make(trained_on, stream=1) as others:
        spec, trained = envs.spec, others.spec
    for name in ("n_actions", "action_labels", "shape", "stack"):
        before, now = getattr(trained, name), getattr(spec, name)
        if before != now:
            raise UserError(
                f"{env} has {name} {now}, and the run was trained with {before}: they cannot be put together"
            )


def agent_of(home: Home, config: RunConfig, which: str) -> tuple[int, Agent]:
    """An agent with the weights of a run, and the step they are of. It is for playing: its replay is empty."""
    from dynaboltz.envs import make

    with make(config.env, n=1, seed=config.seed, stream=1) as envs:
        agent = session.make_agent(config, envs.spec)
    found = _weights(home, config, which)
    if found is not None:
        agent.load_weights(found.tree["weights"])
        return found.step, agent
    whole = Store(home.checkpoints, run=config.identity).load() if which == "last" else None
    if whole is None:
        agent.close()
        after = "an evaluation" if which == "best" else "a checkpoint"
        raise UserError(f"the run in {home.folder} has no {which} weights yet\n  they are there after {after}")
    agent.restore(whole.tree["agent"])
    return whole.step, agent


def _weights(home: Home, config: RunConfig, which: str) -> Loaded | None:
    if which == "last" and home.record() is None:
        return None
    return Store(home.best if which == "best" else home.last, run=config.identity).load()
