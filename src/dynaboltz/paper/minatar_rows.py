"""The shipped rows of the MinAtar studies as scores, and agents compared over all five games.

``rows/<study>/`` is what ``dynaboltz study studies/<study>.toml --pack`` has packed: every finished run, however many
there are. A run has two scores: its last evaluation, 20 greedy episodes after the last step, and the mean of all its
evaluations, which also says how fast it has learned and varies less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynaboltz.errors import UserError
from dynaboltz.paper.claim import Table
from dynaboltz.reports.aggregates import improvement, interquartile_mean, stratified_interval, stratified_test
from dynaboltz.reports.collect import Run, collect, rows_of
from dynaboltz.reports.comparison import Comparison
from dynaboltz.reports.statistics import Interval, difference_interval, holm, mean_interval

ROWS = Path(__file__).with_name("rows")
STUDY, CLOCKS, RANDOM = "minatar", "minatar-clock", "minatar-random"
SCORES = {
    "last evaluation": lambda run: run.evaluations.returns[-1],
    "mean of all evaluations": lambda run: run.evaluations.returns.mean(),
}
LEVEL = 0.05
LEAST = 2
"""Runs of every agent on every game without which there is no interval."""


@dataclass(frozen=True, slots=True, eq=False)
class Shipped:
    """What is there."""

    runs: tuple[Run, ...]
    """Of learning agents, finished."""
    random: dict[str, np.ndarray]
    """Game → score of every run of random actions."""
    notes: tuple[str, ...]
    """What is not there."""

    @property
    def games(self) -> list[str]:
        """In the order of the alphabet."""
        return sorted({run.config.env for run in self.runs})

    @property
    def agents(self) -> list[str]:
        """In the order of the alphabet."""
        return sorted({run.agent for run in self.runs})

    def scores(self, kind: str) -> Comparison:
        """One of ``SCORES`` of every run."""
        found: dict[tuple[str, str], list[float]] = {}
        for run in self.runs:
            found.setdefault((run.config.env, run.agent), []).append(float(SCORES[kind](run)))
        return Comparison(kind, {key: np.array(found[key]) for key in sorted(found)}, ())

    def scale(self, scores: Comparison) -> dict[str, tuple[float, float]]:
        """Game → the scores that count as 0 and as 1: random's mean, and that of the best agent.

        A game on which no agent beats random has no scale and is left out.
        """
        best = {env: max(v.mean() for (e, _), v in scores.scores.items() if e == env) for env in scores.envs}
        low = {env: float(values.mean()) for env, values in self.random.items()}
        return {env: (low[env], float(best[env])) for env in scores.envs if env in low and best[env] > low[env]}


def shipped(folder: Path, studies: Sequence[str]) -> Shipped:
    """The runs of these studies and of random actions.

    Raises:
        UserError: there is none.
    """
    there = [folder / name for name in studies if (folder / name).is_dir()]
    if not there:
        raise UserError(f"no rows of {' or '.join(studies)} are in {folder}\n  {command(studies[0], folder)}")
    found = collect(there)
    runs = tuple(run for run in found.runs if run.finished and len(run.evaluations))
    notes = [note.replace(f"{folder}/", "") for note in found.notes]
    random = collect([folder / RANDOM]).runs if (folder / RANDOM).is_dir() else ()
    scores = {
        env: [run for run in random if run.config.env == env and run.finished] for env in {r.config.env for r in random}
    }
    for name in studies:
        if folder / name not in there:
            notes.append(f"no run of {name}")
        else:
            notes += incomplete([run for run in runs if run.folder.is_relative_to(folder / name)], name)
    return Shipped(
        runs=runs, notes=tuple(notes),
        random={env: np.array([SCORES["last evaluation"](run) for run in each]) for env, each in scores.items() if each},
    )  # fmt: skip


def incomplete(runs: Sequence[Run], name: str) -> list[str]:
    """Which seeds do not have every agent on every game."""
    points = {(run.agent, run.config.env) for run in runs}
    every = len({agent for agent, _ in points}) * len({env for _, env in points})
    counts = {seed: sum(run.config.seed == seed for run in runs) for seed in sorted({run.config.seed for run in runs})}
    return [f"{name}: seed {seed} has {count} of {every} runs" for seed, count in counts.items() if count < every]


def command(study: str, folder: Path = ROWS) -> str:
    """What makes the rows of a study and packs them."""
    target = "src/dynaboltz/paper/rows" if folder == ROWS else folder
    return f"dynaboltz study studies/{study}.toml && dynaboltz study studies/{study}.toml --pack {target}/{study}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """One agent against another over all games."""

    agent: str
    other: str
    score: str
    better: Interval
    """The probability that a run of the agent beats one of the other on the same game, averaged over games."""
    ahead: Interval | None
    """The difference of the interquartile means of scores on the common scale, if there is one."""
    p: float
    """Of no difference, by shuffling runs within games; after Holm over all comparisons that were asked for."""

    @property
    def real(self) -> bool:
        """Whether they differ beyond chance."""
        return self.p <= LEVEL

    @property
    def wins(self) -> bool:
        """Whether the agent is better beyond chance."""
        return self.real and self.better.value > 0.5


def against(data: Shipped, pairs: Sequence[tuple[str, str]], rng: np.random.Generator) -> list[Against]:
    """Each agent of the pairs against the other, in both scores; p-values after Holm over them all.

    Pairs of which one has fewer than two runs on some game are left out.
    """
    found = []
    for kind in SCORES:
        scores = data.scores(kind)
        scale, games = data.scale(scores), scores.envs
        scaled = [env for env in games if env in scale]
        for agent, other in pairs:
            if scores.shared([agent, other], LEAST) != games:
                continue
            a, b = scores.matrix(agent, games), scores.matrix(other, games)
            better = stratified_interval(improvement, a, b, rng=rng)
            p = stratified_test(improvement, a, b, rng=rng, null=0.5)
            ahead = None
            if scaled:
                a, b = (scores.matrix(one, scaled, scale) for one in (agent, other))
                ahead = stratified_interval(difference, a, b, rng=rng)
            found.append(Against(agent=agent, other=other, score=kind, better=better, ahead=ahead, p=p))
    adjusted = holm([one.p for one in found])
    return [
        Against(agent=one.agent, other=one.other, score=one.score, better=one.better, ahead=one.ahead, p=float(p))
        for one, p in zip(found, adjusted, strict=True)
    ]


def difference(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Of the interquartile means."""
    found: np.ndarray = interquartile_mean(first) - interquartile_mean(second)
    return found


