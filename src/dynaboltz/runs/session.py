"""A run in memory: environments, agent, rows and marks; made anew or brought back from a checkpoint, and saved."""

from __future__ import annotations

import contextlib
import math
import time
import warnings
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dynaboltz.errors import DynaboltzError, StorageError, UserError
from dynaboltz.runs.config import OUTSIDE_IDENTITY, RunConfig
from dynaboltz.runs.estimate import estimate
from dynaboltz.runs.layout import Home
from dynaboltz.runs.progress import memory_in_use
from dynaboltz.runs.rows import Row, Rows, note
from dynaboltz.runs.settings import flat, written
from dynaboltz.runs.sinks import Sinks
from dynaboltz.storage import Loaded, Store, Weights, cores

if TYPE_CHECKING:
    from dynaboltz.deep import AgentConfig
    from dynaboltz.deep.agent import Agent
    from dynaboltz.envs import Environments, Episode, Spec


class RunWarning(UserWarning):
    """Something about a run that goes on all the same."""


class NonFiniteStateError(DynaboltzError):
    """A state that must not be saved."""


@dataclass(slots=True)
class Marks:
    """What a run knows of itself beside its agent and its environments. Part of the checkpoint."""

    next_log: int
    """Step of the next row of the learner's state."""
    next_evaluation: int
    """Step of the next evaluation."""
    episodes: int = 0
    best: float = math.nan
    """Mean return of the best evaluation; NaN before the first."""
    best_step: int = 0
    last: float = math.nan
    """Mean return of the last evaluation."""
    ended: bool = False
    """Whether the last row is written."""
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=100))
    """Returns of the last episodes."""

    @classmethod
    def of(cls, tree: Mapping[str, Any]) -> Self:
        """Those that ``tree`` gave."""
        found = {name: tree[name] for name in cls.__slots__}
        return cls(**found | {"recent": deque(found["recent"], maxlen=100)})

    def tree(self) -> dict[str, Any]:
        """For the checkpoint."""
        return {name: getattr(self, name) for name in self.__slots__} | {"recent": list(self.recent)}

    @property
    def mean(self) -> float:
        """Of the last episodes; NaN before the first."""
        return sum(self.recent) / len(self.recent) if self.recent else math.nan


def check_threads(agent: AgentConfig) -> None:
    """Warn of threads that would take turns: those of tensor work wait for each other by spinning."""
    if agent.overlap and agent.threads > 1 and 2 * agent.threads > cores():
        warnings.warn(
            f"with agent.overlap two threads each use agent.threads={agent.threads}, which is more than the {cores()} "
            f"cores here and slows them down several times; write agent.threads={max(1, cores() // 2)}",
            RunWarning, stacklevel=7,
        )  # fmt: skip


