"""Worlds that are no models: Gymnasium environments with observations that can be numbered, stepped in Python."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dynaboltz.errors import DynaboltzError, UserError
from dynaboltz.mdp import MDP
from dynaboltz.scalars import as_float
from dynaboltz.tabular import layout
from dynaboltz.tabular import state as states
from dynaboltz.tabular.checkpoint import Keeper
from dynaboltz.tabular.numbering import Numbering
from dynaboltz.tabular.session import Session
from dynaboltz.tabular.streams import episode_seeds
from dynaboltz.tabular.table import TableAgent


class Worlds:
    """Environments that a function makes, one for each seed; ``shape`` is what the first one tells."""

    def __init__(self, make: Callable[[], Any]) -> None:
        if not callable(make):
            raise UserError(f"world must be an MDP or a function that makes an environment, got {make!r}")
        self.make = make
        env = make()
        try:
            self.name, self.shape, self.numbering, self.first_action = _spaces(env)
        finally:
            getattr(env, "close", lambda: None)()

    def run(self, session: Session, keeper: Keeper) -> None:
        """Every seed to its end, one after the other; each episode is reset with a seed of its own."""
        for place in range(len(session.seeds)):
            if session.arrays["counters"][place, layout.STATUS] != layout.RUNNING:
                continue
            env = self.make()
            try:
                self._seed(env, session, keeper, place)
            finally:
                env.close()
            if keeper.asked:
                return

    def _seed(self, env: Any, session: Session, keeper: Keeper, place: int) -> None:
        config, counters = session.config, session.arrays["counters"][place]
        seed = session.seeds[place]
        agent = TableAgent(config, self.shape, seed=seed, root=session.root, arrays=session.arrays, place=place)
        first = int(counters[layout.EPISODE])
        for number in episode_seeds(session.root, seed, range(first, config.episodes)):
            before = {name: session.arrays[name][place].copy() for name in states.ARRAYS}
            try:
                whole = self._episode(env, agent, session, keeper, place, number)
            except BaseException:
                _put_back(session, place, before)
                raise
            if not whole:
                _put_back(session, place, before)
                return
            if counters[layout.STATUS] != layout.RUNNING:
                return
            session.notify()
            keeper.save_if_due()
        counters[layout.STATUS] = layout.FINISHED

    def _episode(self, env: Any, agent: TableAgent, session: Session, keeper: Keeper, place: int, number: int) -> bool:
        """One episode; False where a signal came first, so that it must be played again."""
        counters, over = agent.counters, False
        observation, _ = self._called(agent, "reset", partial(env.reset, seed=number))
        agent.begin(self._state(agent, observation))
        while not over:
            action = agent.act()
            outcome = self._called(agent, f"action {action}", partial(env.step, action + self.first_action))
            observation, reward, terminated, truncated, _ = outcome
            value = as_float(reward)
            if value is None or not np.isfinite(value):
                raise DynaboltzError(
                    f"{self._place(agent)}, action {action}: the reward is {reward!r}, not a finite number"
                )
            over = agent.observe(value, self._state(agent, observation), terminated=terminated, truncated=truncated)
            mark = int(counters[layout.MARK])
            if counters[layout.TOTAL] == session.marks[mark]:
                error = agent.error(session.optimum.reshape(self.shape.states, self.shape.actions))
                session.arrays["errors"][place, mark] = error
                counters[layout.MARK] += 1
                if error <= session.stop_error:
                    counters[layout.STATUS] = layout.REACHED
                    return True
            if keeper.asked:
                return False
        return True

    def _called(self, agent: TableAgent, what: str, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except Exception as fault:
            raise DynaboltzError(f"{self._place(agent)}, {what}: {type(fault).__name__}: {fault}") from fault

    def _state(self, agent: TableAgent, observation: Any) -> int:
        number = self.numbering.state(observation)
        if number is None:
            raise DynaboltzError(f"{self._place(agent)}: the observation is {observation!r}, not {self.numbering}")
        return number

    def _place(self, agent: TableAgent) -> str:
        counters = agent.counters
        return f"{self.name}: seed {agent.seed}, episode {counters[layout.EPISODE] + 1}, step {counters[layout.STEP]}"


def _put_back(session: Session, place: int, rows: dict[str, Any]) -> None:
    for name, row in rows.items():
        session.arrays[name][place] = row


def _spaces(env: Any) -> tuple[str, states.Shape, Numbering, int]:
    from gymnasium.spaces import Discrete

    name = str(getattr(getattr(env, "spec", None), "id", None) or type(env).__name__)
    observations, actions = (getattr(env, what, None) for what in ("observation_space", "action_space"))
    numbering = Numbering.of(observations)
    if numbering is None:
        raise UserError(
            f"{name}: a table needs a Discrete observation space, got {observations}\n"
            "  MultiDiscrete and a Tuple of Discrete ones can be numbered too; for others: dynaboltz train"
        )
    if not isinstance(actions, Discrete):
        raise UserError(f"{name}: a table needs a Discrete action space, got {actions}")
    model = getattr(getattr(env, "unwrapped", env), "mdp", None)
    shape = states.Shape.plain(numbering.count, int(actions.n))
    if isinstance(model, MDP):
        shape = states.Shape.of(model)
    return name, shape, numbering, int(actions.start)
