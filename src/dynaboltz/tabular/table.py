"""The same agent, step by step: for any world that Python can step."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dynaboltz.errors import UserError
from dynaboltz.scalars import as_float
from dynaboltz.tabular import layout
from dynaboltz.tabular.clocks import Clocks
from dynaboltz.tabular.outcome import DivergedError
from dynaboltz.tabular.settings import Learning
from dynaboltz.tabular.state import Shape, actions_of, form_of, fresh, plan_of


class TableAgent:
    """One seed of an agent; it makes the choices and the updates that the compiled engine makes, bit by bit.

    Args:
        config: the agent.
        shape: states, actions and which of them exist.
        seed: which seed it is.
        root: the root of all seeds.
        arrays: the state of seeds to work on, for who keeps it; a fresh one by default.
        place: the seed's place in ``arrays``.

    >>> learner = TableAgent(Learning(epsilon=0, initial=1.0), Shape.plain(states=2, actions=4), seed=7)
    >>> learner.begin(0)
    >>> action = learner.act()
    >>> learner.observe(5.0, 1, terminated=True)
    True
    >>> learner.q[0, 0, action].item()  # 1 + α (5 − 1)
    1.4
    """

    def __init__(
        self,
        config: Learning,
        shape: Shape,
        *,
        seed: int = 0,
        root: int = 0,
        arrays: dict[str, Any] | None = None,
        place: int = 0,
    ) -> None:
        from dynaboltz.tabular import kernels

        self.config, self.shape, self.seed = config, shape, seed
        self._kernels = kernels
        if arrays is None:
            arrays = fresh(config, shape, (seed,), root, 0)
        rows = {name: array[place] for name, array in arrays.items() if name not in ("gained",)}
        self._q, self._visits, self._stream = rows["q"], rows["visits"], rows["streams"]
        self.counters: npt.NDArray[np.int64] = rows["counters"]
        self._steps, self._returns = rows["steps"], rows["returns"]
        self._form, self._actions, self._clocks = form_of(config, shape), actions_of(shape), Clocks(config)
        self._carries = config.parsed_rule.carries
        self._plan: Any = None
        self._until = -1
        self._gained = 0.0
        self._action = -1

    @property
    def q(self) -> npt.NDArray[np.float64]:
        """The action values, (tables, states, actions); a view."""
        values: npt.NDArray[np.float64] = self._q.reshape(-1, self.shape.states, self.shape.actions)
        return values

    def begin(self, state: int) -> None:
        """An episode begins in ``state``."""
        if self.counters[layout.EPISODE] >= self.config.episodes:
            raise UserError(f"the agent's {self.config.episodes} episodes are over")
        self.counters[layout.STEP] = 0
        self.counters[layout.STATE] = self._checked(state)
        self._gained = 0.0
        if self._carries:
            self.counters[layout.ACTION] = self._choose(state)

    def act(self) -> int:
        """The action of the next step."""
        if self._action < 0:
            carried = int(self.counters[layout.ACTION])
            self._action = carried if self._carries else self._choose(int(self.counters[layout.STATE]))
        return self._action

    def observe(self, reward: float, state: int, *, terminated: bool, truncated: bool = False) -> bool:
        """Learn from what the action led to; returns whether the episode is over, by the cap on steps if not else.

        Raises:
            DivergedError: a value is no longer finite.
        """
        counters = self.counters
        if self._action < 0:
            raise UserError("observe() comes after act()")
        number = as_float(reward)
        if number is None or not np.isfinite(number):
            raise UserError(f"the reward must be a finite number, got {reward!r}")
        target, here, action = self._checked(state), int(counters[layout.STATE]), self._action
        plan = self._tables()
        beta = self._beta(plan)
        counters[layout.TOTAL] += 1
        counters[layout.STEP] += 1
        carried = self._choose(target) if self._carries and not terminated else 0
        finite = self._kernels.update(
            self._form, self._actions, plan, self._q, self._visits, here, action, number, target, bool(terminated),
            carried, beta, self._epsilon(), self._stream,
        )  # fmt: skip
        self._gained += number
        self._action = -1
        if not finite:
            counters[layout.STATUS] = layout.DIVERGED
            counters[layout.STATE], counters[layout.ACTION] = here, action
            raise diverged(self.config, self.shape, self.seed, self.counters, self._q)
        counters[layout.STATE], counters[layout.ACTION] = target, carried
        over = bool(terminated or truncated or counters[layout.STEP] == self.config.max_steps)
        if over:
            episode = int(counters[layout.EPISODE])
            self._steps[episode], self._returns[episode] = counters[layout.STEP], self._gained
            counters[layout.EPISODE] += 1
            counters[layout.STEP] = 0
        return over

    def error(self, optimum: npt.NDArray[np.float64]) -> float:
        """‖Q − Q*‖ over the pairs that exist."""
        values = self.q.mean(axis=0) if self.config.parsed_rule.tables == 2 else self.q[0]
        return float(np.abs(values - optimum)[self.shape.legal].max())

    def _choose(self, state: int) -> int:
        return int(
            self._kernels.choose(
                self._form, self._actions, self._q, state, self._epsilon(), self.config.ties == "random", self._stream
            )
        )

    def _tables(self) -> Any:
        total = int(self.counters[layout.TOTAL])
        if self._plan is None or not self._plan.beta_offset <= total < self._until:
            self._plan = plan_of(self.config, self._clocks, total, np.zeros(0), np.zeros(0, np.int64), 0.0)
            self._until = self._plan.beta_offset + self._clocks.window
        return self._plan

    def _epsilon(self) -> float:
        plan = self._plan if self._plan is not None else self._tables()
        by_step = plan.epsilon_clock == layout.BY_STEP
        t = self.counters[layout.TOTAL] - plan.epsilon_offset if by_step else self.counters[layout.EPISODE]
        return float(plan.epsilons[t if plan.epsilons.size > 1 else 0])

    def _beta(self, plan: Any) -> float:
        counters = self.counters
        if plan.betas.size == 1 or plan.beta_clock == layout.BY_VISIT:
            return float(plan.betas[0])
        by = {
            layout.BY_EPISODE: counters[layout.EPISODE],
            layout.BY_STEP: counters[layout.TOTAL] - plan.beta_offset,
            layout.BY_EPISODE_STEP: counters[layout.STEP],
        }
        return float(plan.betas[by[plan.beta_clock]])

    def _checked(self, state: Any) -> int:
        number = as_float(state)
        if number is None or not number.is_integer() or not 0 <= number < self.shape.states:
            raise UserError(f"a state must be a whole number from 0 to {self.shape.states - 1}, got {state!r}")
        return int(number)


def diverged(
    config: Learning, shape: Shape, seed: int, counters: npt.NDArray[np.int64], q: npt.NDArray[np.float64]
) -> DivergedError:
    """What is to be said of a seed whose last update was not finite."""
    state, action = int(counters[layout.STATE]), int(counters[layout.ACTION])
    values = q.reshape(-1, shape.states, shape.actions)[:, state, action]
    value = values[~np.isfinite(values)][0]
    return DivergedError(
        f"Q diverged: seed {seed}, episode {counters[layout.EPISODE] + 1}, step {counters[layout.TOTAL]}: "
        f"Q(state {state}, action {action}) became {value}\n"
        f"  {config.rule}, {config.summary or 'no summary'}, discount {config.discount:g}, {config.step_size}: "
        "smaller rewards, a larger beta or a smaller discount keep it finite"
    )
