"""For which settings does the ordering of the Q-learning figures hold? All that the paper leaves open, cell by cell."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaboltz.paper.claim import Check, Claim, Evidence, Table
from dynaboltz.paper.learners import AGENTS, CAP, SOFT, Q, dbs, root_of, soft, steps
from dynaboltz.paper.progress import each
from dynaboltz.paper.worlds import DISCOUNT, LAYOUTS, optimum
from dynaboltz.reports.figures import Figure, canvas
from dynaboltz.reports.statistics import Effect, cohens_d, holm, mean_interval
from dynaboltz.tabular import Learning, learn

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

    from dynaboltz.paper.learners import Floats

EPISODES, LEVEL = 40, 0.05
STARTS = {
    "zeros": {"initial": "zeros", "ties": "random"},
    "zeros, lowest index": {"initial": "zeros", "ties": "lowest"},
    "uniform [0, 0.1)": {"initial": "uniform(low=0, high=0.1)", "ties": "random"},
    "uniform [0, 1)": {"initial": "uniform(low=0, high=1)", "ties": "random"},
    "normal, sd 0.1": {"initial": "normal(mean=0, deviation=0.1)", "ties": "random"},
}
"""Q_0 and the tie rule; values drawn from a continuous distribution have no ties to break."""
POSITIVE = ("uniform [0, 0.1)", "uniform [0, 1)")
ALPHAS, EPSILONS = (0.1, 0.5, 1.0), (0.1, 0.3)
BEST, RIVAL = "soft, best β", "best rival"
STATEMENTS: dict[str, tuple[str, str, int]] = {
    "DBS t² better\nthan Q-learning": (dbs(2), Q, -1),
    "DBS t¹ worse\nthan Q-learning": (dbs(1), Q, 1),
    "soft, best β, better\nthan Q-learning": (BEST, Q, -1),
    "DBS t² better\nthan soft, best β": (dbs(2), BEST, -1),
    "soft 10² worse\nthan Q-learning": (soft(2), Q, 1),
    "soft 10⁵ better\nthan Q-learning": (soft(5), Q, -1),
    "DBS t² better\nthan all others": (dbs(2), RIVAL, -1),
}
"""What the paper says of both figures: the first agent takes fewer (−1) or more (+1) steps than the second."""
FIGURE = 4
"""The first four are the ordering of the main text's figure."""
HEADLINE = next(iter(STATEMENTS))

Cell = tuple[str, str, float, float]
"""Layout, start, α, ε."""


@dataclass(frozen=True, slots=True)
class Found:
    """One statement in one cell."""

    effect: Effect
    """Cohen's d, above 0 if it is as the paper says."""
    p: float
    """After Holm over all cells and statements."""

    @property
    def outcome(self) -> str:
        """As the paper says, the reverse, or undecided."""
        if self.p > LEVEL:
            return "undecided"
        return "as the paper says" if self.effect.value > 0 else "reversed"


def means_of(cell: Cell, *, seeds: int, episodes: int, root: int) -> dict[str, Floats]:
    """Mean steps an episode of each seed, for every agent, the best soft one and the best rival of DBS t²."""
    layout, start, alpha, epsilon = cell
    setting = {**STARTS[start], "step_size": alpha, "epsilon": epsilon}
    found: dict[str, Floats] = {
        name: steps(layout, name, seeds=seeds, episodes=episodes, root=root, setting=setting).mean(axis=1)
        for name in AGENTS
    }

    def least(names: list[str]) -> Floats:
        return found[min(names, key=lambda name: float(found[name].mean()))]

    best = {BEST: least([soft(k) for k in SOFT]), RIVAL: least([name for name in AGENTS if name != dbs(2)])}
    return found | best


def judge(means: dict[Cell, dict[str, Floats]]) -> dict[tuple[Cell, str], Found]:
    """Every statement in every cell."""
    effects = {}
    for cell, of in means.items():
        for statement, (a, b, sign) in STATEMENTS.items():
            raw = cohens_d(of[a], of[b])
            low, high = sorted((sign * raw.low, sign * raw.high))
            effects[cell, statement] = Effect(sign * raw.value, low, high, raw.p_value)
    adjusted = holm([effect.p_value for effect in effects.values()])
    return {key: Found(effect, float(p)) for (key, effect), p in zip(effects.items(), adjusted, strict=True)}


