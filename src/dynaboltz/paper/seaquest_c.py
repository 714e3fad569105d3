"""The effect of a fixed c: on Seaquest by a study for a cluster, and here on a world whose optimum is known."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dynaboltz.paper.algorithm_2 import SYNC_EVERY, WARM_UP
from dynaboltz.paper.atari_runs import AGENTS, GAME, SEEDS, costs, tried
from dynaboltz.paper.c_bar import DISCOUNT, ROWS, WORLD, config, worth
from dynaboltz.paper.claim import Check, Claim, Evidence, Table
from dynaboltz.paper.deep_runs import train
from dynaboltz.reports.figures import Figure, canvas
from dynaboltz.reports.scores import paper_scores
from dynaboltz.reports.statistics import difference_interval, holm, mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

    from dynaboltz.deep import Agent

COEFFICIENTS = (10.0, 1.0, 0.1, 0.01, 0.001)
"""Those of the study: the paper's figure does not say its own."""
STEPS = 25_000_000
MAX = "DQN (c = ∞)"
ACTIONS = 18
GAPS = (0.1, 0.01)
"""Of the best action ahead of all others: how sharp is sharp enough."""
LEVEL = 0.05


def name_of(c: float) -> str:
    """What the agent is called."""
    return f"c = {c:g}"


def sharp(gap: float, share: float = 1e-3) -> float:
    """β at which the softmax of ``ACTIONS`` values is below the maximum by ``share`` of the ``gap``."""
    return math.log((ACTIONS - 1) / share) / gap


def steps_until(beta: float, c: float) -> float:
    """Agent steps of an Atari run until c·t² is β, t in target syncs."""
    return WARM_UP + max(0, math.ceil(math.sqrt(beta / c)) - 1) * SYNC_EVERY


def curves(c: float, seeds: list[int], steps: int) -> np.ndarray:
    """What the greedy policy is worth, in percent of the optimum: (seeds, rows) over training; at c = ∞ the target is the maximum."""
    summary = "hard_max" if math.isinf(c) else f"boltzmann(beta=power(2, c={c:g}))"
    found = []
    for seed in seeds:
        seen: list[float] = []

        def look(agent: Agent, seen: list[float] = seen) -> None:
            seen.append(worth(agent))

        train(
            config(summary=summary, c_learning="off"), f"mdp/{WORLD}", seed=seed, steps=steps, every=steps // ROWS,
            watch=look,
        )  # fmt: skip
        found.append(seen)
    return np.array(found)


