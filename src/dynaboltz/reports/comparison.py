"""Agents compared by their runs: scores with intervals, differences from a baseline, and aggregates over tasks."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynaboltz.errors import UnknownNameError, UserError
from dynaboltz.files import opened
from dynaboltz.reports.aggregates import (
    AGGREGATES,
    Band,
    Statistic,
    improvement,
    profile,
    stratified_band,
    stratified_interval,
)
from dynaboltz.reports.collect import SCORES, Run
from dynaboltz.reports.scores import human_references
from dynaboltz.reports.statistics import difference_interval, holm, mean_interval, superiority
from dynaboltz.reports.tables import Table

Array = NDArray[np.float64]
References = Mapping[str, tuple[float, float]]
"""Environment → the scores that count as 0 and as 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Scores of runs by environment and agent."""

    kind: str
    """One of ``SCORES``."""
    scores: Mapping[tuple[str, str], Array]
    """(environment, agent) → a score for each run that counts, by seed."""
    notes: tuple[str, ...]

    @property
    def envs(self) -> list[str]:
        """In the order of the runs."""
        return list(dict.fromkeys(env for env, _ in self.scores))

    @property
    def agents(self) -> list[str]:
        """In the order of the alphabet."""
        return sorted({agent for _, agent in self.scores})

    def shared(self, agents: Sequence[str], runs: int = 2) -> list[str]:
        """The environments on which every one of the agents has so many runs."""
        return [env for env in self.envs if all(len(self.scores.get((env, one), ())) >= runs for one in agents)]

    def matrix(self, agent: str, envs: Sequence[str], references: References | None = None) -> Array:
        """The agent's scores as runs × tasks: of as many runs as it has on the environment with the fewest."""
        runs = min(len(self.scores[env, agent]) for env in envs)
        columns = []
        for env in envs:
            low, high = (0.0, 1.0) if references is None else references[env]
            columns.append((self.scores[env, agent][:runs] - low) / (high - low))
        return np.stack(columns, axis=1)


def compare(runs: Sequence[Run], *, score: str = "auto", at: int | None = None) -> Comparison:
    """The scores of the runs that count: those that are finished, or with ``at`` those that have come that far.

    Args:
        runs: as :func:`~dynaboltz.reports.collect.collect` has them.
        score: one of ``SCORES``, or ``auto``: the last evaluation where every run has one, else the training.
        at: agent steps at which all are compared.
    """
    if score not in ("auto", *SCORES):
        raise UnknownNameError("score", score, ("auto", *SCORES), "--score")
    counting = [run for run in runs if (run.finished if at is None else run.step >= at)]
    evaluated = all(run.score("evaluation", at) is not None for run in counting)
    kind = ("evaluation" if evaluated else "training") if score == "auto" else score
    found: dict[tuple[str, str], list[float]] = {}
    notes = []
    for run in counting:
        value = run.score(kind, at)
        if value is None:
            notes.append(f"{run.config.env}, {run.agent}, seed {run.config.seed} has no {kind} score")
        else:
            found.setdefault((run.config.env, run.agent), []).append(value)
    left = len(runs) - len(counting)
    if left:
        why = "are not finished" if at is None else f"have not come to {at:,} steps"
        notes.append(f"{left} of {len(runs)} runs {why} and count in no table")
    return Comparison(kind, {key: np.array(values) for key, values in found.items()}, tuple(notes))


def baseline_of(comparison: Comparison, name: str | None) -> str | None:
    """The agent to compare with: the one named, else dqn, else the first; None where there is only one."""
    agents = comparison.agents
    if name is not None and name not in agents:
        raise UnknownNameError("agent", name, agents, "--baseline")
    if len(agents) < 2:
        return None
    return name or ("dqn" if "dqn" in agents else agents[0])


def score_table(comparison: Comparison) -> Table:
    """Every agent on every environment: the mean score of its runs with Student's interval."""
    rows = []
    for (env, agent), values in sorted(comparison.scores.items()):
        many = values.size >= 2
        interval = mean_interval(values) if many else None
        low, high = (interval.low, interval.high) if interval else (None, None)
        rows.append(
            (env, agent, values.size, float(values.mean()), low, high, float(values.min()), float(values.max()))
        )
    return Table(
        caption=f"Score of each agent ({SCORES[comparison.kind].name}): mean over runs with its 95 % interval",
        header=("environment", "agent", "runs", "mean", "95 % low", "95 % high", "least", "most"), rows=rows,
    )  # fmt: skip


