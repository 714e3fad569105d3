"""What a study will cost: memory by the runs' own estimate, time by how fast such runs were, or by a short try."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dynaboltz.runs import Progress, RunConfig, train
from dynaboltz.runs.estimate import estimate_of
from dynaboltz.runs.settings import flat
from dynaboltz.studies.ledger import read_ledger

BASE_BYTES = 300_000_000
"""What Python, torch and their libraries take in each process."""

TRIAL_STEPS = 2_000
"""Of a try; the first half of them is not timed: kernels are compiled in it."""

UNTOLD = ("seed", "steps", "name", "log_period_steps")
"""Settings that change neither the memory nor the rate of a run, beside those of evaluation and saving."""


class Sizes:
    """The memory of runs in bytes, on top of ``BASE_BYTES``; asked once for all seeds."""

    def __init__(self) -> None:
        self._found: dict[tuple[object, ...], int] = {}

    def __call__(self, config: RunConfig) -> int:
        """What the run takes."""
        key = kind_of(config, env=config.env)
        if key not in self._found:
            self._found[key] = estimate_of(config).total
        return self._found[key]


def kind_of(config: RunConfig, *, env: str) -> tuple[object, ...]:
    """Runs of one kind are about as fast and as large; ``env`` stands for the run's own."""
    told = {
        key: value for key, value in flat(config).items()
        if key not in UNTOLD and not key.startswith(("evaluation.", "saving.", "sinks", "memory_limit"))
    }  # fmt: skip
    return tuple(sorted((told | {"env": env}).items()))


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one run."""

    config: RunConfig
    done: bool
    size: int
    """Bytes, all included."""
    rate: float
    """Steps a second, evaluations and checkpoints included where it was measured on whole runs; NaN if unknown."""
    source: str
    """Where the rate is from: ``finished runs``, ``a try``, or nothing."""

    @property
    def seconds(self) -> float:
        """What is left of it takes so long; NaN if unknown."""
        return 0.0 if self.done else self.config.steps / self.rate


def costs(
    configs: Sequence[RunConfig], done: Iterable[str], ledgers: Iterable[Path], *, calibrate: bool = False
) -> list[Cost]:
    """The cost of each run.

    Args:
        configs: the runs.
        done: identities of those that are finished.
        ledgers: of studies, where the rates of finished runs stand.
        calibrate: whether to try for a few seconds each agent whose rate nobody knows, on the first of its
            environments of one sort.
    """
    rates = measured_rates(configs, ledgers)
    sizes, finished, tried = Sizes(), set(done), dict[tuple[object, ...], float]()
    found = []
    for config in configs:
        sort = kind_of(config, env=config.env.partition("/")[0])
        rate, source = rates.get(kind_of(config, env=config.env), rates.get(sort, math.nan)), "finished runs"
        if math.isnan(rate):
            if calibrate and config.identity not in finished and sort not in tried:
                tried[sort] = tried_rate(config)
            rate = tried.get(sort, math.nan)
            source = "" if math.isnan(rate) else "a try"
        size = BASE_BYTES + sizes(config)
        found.append(Cost(config, config.identity in finished, size, rate, source))
    return found


def measured_rates(configs: Sequence[RunConfig], ledgers: Iterable[Path]) -> dict[tuple[object, ...], float]:
    """Steps a second of the finished runs among ``configs``: of each kind, and on all environments of a sort."""
    by_run = {config.identity: config for config in configs}
    totals: dict[tuple[object, ...], tuple[float, float]] = {}
    for ledger in ledgers:
        for entry in read_ledger(ledger):
            config, seconds = by_run.get(entry["run"]), entry.get("seconds")
            if entry["event"] != "done" or config is None or not isinstance(seconds, int | float) or seconds <= 0:
                continue
            for env in {config.env, config.env.partition("/")[0]}:
                key = kind_of(config, env=env)
                steps, before = totals.get(key, (0.0, 0.0))
                totals[key] = steps + float(entry.get("steps", 0)), before + seconds
    return {key: steps / seconds for key, (steps, seconds) in totals.items()}


def tried_rate(config: RunConfig) -> float:
    """Steps a second of a few seconds of such a run that learns from the start and evaluates nothing."""
    agent = config.agent
    start = max(agent.batch_size, agent.n_step + 1, 100)
    short = replace(
        config, steps=TRIAL_STEPS, log_period_steps=TRIAL_STEPS // 2, sinks=(),
        agent=replace(agent, replay_start_steps=start, replay_capacity_steps=max(start, 2 * TRIAL_STEPS)),
        evaluation=replace(config.evaluation, episodes=0),
        saving=replace(config.saving, period_seconds=0, period_steps=0),
    )  # fmt: skip
    marks: list[tuple[float, int]] = []

    def watch(now: Progress) -> None:
        marks.append((time.monotonic(), now.step))

    with tempfile.TemporaryDirectory() as folder:
        train(short, Path(folder), watch=watch)
    timed = [(moment, step) for moment, step in marks if step >= TRIAL_STEPS // 2]
    if len(timed) < 2 or timed[-1][1] <= timed[0][1]:
        timed = marks
    (began, first), (ended, last) = timed[0], timed[-1]
    return (last - first) / max(ended - began, 1e-6)