def levels(data: Shipped, agents: Sequence[str], kind: str, rng: np.random.Generator) -> dict[str, Interval]:
    """The interquartile mean of each agent on the common scale, of those with two runs on every game."""
    scores = data.scores(kind)
    scale = data.scale(scores)
    scaled = [env for env in scores.envs if env in scale]
    return {
        agent: stratified_interval(interquartile_mean, scores.matrix(agent, scaled, scale), rng=rng)
        for agent in agents
        if scaled and scores.shared([agent], LEAST) == scores.envs
    }


def beyond_random(data: Shipped, kind: str = "last evaluation") -> dict[tuple[str, str], tuple[Interval, float]]:
    """(game, agent) → how far its score is above random's, with the p-value after Holm over all of them."""
    found = {
        (env, agent): difference_interval(values, data.random[env])
        for (env, agent), values in data.scores(kind).scores.items()
        if env in data.random and min(values.size, data.random[env].size) >= LEAST
    }
    adjusted = holm([effect.p_value for effect in found.values()])
    return {key: (effect, float(p)) for (key, effect), p in zip(found.items(), adjusted, strict=True)}


def with_interval(values: np.ndarray, spec: str = ".3g") -> str:
    """The mean with its interval, where there are enough values of more than one kind."""
    if values.size < LEAST or not np.ptp(values):
        return f"{values.mean():{spec}}"
    return format(mean_interval(values), spec)


def game_table(data: Shipped, agents: Sequence[str], kind: str = "last evaluation") -> Table:
    """A row an agent, a column a game."""
    scores = data.scores(kind)
    rows = [
        (agent, *(with_interval(scores.scores[env, agent]) if (env, agent) in scores.scores else "" for env in scores.envs))
        for agent in agents
    ]  # fmt: skip
    chance = [with_interval(data.random[env]) if env in data.random else "" for env in scores.envs]
    return Table(
        caption=f"Score of each agent ({kind}): mean over runs with Student's 95 % interval",
        header=("agent", *(env.removeprefix("minatar/") for env in scores.envs)), rows=[*rows, ("random actions", *chance)],
    )  # fmt: skip


def total_table(found: Sequence[Against], level: dict[str, Interval], runs: Callable[[str], int]) -> Table:
    """A row a pair, all games together."""
    last, mean = ([one for one in found if one.score == kind] for kind in SCORES)
    return Table(
        caption="All games together: probability that a run is better by its last evaluation, and by the mean of all; difference and level "
        "of the interquartile mean of the last (0 is random, 1 the best agent of each game). 95 % stratified bootstrap intervals; p after "
        f"Holm over all {len(found)}",
        header=("agent", "against", "runs a game", "P(better), last", "p", "P(better), mean", "p of it", "difference", "level of the agent"),
        rows=[
            (
                one.agent, one.other, f"{runs(one.agent)} and {runs(one.other)}", f"{one.better:.2f}", one.p, f"{other.better:.2f}", other.p,
                f"{one.ahead:.2f}" if one.ahead else "", f"{level[one.agent]:.2f}" if one.agent in level else "",
            )
            for one, other in zip(last, mean, strict=True)
        ],
    )  # fmt: skip


def backups(data: Shipped, agents: Sequence[str]) -> Table:
    """How much of the maximum each agent's operator takes, early and late: what its backups do."""
    rows = []
    for agent in agents:
        columns: dict[str, list[float]] = {}
        for run in data.runs:
            if run.agent == agent:
                for name, value in early_and_late(run).items():
                    columns.setdefault(name, []).append(value)
        means = {name: float(np.mean(values)) for name, values in columns.items()}
        rows.append((agent, *(means.get(name, "") for name in MEASURED)))
    return Table(
        caption="Next states of a batch: the gap between their maximum and the backed-up value, and the share where one action has 0.999 of "
        "the weight, as means over the first and the last tenth of the rows with updates; β and c at the end. Means over all games and runs",
        header=("agent", *MEASURED), rows=rows,
    )  # fmt: skip


MEASURED = ("gap, early", "gap, late", "saturated, early", "saturated, late", "β at the end", "c at the end")


def early_and_late(run: Run) -> dict[str, float]:
    """What ``MEASURED`` names, of one run, as far as its rows have it."""
    rows = [row for row in rows_of(run.folder, []) if row["kind"] == "learning" and row.get("updates")]
    part = max(1, len(rows) // 10)
    found = {}
    for key, name in (("gap", "gap"), ("saturated", "saturated")):
        for when, some in (("early", rows[:part]), ("late", rows[-part:])):
            values = [row[key] for row in some if isinstance(row.get(key), int | float)]
            if values:
                found[f"{name}, {when}"] = float(np.mean(values))
    for key, name in (("beta", "β at the end"), ("c", "c at the end")):
        if rows and isinstance(rows[-1].get(key), int | float):
            found[name] = float(rows[-1][key])
    return found