def measure(
    rng: np.random.Generator, *, seeds: int, episodes: int = EPISODES, layouts: tuple[str, ...] = tuple(LAYOUTS),
    alphas: tuple[float, ...] = ALPHAS, epsilons: tuple[float, ...] = EPSILONS,
) -> Evidence:  # fmt: skip
    """Every agent under every setting."""
    root = root_of(rng)
    cells: list[Cell] = list(itertools.product(layouts, STARTS, alphas, epsilons))
    means = {cell: means_of(cell, seeds=seeds, episodes=episodes, root=root) for cell in each(cells)}
    found = judge(means)
    outcomes = {
        statement: {
            start: [found[cell, statement].outcome for cell in cells if cell[1] == start] for start in STARTS
        } for statement in STATEMENTS
    }  # fmt: skip
    whole = [
        cell for cell in cells if all(found[cell, s].outcome == "as the paper says" for s in list(STATEMENTS)[:FIGURE])
    ]
    right = [cell for cell in cells if all(found[cell, s].effect.value > 0 for s in list(STATEMENTS)[:FIGURE])]
    headline = [found[cell, HEADLINE].outcome for cell in cells]
    ties = tie_share(min(seeds, 20), min(episodes, 50), root)
    by_start = {
        start: mean_interval([found[cell, HEADLINE].effect.value for cell in cells if cell[1] == start])
        if len(cells) > len(STARTS) else None for start in STARTS
    }  # fmt: skip
    positive = [found[cell, HEADLINE] for cell in cells if cell[1] in POSITIVE]
    signed = [found[cell, HEADLINE] for cell in cells if cell[1] == "normal, sd 0.1" and cell[2] > 0.1]
    zeros = [found[cell, HEADLINE] for cell in cells if cell[1].startswith("zeros")]
    soft_better = sum(
        found[cell, "soft, best β, better\nthan Q-learning"].outcome == "as the paper says" for cell in cells
    )
    return Evidence(
        finding=(
            f"The whole ordering of the main figure holds beyond chance in {len(whole)} of {len(cells)} settings. Its first "
            "statement, that DBS with t² needs fewer steps than Q-learning, depends on Q_0: it is so where Q_0 is "
            "random and positive, where averaging takes back the optimism of the first episodes; with Q_0 = 0 the two are "
            "the same; and where Q_0 has both signs it is the reverse once α is large. Soft Q-learning with its best "
            f"β is better than Q-learning in {soft_better} settings."
        ),
        settings={
            "γ": DISCOUNT, "steps an episode at most": CAP, "episodes": episodes, "seeds of each agent in each cell": f"{seeds:,}",
            "Q_0 and ties": tuple(STARTS), "α": alphas, "ε": epsilons, "layouts": layouts, "cells": len(cells),
            "compared": "mean steps over all episodes, independent seeds; Cohen's d with exact 95 % intervals; p-values after "
            f"Holm over all {len(found)} comparisons, at {LEVEL:g}",
            "best β and best rival": "chosen in each cell on the seeds that are compared, which favours them",
        },
        checks=[
            Check(
                fact="there is a setting under which the main figure's whole ordering holds beyond chance", true=bool(whole),
                detail=f"in {len(whole)} of {len(cells)}; in the signs of the means alone in {len(right)}",
            ),
            Check(
                fact="wherever DBS t² and Q-learning differ beyond chance, DBS t² is better",
                true="reversed" not in headline and "as the paper says" in headline,
                detail=_counts(headline),
            ),
            Check(
                fact="with random Q_0 ≥ 0 DBS t² is better than Q-learning or undecided, never worse", of="aside",
                true=all(one.outcome != "reversed" for one in positive), detail=_counts([one.outcome for one in positive]),
            ),
            Check(
                fact="with Q_0 = 0 nothing is decided between them", of="aside",
                true=all(one.outcome == "undecided" for one in zeros),
                detail=f"|d| at most {max(abs(one.effect.value) for one in zeros):.2f}",
            ),
            Check(
                fact="with signed Q_0 and α ≥ 0.5 it is worse in the mean of each setting", of="aside",
                true=all(one.effect.value < 0 for one in signed), detail=_counts([one.outcome for one in signed]),
            ),
            Check(
                fact="the tie rule is no setting where Q_0 is drawn from a continuous distribution and α < 1", of="aside",
                true=ties == 1.0, detail=f"equal steps in {ties:.2%} of the episodes with either rule",
            ),
        ],
        tables=[
            Table(
                caption="Settings in which each statement comes out as the paper says / undecided / reversed, by Q_0",
                header=("statement", *STARTS),
                rows=[(s.replace("\n", " "), *(_triple(of[start]) for start in STARTS)) for s, of in outcomes.items()],
            ),
            Table(
                caption="Effect of DBS t² over Q-learning (d > 0: fewer steps), mean over the settings of one Q_0 with 95 % "
                "interval",
                header=("Q_0", "mean d"),
                rows=[(start, "one setting" if i is None else f"{i:+.2f}") for start, i in by_start.items()],
            ),
        ],
        figures=[
            Figure(
                name="q-learning-settings",
                caption="Cohen's d of each of the paper's statements under each setting: blue is as the paper says, red the "
                f"reverse, a dot where it is beyond chance (Holm, {seeds:,} seeds a cell and agent). With zeros and the lowest "
                "index hardly a run finds the apple, and there is nothing to compare.",
                alt="DBS t squared against Q-learning is blue in the rows of positive random start values, white for "
                "zeros and red for signed ones with large step sizes. Soft Q-learning against Q-learning is pale throughout.",
                draw=lambda: _draw(found, cells),
            )
        ],
        numbers={
            "cells": [
                {
                    "layout": cell[0], "start": cell[1], "alpha": cell[2], "epsilon": cell[3],
                    "mean steps": {name: float(means[cell][name].mean()) for name in AGENTS},
                    "d": {
                        s.replace("\n", " "): (f.effect.value, f.effect.low, f.effect.high, f.p)
                        for s, f in ((s, found[cell, s]) for s in STATEMENTS)
                    },
                }
                for cell in cells
            ]
        },
    )  # fmt: skip