def measure(rng: np.random.Generator, *, seeds: int, steps: int, seconds: float) -> Evidence:
    """Every c on the small world, what each makes of β on Atari, and the cost of the study."""
    roots = [int(seed) for seed in rng.integers(1 << 31, size=seeds)]
    agents = {MAX: math.inf} | {name_of(c): c for c in COEFFICIENTS}
    found = {name: curves(c, roots, steps) for name, c in agents.items()}
    areas = {name: values.mean(axis=1) for name, values in found.items()}
    effects = {name: difference_interval(areas[name], areas[MAX]) for name in found if name != MAX}
    p = dict(zip(effects, holm([effect.p_value for effect in effects.values()]), strict=True))
    beyond = [name for name in effects if p[name] <= LEVEL]
    table = paper_scores()
    row = table.games.index(GAME)
    learned, fixed, dqn = (float(table.scores(agent)[row]) for agent in ("dbs_dqn", "dbs_dqn_fixed_c", "dqn"))
    kinds = len(COEFFICIENTS) + 2
    shown = {name: AGENTS[name] for name in ("DBS-DQN, c = 1", "DBS-DQN")}
    said, cost = costs(
        {name: tried(agent, seed=roots[0], seconds=seconds) for name, agent in shown.items()},
        runs=kinds * SEEDS,
        steps=STEPS,
    )
    return Evidence(
        finding=(
            f"The figure names no values of c, and the table of the appendix has for {GAME} {learned:,.1f} with the learned c, below "
            f"{fixed:,.1f} with the fine-tuned one (DQN {dqn:,.1f}; these are after 50 million steps, the figure after 25). "
            f"With t in target syncs, c from {COEFFICIENTS[0]:g} to {COEFFICIENTS[-1]:g} keeps the softmax from being the maximum (18 actions, a gap of {GAPS[-1]:g}) for "
            f"{steps_until(sharp(GAPS[-1]), COEFFICIENTS[0]) / STEPS:.1%} to {min(1, steps_until(sharp(GAPS[-1]), COEFFICIENTS[-1]) / STEPS):.0%} of that training. On a small world with a known optimum "
            + (f"{', '.join(beyond)} differ from the maximum beyond chance. " if beyond else "no c differs from the maximum beyond chance. ")
            + f"{said}."
        ),
        settings={
            "game": GAME, "steps of a run": STEPS, "c": COEFFICIENTS, "runs of each": SEEDS, "small world": WORLD, "its γ": DISCOUNT,
            "its seeds": seeds, "its steps": steps, "its syncs": "every 100 steps", "differences": "Welch, p-values after Holm",
        },
        command="dynaboltz study studies/seaquest-c.toml --on slurm",
        checks=[
            Check(fact=f"DBS-DQN with each of the fixed c outperforms DQN on {GAME}", true=None, detail=f"{kinds * SEEDS} runs"),
            Check(fact="the learned c is best of all", true=None, detail="the same runs"),
            Check(
                fact=f"the learned c is above the fine-tuned one on {GAME} in the paper's table of scores", of="aside", true=learned > fixed,
                detail=f"{learned:,.1f} and {fixed:,.1f}",
            ),
            Check(
                fact="on the small world some fixed c differs from the maximum in the worth of its policies over training", of="aside", true=bool(beyond),
                detail="; ".join(f"{name}: {effect:.2g}, p = {p[name]:.2g}" for name, effect in effects.items()),
            ),
        ],
        tables=[
            Table(
                caption="On the small world: worth of the greedy policy in percent of the optimum, with 95 % intervals over seeds",
                header=("agent", "at the end", "mean over training", "β at the end"),
                rows=[
                    (
                        name, f"{mean_interval(values[:, -1]):.4g}", f"{mean_interval(areas[name]):.4g}",
                        "∞" if math.isinf(agents[name]) else f"{agents[name] * (steps // 100) ** 2:,.4g}",
                    )
                    for name, values in found.items()
                ],
            ),
            Table(
                caption="On Atari: steps until the softmax of 18 values is the maximum to a thousandth of the gap",
                header=("c", *(f"gap {gap:g}" for gap in GAPS)),
                rows=[(f"{c:g}", *(f"{steps_until(sharp(gap), c):,.0f}" for gap in GAPS)) for c in COEFFICIENTS],
            ),
            cost,
        ],
        figures=[
            Figure(
                name="seaquest-c", draw=lambda: _draw(found, steps),
                caption=f"Left: worth of the greedy policy on the small world, means of {seeds} seeds. Right: β = c·t² on Atari, t in target "
                f"syncs; above the dotted lines the softmax of {ACTIONS} values is the maximum where the best is ahead by {GAPS[0]:g} or {GAPS[1]:g}.",
                alt="Left, six rising curves. Right, parallel lines of β against steps on logarithmic axes, one for each c, crossing two "
                "levels: c of ten within the first half million steps, c of a thousandth near the end or not at all.",
            )
        ],
        numbers={"worth": found},
    )  # fmt: skip


def _draw(found: dict[str, np.ndarray], steps: int) -> MatplotlibFigure:
    figure, (left, right) = canvas(2, width=4.2, height=3.2)
    for i, (name, values) in enumerate(found.items()):
        colour = "#888888" if name == MAX else f"C{i - 1}"
        left.plot(np.arange(1, ROWS + 1) * steps / ROWS, values.mean(axis=0), color=colour, label=name)
    left.set(xlabel="steps", ylabel="worth, % of the optimum", xlim=(0, steps))
    left.legend(loc="lower right")
    syncs = np.unique(np.geomspace(1, STEPS // SYNC_EVERY, 200).astype(int))
    for i, c in enumerate(COEFFICIENTS):
        right.plot(
            (WARM_UP + (syncs - 1) * SYNC_EVERY) / 1e6, c * syncs.astype(float) ** 2, color=f"C{i}", label=name_of(c)
        )
    for gap in GAPS:
        right.axhline(sharp(gap), color="#888888", lw=0.9, ls=":")
    right.set(
        xscale="log", yscale="log", xlabel="million steps", ylabel="β", xlim=(0.05, STEPS / 1e6), ylim=(1e-3, 1e7)
    )
    drawn: MatplotlibFigure = figure
    return drawn


CLAIM = Claim(
    name="seaquest-c", title="Seaquest: the effect of a fixed c", section="atari", where="Section 4.2, Figure (effect of the coefficient c)",
    says="DBS-DQN with each of several fixed c, trained for 25 million steps, outperforms DQN on Seaquest; with the learned c it is best.",
    equations={"β_t(c) = c·t²": "dynaboltz.schedules.power", "a study": "dynaboltz.studies.read_study"},
    test=partial(measure, seeds=5, steps=4000, seconds=3.0), full=partial(measure, seeds=20, steps=20_000, seconds=3.0),
    small=partial(measure, seeds=3, steps=1200, seconds=0.5),
)  # fmt: skip
