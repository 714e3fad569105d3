"""The paper's deep question on the five MinAtar games: does a dynamic Boltzmann softmax beat the maximum, by how much?"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaboltz.paper.claim import Check, Claim, Evidence, Table
from dynaboltz.paper.minatar_rows import (
    LEAST,
    LEVEL,
    ROWS,
    SCORES,
    STUDY,
    Against,
    Shipped,
    against,
    backups,
    beyond_random,
    command,
    game_table,
    levels,
    shipped,
    total_table,
)
from dynaboltz.reports.comparison import baseline_table
from dynaboltz.reports.curves import DASHES, curve
from dynaboltz.reports.figures import COLOURS, Figure, canvas
from dynaboltz.reports.statistics import Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

DQN, LEARNED, FIXED = "dqn", "dbs-dqn", "dbs-dqn-fixed"
FINAL = "last evaluation"
LEARNABLE = ("minatar/breakout", "minatar/space_invaders")
"""On which every agent is expected to learn in so few steps."""


def measure(rng: np.random.Generator, folder: Path = ROWS) -> Evidence:
    """Every agent of the study against DQN, and the two forms of DBS-DQN against one another."""
    data = shipped(folder, [STUDY])
    agents = [DQN, *(agent for agent in data.agents if agent != DQN)]
    pairs = [(agent, DQN) for agent in agents[1:]] + [(LEARNED, FIXED)]
    found = against(data, pairs, rng)
    level = levels(data, agents, FINAL, rng)
    scores = data.scores(FINAL)
    games = baseline_table(scores, DQN)
    random = beyond_random(data)
    checks = [
        *(_wins(found, agent, DQN, fact) for agent, fact in (
            (LEARNED, "DBS-DQN with a learned c beats DQN over the five games"),
            (FIXED, "DBS-DQN with a fixed c beats DQN over the five games"),
        )),
        _wins(found, LEARNED, FIXED, "DBS-DQN with a learned c beats it with a fixed c"),
        _agree(found),
        _real("another operator differs from DQN beyond chance", [one for one in found if one.agent not in (LEARNED, FIXED)]),
        _games(games),
        *_random(data, random),
    ]  # fmt: skip
    open_ = [check for check in checks if check.true is None]
    steps = sorted({run.config.steps for run in data.runs})
    return Evidence(
        finding=_finding(data, found, random),
        settings=settings(data) | {"steps": steps, "evaluation": f"{data.runs[0].config.evaluation.episodes} greedy episodes"},
        checks=checks,
        tables=[
            game_table(data, agents),
            *([total_table(found, level, _runs(data))] if found else []),
            *([Table(caption=games.caption, header=games.header, rows=_dbs_rows(games))] if games.rows else []),
            backups(data, agents),
        ],
        figures=figures(data, agents, found, name="minatar"),
        numbers=numbers(data, found),
        command=command(STUDY) if open_ else "",
    )  # fmt: skip


def settings(data: Shipped) -> dict[str, Any]:
    """What every claim of these rows says of them."""
    counts = sorted({values.size for values in data.scores(FINAL).scores.values()})
    digest = hashlib.sha256("".join(sorted(run.config.identity for run in data.runs)).encode()).hexdigest()
    return {
        "games": data.games, "runs": len(data.runs), "runs of an agent on a game": counts,
        "runs of random actions a game": sorted({values.size for values in data.random.values()}),
        "intervals": "Student's 95 % for one game, 95 % stratified bootstrap (expanded) for all", "settings of all runs": digest[:12],
    }  # fmt: skip


def numbers(data: Shipped, found: Sequence[Against]) -> dict[str, Any]:
    """Every score, and every comparison."""
    return {
        "scores": {kind: {f"{env} {agent}": values for (env, agent), values in data.scores(kind).scores.items()} for kind in SCORES},
        "random": data.random,
        "comparisons": [
            {
                "agent": one.agent, "against": one.other, "score": one.score, "p": one.p,
                "better": [one.better.value, one.better.low, one.better.high], "ahead": one.ahead and [one.ahead.value, one.ahead.low, one.ahead.high],
            }
            for one in found
        ],
        "runs": {f"{run.config.env} {run.agent} {run.config.seed}": run.config.identity for run in data.runs},
        "missing": data.notes,
    }  # fmt: skip


def said(one: Against) -> str:
    """A comparison in a line."""
    scaled = (
        f"; interquartile mean {one.ahead.value:+.2f} [{one.ahead.low:+.2f}, {one.ahead.high:+.2f}]"
        if one.ahead
        else ""
    )
    return f"P(better) {one.better:.2f}, p = {one.p:.2g}{scaled}"


def _wins(found: Sequence[Against], agent: str, other: str, fact: str) -> Check:
    """A statement of the paper: open as long as there are too few runs."""
    here = [one for one in found if (one.agent, one.other, one.score) == (agent, other, FINAL)]
    if not here:
        return Check(fact=fact, true=None, detail=f"fewer than {LEAST} runs of each on every game")
    return Check(fact=fact, true=here[0].wins, detail=said(here[0]))


def _agree(found: Sequence[Against]) -> Check:
    by_pair: dict[tuple[str, str], set[tuple[bool, bool]]] = {}
    for one in found:
        by_pair.setdefault((one.agent, one.other), set()).add((one.real, one.wins))
    apart = [f"{agent} and {other}" for (agent, other), seen in by_pair.items() if len(seen) > 1]
    return Check(
        fact="the mean of all evaluations decides every comparison as the last evaluation does", of="aside", true=bool(by_pair) and not apart,
        detail=f"not {', '.join(apart)}" if apart else f"{len(by_pair)} comparisons",
    )  # fmt: skip


def _real(fact: str, found: Sequence[Against]) -> Check:
    """Which of them differ, by each score; the numbers are in the table."""
    real = {
        kind: [f"{one.agent} ({one.better.value:.2f})" for one in found if one.real and one.score == kind]
        for kind in SCORES
    }
    said_ = "; ".join(f"by the {kind} {', '.join(names)}" for kind, names in real.items() if names)
    return Check(fact=fact, of="aside", true=bool(said_), detail=said_ or f"none of {len(found)} comparisons")


def _games(table: Any) -> Check:
    rows = [row for row in table.records() if row["agent"] in (LEARNED, FIXED)]
    real = [
        f"{row['agent']} on {row['environment'].removeprefix('minatar/')} by {row['difference']:+.3g} (p = {row['p']:.2g})"
        for row in rows
        if row["p"] <= LEVEL
    ]
    return Check(
        fact="DBS-DQN differs from DQN beyond chance on a game of its own", of="aside", true=bool(real),
        detail="; ".join(real) or f"on none of {len(rows)} (Welch, Holm over all agents and games)",
    )  # fmt: skip


def _random(data: Shipped, found: dict[tuple[str, str], tuple[Interval, float]]) -> list[Check]:
    past = [effect.low > 0 and p <= LEVEL for effect, p in found.values()]
    not_past = [
        f"{agent} on {env.removeprefix('minatar/')}" for (env, agent), ok in zip(found, past, strict=True) if not ok
    ]
    twice = {
        (env, agent): effect.low >= data.random[env].mean()
        for (env, agent), (effect, _) in found.items()
        if env in LEARNABLE
    }
    weak = [f"{agent} on {env.removeprefix('minatar/')}" for (env, agent), ok in twice.items() if not ok]
    return [
        Check(
            fact="every agent is past random actions on every game, beyond chance", of="aside", true=bool(past) and all(past),
            detail=f"{sum(past)} of {len(past)}" + (f"; not {_few(not_past)}" if not_past else ""),
        ),
        Check(
            fact="on Breakout and Space Invaders every agent scores at least twice as much as random actions", of="aside",
            true=bool(twice) and all(twice.values()), detail=f"{sum(twice.values())} of {len(twice)}" + (f"; not {_few(weak)}" if weak else ""),
        ),
    ]  # fmt: skip


def _few(names: Sequence[str], most: int = 6) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _finding(data: Shipped, found: Sequence[Against], random: dict[tuple[str, str], tuple[Interval, float]]) -> str:
    there = {(one.agent, one.other): one for one in found if one.score == FINAL}
    sentences = []
    for agent, words in ((LEARNED, "a learned c"), (FIXED, "a fixed c")):
        one = there.get((agent, DQN))
        if one is None:
            sentences.append(f"DBS-DQN with {words} and DQN have too few runs to be compared.")
            continue
        what = "beats DQN" if one.wins else "loses to DQN" if one.real else "does not differ from DQN beyond chance"
        sentences.append(f"DBS-DQN with {words} {what}: {said(one)}.")
    past = sum(effect.low > 0 and p <= LEVEL for effect, p in random.values())
    if random:
        sentences.append(f"{past} of {len(random)} pairs of agent and game are past random actions.")
    if data.notes:
        sentences.append(f"Not there: {'; '.join(data.notes)}.")
    return " ".join(sentences)


def _dbs_rows(table: Any) -> list[Any]:
    return [row for row in table.rows if row[1] in (LEARNED, FIXED)]


def _runs(data: Shipped) -> Any:
    scores = data.scores(FINAL)
    return lambda agent: min(len(scores.scores[env, agent]) for env in scores.envs)


def figures(data: Shipped, agents: Sequence[str], found: Sequence[Against], *, name: str) -> list[Figure]:
    """Evaluations against steps in every game, and all comparisons."""
    drawn = [
        Figure(
            name=f"{name}-curves", draw=lambda: _draw_curves(data, agents),
            caption="Evaluations: mean return of greedy episodes over runs, with Student's 95 % bands where two or more have come so far; the "
            "dotted line is what random actions score.",
            alt="Five panels, one a game: " + "; ".join(_words(data, game, agents) for game in data.games) + ".",
        )
    ]  # fmt: skip
    if found:
        drawn.append(Figure(
            name=f"{name}-better", draw=lambda: _draw_better(found),
            caption="Probability that a run of the first agent beats one of the second on the same game, over all games, with 95 % intervals.",
            alt="Points with intervals around one half: " + "; ".join(f"{one.agent} against {one.other}, {one.score}: {one.better:.2f}" for one in found) + ".",
        ))  # fmt: skip
    return drawn


def _words(data: Shipped, game: str, agents: Sequence[str]) -> str:
    scores = data.scores(FINAL).scores
    ends = ", ".join(f"{agent} {scores[game, agent].mean():.3g}" for agent in agents if (game, agent) in scores)
    return f"on {game.removeprefix('minatar/')} {ends}"


def _draw_curves(data: Shipped, agents: Sequence[str]) -> MatplotlibFigure:
    drawn: MatplotlibFigure
    drawn, unused = canvas(width=8.4, height=4.9)
    unused.remove()
    panels = drawn.subplots(2, 3).ravel()
    for panel, game in zip(panels, data.games, strict=False):
        for number, agent in enumerate(agents):
            runs = [run for run in data.runs if (run.agent, run.config.env) == (agent, game)]
            if runs:
                one = curve(runs, "evaluation")
                look = {"color": COLOURS[number % len(COLOURS)], "ls": DASHES[number // len(COLOURS) % len(DASHES)]}
                panel.plot(one.steps, one.mean, **look)
                panel.fill_between(one.steps, one.low, one.high, color=look["color"], alpha=0.12, lw=0)
        if game in data.random:
            panel.axhline(data.random[game].mean(), color="#555555", ls=":", lw=1)
        panel.set(title=game.removeprefix("minatar/").replace("_", " "), xlim=(0, None), ylim=(0, None))
        panel.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}k")
    for panel in panels[len(data.games) :]:
        panel.axis("off")
    for number, agent in enumerate(agents):
        panels[-1].plot(
            [], [], label=agent, color=COLOURS[number % len(COLOURS)], ls=DASHES[number // len(COLOURS) % len(DASHES)]
        )
    panels[-1].legend(loc="center left")
    panels[0].set(ylabel="return")
    panels[3].set(ylabel="return", xlabel="agent steps")
    return drawn


def _draw_better(found: Sequence[Against]) -> MatplotlibFigure:
    pairs = list(dict.fromkeys((one.agent, one.other) for one in found))
    drawn, axes = canvas(width=5.6, height=0.9 + 0.34 * len(pairs))
    for number, kind in enumerate(SCORES):
        for one in found:
            if one.score == kind:
                at = len(pairs) - 1 - pairs.index((one.agent, one.other)) + (0.13 if number == 0 else -0.13)
                axes.plot([one.better.low, one.better.high], [at, at], color=COLOURS[number], lw=1.4)
                axes.plot(
                    one.better.value,
                    at,
                    "o",
                    color=COLOURS[number],
                    mfc=COLOURS[number] if one.real else "white",
                )
        axes.plot([], [], "o-", color=COLOURS[number], label=kind)
    axes.axvline(0.5, color="#555555", ls=":", lw=1)
    axes.set_yticks(range(len(pairs)), [f"{agent} against {other}" for agent, other in reversed(pairs)])
    axes.set(xlim=(0, 1), xlabel="P(better); filled where beyond chance")
    axes.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=2)
    figure: MatplotlibFigure = drawn
    return figure


CLAIM = Claim(
    name="minatar", title="DBS-DQN against DQN, on MinAtar", section="deep", where="Sections 4.3 and 5, Table 1",
    says="DBS-DQN significantly outperforms DQN, with a learned c and with a fixed one, and the learned c exceeds the fixed (on 49 Atari "
    "games; here on five games that a small machine can repeat over seeds).",
    equations={
        "DBS-DQN": "dynaboltz.deep.Agent", "its targets": "dynaboltz.deep.targets.Targets",
        "probability of improvement": "dynaboltz.reports.aggregates.improvement",
    },
    test=measure,
)  # fmt: skip
