"""Figure Q-learning: steps to the apple, episode by episode, for DBS Q-learning, soft Q-learning and Q-learning."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaboltz.paper.claim import Check, Claim, Evidence, Table
from dynaboltz.paper.learners import AGENTS, SOFT, Q, dbs, root_of, said, soft, steps
from dynaboltz.paper.learning_curves import draw_curves, draw_differences
from dynaboltz.paper.progress import each
from dynaboltz.paper.worlds import DISCOUNT, LAYOUTS, optimum
from dynaboltz.reports.figures import Figure
from dynaboltz.reports.statistics import cohens_d, holm, mean_interval
from dynaboltz.tabular import Learning, learn

if TYPE_CHECKING:
    from dynaboltz.paper.learning_curves import Runs
    from dynaboltz.reports.statistics import Effect

EPISODES = 300
LEVEL = 0.05
"""Of all comparisons of a claim together, after Holm."""
EARLY = 50


def gather(names: tuple[str, ...], seeds: int, episodes: int, root: int) -> Runs:
    """Steps of each episode for every layout and agent, seeds × episodes."""
    return {
        (layout, name): steps(layout, name, seeds=seeds, episodes=episodes, root=root)
        for layout, name in each(list(itertools.product(LAYOUTS, names)))
    }


def compare(runs: Runs, pairs: list[tuple[str, str]]) -> dict[tuple[str, str, str], tuple[Effect, float]]:
    """Effect of the first agent's mean steps over the second's, with its p-value after Holm over all of them."""
    keys = [(layout, *pair) for layout in LAYOUTS for pair in pairs]
    effects = [cohens_d(runs[layout, a].mean(axis=1), runs[layout, b].mean(axis=1)) for layout, a, b in keys]
    adjusted = holm([effect.p_value for effect in effects])
    return {key: (effect, float(p)) for key, effect, p in zip(keys, effects, adjusted, strict=True)}


def fewer(found: tuple[Effect, float]) -> bool:
    """Whether the first takes fewer steps, beyond chance."""
    effect, p = found
    return effect.value < 0 and p <= LEVEL


def more(found: tuple[Effect, float]) -> bool:
    """Whether the first takes more steps, beyond chance."""
    effect, p = found
    return effect.value > 0 and p <= LEVEL


def told(found: dict[tuple[str, str, str], tuple[Effect, float]], a: str, b: str) -> str:
    """The effects of a over b on every layout, for a reader."""
    return "; ".join(
        f"{layout}: d = {found[layout, a, b][0]:+.2f}, p {_probability(found[layout, a, b][1])}" for layout in LAYOUTS
    )


def _probability(p: float) -> str:
    return f"= {p:.2g}" if p > 0 else "< 1e-300"


def best_soft(runs: Runs, layout: str) -> str:
    """The best β of soft Q-learning, chosen as the paper does, on the seeds that are then compared."""
    return min((soft(k) for k in SOFT), key=lambda name: float(runs[layout, name].mean()))


def mean_table(runs: Runs, names: tuple[str, ...]) -> Table:
    """Mean steps an episode, over all episodes and over the first."""
    rows = [
        (name, *(f"{mean_interval(runs[layout, name][:, :last].mean(axis=1)):.1f}" for layout in LAYOUTS for last in (EARLY, None)))
        for name in names
    ]  # fmt: skip
    header = ("agent", *(f"{layout}, {part}" for layout in LAYOUTS for part in (f"first {EARLY}", "all")))
    return Table(caption="Mean steps an episode with 95 % intervals over seeds", header=header, rows=rows)


def settings(seeds: int, episodes: int) -> dict[str, Any]:
    """What the paper gives and what it does not."""
    return said() | {
        "episodes": episodes, "seeds": seeds, "layouts": tuple(LAYOUTS),
        "inferred (the text gives none of it)": "Q_0, α, ε, ties, episodes, seeds, walls",
        "comparisons": "Cohen's d of the mean steps over all episodes, independent seeds, p-values after Holm",
    }  # fmt: skip


def measure(rng: np.random.Generator, *, seeds: int, episodes: int = EPISODES) -> Evidence:
    """The agents of the figure on both layouts."""
    names = (Q, dbs(1), dbs(2), dbs(10), *(soft(k) for k in SOFT))
    runs = gather(names, seeds, episodes, root_of(rng))
    chosen = {layout: best_soft(runs, layout) for layout in LAYOUTS}
    best = "soft, best β"
    runs |= {(layout, best): runs[layout, chosen[layout]] for layout in LAYOUTS}
    found = compare(runs, [(dbs(2), Q), (dbs(1), Q), (dbs(10), Q), (best, Q), (dbs(2), best)])
    means = {key: float(value.mean()) for key, value in runs.items()}
    nearer = [
        abs(means[layout, dbs(10)] - means[layout, Q]) < abs(means[layout, dbs(2)] - means[layout, Q])
        for layout in LAYOUTS
    ]
    shown = {layout: (Q, dbs(1), dbs(2), dbs(10), chosen[layout]) for layout in LAYOUTS}
    same = agreement(min(seeds, 50), min(episodes, EARLY), root_of(rng))
    return Evidence(
        finding=(
            "With small positive random Q_0 the figure's first curve is real: DBS with t² needs fewer steps than "
            "Q-learning. The rest of the ordering is not: t¹ is not worse than Q-learning on both layouts, and no β of "
            "soft Q-learning is better than Q-learning beyond chance. With Q_0 = 0, the common reading of a silent "
            f"text, DBS t² and Q-learning take the same number of steps in {same:.1%} of the first episodes, given "
            "the same random numbers: there is nothing to compare."
        ),
        settings=settings(seeds, episodes) | {"soft Q-learning": ", ".join(f"{k}: {v}" for k, v in chosen.items())},
        checks=[
            Check(
                fact="DBS t² takes fewer steps than Q-learning", detail=told(found, dbs(2), Q),
                true=all(fewer(found[layout, dbs(2), Q]) for layout in LAYOUTS),
            ),
            Check(
                fact="DBS t¹ takes more steps than Q-learning", detail=told(found, dbs(1), Q),
                true=all(more(found[layout, dbs(1), Q]) for layout in LAYOUTS),
            ),
            Check(
                fact="t^10 is closer to Q-learning than t² is", true=all(nearer), detail=told(found, dbs(10), Q),
            ),
            Check(
                fact="soft Q-learning with its best β takes fewer steps than Q-learning", detail=told(found, best, Q),
                true=all(fewer(found[layout, best, Q]) for layout in LAYOUTS),
            ),
            Check(
                fact="DBS t² takes fewer steps than that", detail=told(found, dbs(2), best),
                true=all(fewer(found[layout, dbs(2), best]) for layout in LAYOUTS),
            ),
            Check(
                fact="with Q_0 = 0 and the same random numbers DBS t² and Q-learning do the same", of="aside",
                true=same > 0.9, detail=f"equal steps in {same:.2%} of the first {min(episodes, EARLY)} episodes",
            ),
        ],
        tables=[mean_table(runs, (*names, best))],
        figures=[
            Figure(
                name="figure-q-learning",
                caption=f"Steps to the apple against episodes, mean of {seeds} seeds with 95 % bands over windows of ten "
                "episodes. Q_0 uniform in [0, 0.1), α = 0.1, ε = 0.1; soft Q-learning with its best β.",
                alt="All curves fall within 100 to 200 episodes to the shortest way; DBS t squared is lowest early on, and "
                "the others overlap.",
                draw=lambda: draw_curves(runs, shown),
            ),
            Figure(
                name="figure-q-learning-difference",
                caption="The same curves minus that of Q-learning, with 95 % intervals of the difference.",
                alt="DBS t squared lies below zero until about episode 100, where the others' bands cover zero.",
                draw=lambda: draw_differences(runs, {layout: shown[layout][1:] for layout in LAYOUTS}),
            ),
        ],
        numbers={"mean steps": {f"{layout}, {name}": value for (layout, name), value in means.items()}},
    )  # fmt: skip


def agreement(seeds: int, episodes: int, root: int) -> float:
    """The share of episodes in which DBS t² and Q-learning take as many steps, from zeros, with common random numbers."""
    model, _ = optimum(LAYOUTS["no walls"], DISCOUNT)
    both = [
        learn(model, Learning(discount=DISCOUNT, episodes=episodes, **AGENTS[name]), seeds=seeds, root=root).steps
        for name in (Q, dbs(2))
    ]
    return float((both[0] == both[1]).mean())


CLAIM = Claim(
    name="figure-q-learning", title="Figure “Q-learning”: DBS, soft and plain Q-learning on the GridWorld",
    section="learning", where="Section 3.2.2, Figure 3",
    says="DBS Q-learning with the quadratic function achieves the best performance; with p = 1 it performs worse than "
    "Q-learning; when p increases further it performs closer to Q-learning. Soft Q-learning (best parameter) performs "
    "better than Q-learning, but underperforms DBS Q-learning (t²).",
    equations={"Algorithm 1": "dynaboltz.tabular.learn", "Eq. 6, boltz_β": "dynaboltz.operators.boltzmann"},
    test=partial(measure, seeds=300), full=partial(measure, seeds=1000), small=partial(measure, seeds=30, episodes=60),
)  # fmt: skip