def baseline_table(comparison: Comparison, baseline: str) -> Table:
    """Every other agent against the baseline: the difference with Welch's interval, and how often a run is better."""
    found = []
    for (env, agent), values in sorted(comparison.scores.items()):
        other = comparison.scores.get((env, baseline))
        if agent != baseline and other is not None and min(values.size, other.size) >= 2:
            found.append((env, agent, difference_interval(values, other), superiority(values, other)))
    adjusted = holm([effect.p_value for _, _, effect, _ in found])
    rows = [
        (env, agent, effect.value, effect.low, effect.high, float(p), better.value, better.low, better.high)
        for (env, agent, effect, better), p in zip(found, adjusted, strict=True)
    ]
    return Table(
        caption=f"Against {baseline}: difference of means (Welch), p after Holm over the rows, and P(a run is better) "
        "(Brunner and Munzel), with 95 % intervals",
        header=("environment", "agent", "difference", "low", "high", "p", "P(better)", "P low", "P high"), rows=rows,
    )  # fmt: skip


def aggregate_table(
    comparison: Comparison, baseline: str | None, references: References | None, *, rng: np.random.Generator
) -> tuple[Table | None, tuple[str, ...]]:
    """Each agent over all tasks that every agent has: aggregates, where there is a common scale, and improvement."""
    agents = comparison.agents
    envs = comparison.shared(agents)
    if len(envs) < 2:
        return None, ()
    counts = [len(comparison.scores[env, agent]) for env in envs for agent in agents]
    notes = [
        f"aggregates leave out {env}: not every agent has 2 runs of it" for env in comparison.envs if env not in envs
    ]
    if max(counts) > min(counts):
        notes.append("aggregates take as many runs of each agent as it has on the environment with the fewest")
    known = _scale(envs, references)
    if known is None:
        missing = [env for env in envs if env not in (references or {})]
        notes.append(
            "no common scale, so that only P(better) is over all tasks: --references FILE gives each environment the "
            "scores that count as 0 and as 1" + (f"; {', '.join(missing)} is not in it" if references else "")
        )
    rows = []
    for agent in agents:
        runs = comparison.matrix(agent, envs, known)
        line: list[object] = [agent, runs.shape[0], runs.shape[1]]
        if known is not None:
            line += [_with_interval(one, runs, rng=rng) for one in AGGREGATES.values()]
        if baseline is not None:
            other = comparison.matrix(baseline, envs, known)
            line.append("" if agent == baseline else _with_interval(improvement, runs, other, rng=rng))
        rows.append(tuple(line))
    header = ["agent", "runs", "tasks", *(AGGREGATES if known is not None else ())]
    header += [f"P(better than {baseline})"] if baseline is not None else []
    if len(header) == 3:
        return None, tuple(notes)
    caption = "Over all tasks, with 95 % stratified bootstrap intervals"
    return Table(caption=caption, header=header, rows=rows), tuple(notes)


def profiles(
    comparison: Comparison, references: References | None, *, rng: np.random.Generator, points: int = 101
) -> tuple[Array, dict[str, Band]] | None:
    """Levels on the common scale, and for each agent the share of its runs that are above each, over all shared tasks.

    None where there is no common scale, or fewer than two tasks that every agent has two runs of.
    """
    agents = comparison.agents
    envs = comparison.shared(agents)
    known = _scale(envs, references)
    if len(envs) < 2 or known is None:
        return None
    scores = {agent: comparison.matrix(agent, envs, known) for agent in agents}
    ends = [float(end(each)) for each in scores.values() for end in (np.min, np.max)]
    levels = np.linspace(min(0.0, *ends), max(ends), points)
    bands = {
        agent: stratified_band(lambda drawn: profile(drawn, levels), runs, rng=rng) for agent, runs in scores.items()
    }
    return levels, bands


def _scale(envs: Sequence[str], references: References | None) -> References | None:
    """The scores that count as 0 and as 1 on each of these environments, where all of them have any."""
    known = references if references is not None else _human(envs)
    return known if known is not None and all(env in known for env in envs) else None


def _with_interval(statistic: Statistic, *scores: Array, rng: np.random.Generator) -> str:
    """The statistic with its interval, or without where the resamples all agree: so few runs allow none."""
    found = stratified_interval(statistic, *scores, rng=rng)
    return f"{found:.3g}" if found.low < found.high else f"{found.value:.3g} (no interval)"


def _human(envs: Sequence[str]) -> References | None:
    """Random and human scores if every environment is a game that has them."""
    found = {env: human_references(env) for env in envs}
    known = {env: pair for env, pair in found.items() if pair is not None}
    return known if len(known) == len(envs) else None


def read_references(path: Path) -> dict[str, tuple[float, float]]:
    """The scores that count as 0 and as 1, from a CSV file with the columns environment, low, high."""
    with opened(path) as file:
        lines = file.read(1 << 20).decode(errors="replace").splitlines()
    found = {}
    for number, row in enumerate(csv.reader(lines), 1):
        if number == 1 and [cell.strip() for cell in row[1:]] == ["low", "high"]:
            continue
        try:
            name, low, high = row[0].strip(), float(row[1]), float(row[2])
        except (IndexError, ValueError):
            low = high = math.nan
        if len(row) != 3 or not low < high:
            raise UserError(
                f"{path}, line {number} is not environment,low,high with low < high, got {','.join(row)!r}\n"
                "  for instance: minatar/breakout,0.5,20"
            )
        found[name] = (low, high)
    return found