class Session:
    """An open run. Whoever opens it holds the lock of its folder."""

    def __init__(self, config: RunConfig, home: Home) -> None:
        self.config, self.home = config, home
        settings = {k: written(v) for k, v in flat(config).items() if not k.startswith(OUTSIDE_IDENTITY)}
        self.store = Store(home.checkpoints, run=config.identity, keep=config.saving.keep, about=settings)
        with contextlib.ExitStack() as opened:  # closed here only if something fails
            self.envs, *sizes = weighed_environments(config)
            opened.callback(self.envs.close)
            estimate(config, self.envs.spec, *sizes).check(config)
            check_threads(config.agent)
            self.agent = make_agent(config, self.envs.spec)
            opened.callback(self.agent.close)
            found = self._load()
            self.rows = Rows(home.rows, offset=0 if found is None else found.tree["run"]["rows"])
            opened.push(lambda kind, _value, _at: self.rows.close(quiet=kind is not None))
            self.resumed_from = self._begin(found)
            self.saved_step, self.saved_at = self.resumed_from, time.monotonic()
            self.sinks = Sinks(config, home, self.resumed_from or 0)
            opened.callback(self.sinks.close)
            self._opened = opened.pop_all()
        if self.resumed_from is None:
            self.emit({
                "kind": "start", "step": 0, "env": config.env, "name": config.name, "seed": config.seed,
                "summary": str(config.agent.parsed_summary), "n_envs": config.n_envs, "identity": config.identity,
                "resumable": self.envs.spec.resumable,
            })  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._opened.__exit__(kind, value, at)

    @property
    def step(self) -> int:
        """Agent steps so far."""
        return self.agent.steps

    def emit(self, row: Row) -> None:
        """A row to the file and to every sink."""
        self.rows.write(row)
        self.sinks.write(row)

    def finished(self, episodes: tuple[Episode, ...], step: int) -> None:
        """Rows of the episodes that have ended."""
        for one in episodes:
            self.marks.episodes += 1
            self.marks.recent.append(one.reward)
            self.emit({
                "kind": "episode", "step": step, "env": one.env, "number": one.number, "steps": one.steps,
                "return": one.reward,
            })  # fmt: skip

    def save(self) -> None:
        """Commit everything. The rows go to the disk first: a checkpoint never knows of rows that are not there.

        Raises:
            StorageError: nothing was saved; what was there before is untouched.
            NonFiniteStateError: the weights are not finite; the last good checkpoint stays.
        """
        began = time.monotonic()
        self.agent.settle()
        check_finite(self.agent.weights(), self.step)
        offset = self.rows.sync()
        tree = {
            "agent": self.agent.state(),
            "envs": self.envs.state(),
            "run": {"rows": offset, **self.marks.tree()},
        }
        self.store.save(self.step, tree)
        self.saved_step, self.saved_at = self.step, time.monotonic()
        note(self.home.journal, "checkpoint", step=self.step, seconds=round(self.saved_at - began, 3))

    def keep_weights(self, name: str, mean: float) -> None:
        """The present weights as ``best`` or ``last``, in a store of their own."""
        folder = self.home.best if name == "best" else self.home.last
        store = Store(folder, run=self.config.identity, keep=1)
        store.save(self.step, {"weights": Weights(self.agent.weights()), "mean": mean})

    def _load(self) -> Loaded | None:
        """The newest checkpoint that is whole, if there is one."""
        try:
            return self.store.load()
        except StorageError as fault:
            raise StorageError(f"{fault} (dynaboltz train … --force)") from fault

    def _begin(self, found: Loaded | None) -> int | None:
        """Go to what was found, or to the start; its step."""
        if found is None:
            self.agent.begin(self.envs.reset())
            total, config = self.config.steps, self.config
            self.marks = Marks(next_log=min(config.log_period_steps, total), next_evaluation=next_evaluation(config, 0))
            note(self.home.journal, "start")
            return None
        for message in found.skipped:
            warnings.warn(message, RunWarning, stacklevel=6)
        self.marks = Marks.of(found.tree["run"])
        self.agent.restore(found.tree["agent"])
        self.agent.begin(self.envs.restore(found.tree["envs"]))
        if not self.envs.spec.resumable:
            warnings.warn(
                f"{self.config.env} cannot be brought back to where it was: the episodes that were running begin anew, "
                "and the run is not the one that it would have been", RunWarning, stacklevel=6,
            )  # fmt: skip
        changed = self.home.other_versions()
        if changed:
            warnings.warn(
                f"the run was begun with {'; '.join(changed)}: what follows may differ from what it would have been",
                RunWarning, stacklevel=6,
            )  # fmt: skip
        note(self.home.journal, "resume", step=found.step, skipped=found.skipped)
        return found.step


def next_evaluation(config: RunConfig, step: int) -> int:
    """The step of the first evaluation after ``step``; the last step of the run always has one. -1 for none."""
    if not config.evaluation.episodes or step >= config.steps:
        return -1
    period = config.evaluation.period_steps or config.steps
    return min((step // period + 1) * period, config.steps)


def weighed_environments(config: RunConfig) -> tuple[Environments, int, int]:
    """Those of the training, the bytes that making them took (without Gymnasium itself), and those of one more."""
    import gymnasium  # noqa: F401

    from dynaboltz.envs import make

    before = memory_in_use()
    envs = make(config.env, n=config.n_envs, seed=config.seed, stream=0)
    between = memory_in_use()
    if not config.evaluation.episodes:
        return envs, max(0, between - before), 0
    with contextlib.ExitStack() as failing:
        failing.callback(envs.close)
        with make(config.env, n=1, seed=config.seed, stream=1):
            one_more = max(0, memory_in_use() - between)
        failing.pop_all()
    return envs, max(0, between - before), one_more


def make_agent(config: RunConfig, spec: Spec) -> Agent:
    """The learner, before its first step."""
    from dynaboltz.deep.agent import Agent

    if config.device != "cpu":
        _check_device(config.device)
    return Agent(config.agent, spec, config.n_envs, seed=config.seed, device=config.device)


def _check_device(device: str) -> None:
    """Refuse one that torch does not have here."""
    import torch

    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as fault:
        reason = str(fault).strip().split("\n", maxsplit=1)[0]
        raise UserError(f"device: torch has no {device!r} here ({reason}); write device='cpu'") from fault


def check_finite(weights: Mapping[str, np.ndarray], step: int) -> None:
    """Refuse weights with a NaN or an infinity in them."""
    for name, array in weights.items():
        if not np.isfinite(array).all():
            raise NonFiniteStateError(
                f"the weights {name} are not finite at step {step:,}; the last good checkpoint stays\n"
                "  lower agent.learning_rate, or clip: agent.gradient_clip=10"
            )