def tie_share(seeds: int, episodes: int, root: int) -> float:
    """The share of episodes that take as many steps with either tie rule, from continuous Q_0, with the same numbers."""
    model, _ = optimum(LAYOUTS["no walls"], DISCOUNT)
    equal = []
    for name in (Q, dbs(2)):
        both = [
            learn(
                model,
                Learning(**{"discount": DISCOUNT, "episodes": episodes, **AGENTS[name], **STARTS[POSITIVE[0]], "ties": rule}),
                seeds=seeds, root=root,
            ).steps
            for rule in ("random", "lowest")
        ]  # fmt: skip
        equal.append(both[0] == both[1])
    return float(np.mean(equal))


def _counts(outcomes: list[str]) -> str:
    return ", ".join(f"{outcomes.count(kind)} {kind}" for kind in ("as the paper says", "undecided", "reversed"))


def _triple(outcomes: list[str]) -> str:
    return " / ".join(str(outcomes.count(kind)) for kind in ("as the paper says", "undecided", "reversed"))


def _draw(found: dict[tuple[Cell, str], Found], cells: list[Cell]) -> MatplotlibFigure:
    rows = list(dict.fromkeys((start, alpha) for _, start, alpha, _ in cells))
    columns = list(dict.fromkeys((layout, epsilon) for layout, _, _, epsilon in cells))
    layouts, alphas = list(dict.fromkeys(layout for layout, _ in columns)), {alpha for _, alpha in rows}
    figure, panels = canvas(len(STATEMENTS), width=1.28, height=4.6, sharey=True)
    image: Any = None
    for axes, statement in zip(panels, STATEMENTS, strict=True):
        table = [
            [found[(layout, start, alpha, epsilon), statement] for layout, epsilon in columns] for start, alpha in rows
        ]
        values = np.array([[one.effect.value for one in row] for row in table])
        image = axes.imshow(
            np.clip(values, -2, 2), cmap="RdBu", vmin=-2, vmax=2, aspect="auto", interpolation="nearest"
        )
        for (y, x), value in np.ndenumerate(values):
            if table[y][x].outcome != "undecided":
                axes.plot(x, y, "o", ms=2.2, color="#ffffff" if math.fabs(value) > 1 else "#000000")
        for y in range(len(alphas), len(rows), len(alphas)):
            axes.axhline(y - 0.5, color="#555555", lw=0.8)
        for x in range(len(columns) // len(layouts), len(columns), len(columns) // len(layouts)):
            axes.axvline(x - 0.5, color="#555555", lw=0.8)
        axes.set_title(statement, fontsize=7, loc="center")
        axes.set_xticks(range(len(columns)), [f"{epsilon:g}" for _, epsilon in columns], rotation=90, fontsize=6)
        axes.set_xlabel("    ".join(layouts), fontsize=6.5)
        axes.tick_params(length=0)
        axes.grid(visible=False)
    labels = [
        f"{start}   α = {alpha:g}" if i % len(alphas) == len(alphas) // 2 else f"α = {alpha:g}"
        for i, (start, alpha) in enumerate(rows)
    ]
    panels[0].set_yticks(range(len(rows)), labels, fontsize=6.5)
    panels[0].text(-0.06, -0.06, "ε", transform=panels[0].transAxes, fontsize=7, ha="right")
    bar = figure.colorbar(image, ax=panels, shrink=0.7, pad=0.01, extend="both")
    bar.set_label("Cohen's d, > 0 as the paper says", fontsize=7)
    bar.ax.tick_params(labelsize=6.5)
    drawn: MatplotlibFigure = figure
    return drawn


CLAIM = Claim(
    name="q-learning-settings", title="For which settings does the ordering of the Q-learning figures hold?",
    section="learning", where="Section 3.2.2, Figure 3, and the appendix",
    says="DBS Q-learning (t²) is better than soft Q-learning with its best parameter, that is better than Q-learning, and "
    "that better than DBS with p = 1. The text gives neither Q_0, α, ε, the tie rule nor the walls.",
    equations={"Algorithm 1": "dynaboltz.tabular.learn"},
    test=partial(measure, seeds=1000),
    full=partial(measure, seeds=3000, episodes=100, epsilons=(0.02, *EPSILONS)),
    small=partial(measure, seeds=24, episodes=50, layouts=("two walls",), alphas=(1.0,), epsilons=(0.3,)),
)  # fmt: skip
