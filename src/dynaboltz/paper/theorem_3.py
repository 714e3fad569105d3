"""Theorem 3: DBS Q-learning converges to Q* under its conditions. And what happens when one of them is broken."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaboltz.mdp import build_world
from dynaboltz.paper.claim import Check, Claim, Evidence, Table
from dynaboltz.paper.learners import root_of
from dynaboltz.paper.learning_worlds import action_values, distance, endless, noisy_garnet
from dynaboltz.paper.progress import each
from dynaboltz.reports.figures import COLOURS, Figure, canvas
from dynaboltz.reports.statistics import Interval, mean_interval
from dynaboltz.tabular import Learning, learn

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

    from dynaboltz.mdp import MDP
    from dynaboltz.paper.learners import Floats

DISCOUNT, MARKS, FIXED = 0.8, 41, 5
KEPT: dict[str, Mapping[str, Any]] = {
    "β_t = √t": {},
    "β_t = t²": {"summary": "boltzmann(beta=power(2))"},
    "max": {"summary": "hard_max"},
}
"""All conditions hold; max is Q-learning, for comparison."""
BROKEN: dict[str, Mapping[str, Any]] = {
    f"β = {FIXED}": {"summary": f"boltzmann(beta={FIXED})"},
    "α = 0.1": {"step_size": "constant(0.1)"},
    "α = n^−1.5": {"step_size": "visits(1.5)"},
    "ε = 0": {"epsilon": 0.0},
}
"""One condition broken each: β_t → ∞; Σα² < ∞, with noise; Σα = ∞; all pairs visited for ever."""
TITLES = {
    "β_t = √t": r"$\beta_t = \sqrt{t}$", "β_t = t²": r"$\beta_t = t^2$", f"β = {FIXED}": rf"$\beta = {FIXED}$",
    "α = n^−1.5": r"$\alpha = n^{-1.5}$", "α = 0.1": r"$\alpha = 0.1$", "ε = 0": r"$\epsilon = 0$",
}  # fmt: skip
BASE: Mapping[str, Any] = {
    "summary": "boltzmann(beta=power(0.5))", "clock": "step", "step_size": "visits(0.7)", "epsilon": 0.5,
    "discount": DISCOUNT, "episodes": 1,
}  # fmt: skip
"""β_t = √t is slow enough for the operator to matter while learning."""
FALLS, STAYS = -0.15, 2.0
"""Power of t of an error that falls; how many times the kept error one is that does not."""


def worlds() -> dict[str, MDP]:
    """Two worlds without end whose transitions and rewards are random."""
    return {
        "random MDP": noisy_garnet(seed=3),
        "slippery grid": endless(build_world("map(text='S..#/.#../...G', slip=0.3)")),
    }


def marks(steps: int) -> Any:
    """The steps at which errors are noted, evenly spread on a log scale."""
    return np.unique(np.geomspace(100, steps, MARKS).astype(np.int64))


def errors_of(model: MDP, changes: Mapping[str, Any], *, steps: int, seeds: int, root: int) -> Floats:
    """‖Q_t − Q*‖ at each mark, seeds × marks."""
    config = Learning(**{**BASE, "max_steps": steps, **changes})
    optimum = action_values(model, DISCOUNT)
    return learn(model, config, seeds=seeds, root=root, optimum=optimum, marks=marks(steps)).errors


def exponents(errors: Floats, at: Any) -> Interval:
    """The power of t by which the error changes over the last decade of steps: the mean over seeds with its interval."""
    last = at >= at[-1] / 10
    slopes = np.polyfit(np.log(at[last]), np.log(errors[:, last]).T, 1)[0]
    return mean_interval(slopes)


def measure(rng: np.random.Generator, *, seeds: int, steps: int) -> Evidence:
    """Learn under all conditions and without one of each."""
    root, at = root_of(rng), marks(steps)
    models = worlds()
    errors = {
        (world, name): errors_of(models[world], changes, steps=steps, seeds=seeds, root=root + place)
        for world, (place, (name, changes)) in each(list(itertools.product(models, enumerate((KEPT | BROKEN).items()))))
    }
    falls = {key: exponents(found, at) for key, found in errors.items()}
    last = {key: mean_interval(found[:, -1]) for key, found in errors.items()}
    fixed = f"β = {FIXED}"
    bias = {
        world: distance(action_values(model, DISCOUNT, f"boltzmann(beta={FIXED})"), action_values(model, DISCOUNT))
        for world, model in models.items()
    }
    base = {world: last[world, "β_t = √t"] for world in models}
    ratio = {(world, name): last[world, name].low / base[world].high for world in models for name in BROKEN}
    return Evidence(
        finding=(
            f"Under the theorem's conditions the error falls like a power of t, by t^{_span(falls, KEPT)}, on two worlds with "
            "random transitions and rewards, for β_t = √t as for max. Where one condition is broken it stops: a fixed β at "
            "the distance of its own fixed point, a constant α at the noise, summable α before it has learned, and ε = 0 "
            "at what was never tried. A measurement of finite length cannot show a limit; it can only fail to contradict "
            "it. The proof is a sketch that holds once the variance of F_t is bounded by K(1 + ‖Δ_t‖)², β_t > 0 depends on "
            "the past alone, and the step-size conditions hold almost surely."
        ),
        settings={
            "γ": DISCOUNT, "steps": steps, "seeds": seeds, "α": "n^−0.7 by visits of the pair", "ε": BASE["epsilon"],
            "Q_0": 0, "t in β_t": "steps", "worlds": "10 states, 4 actions, 3 next states, random rewards; and a 3 × 4 grid "
            "with slip 0.3, begun anew at the goal", "exponent": "of the error over the last decade of steps",
            "not broken": "bounded variance of rewards, which every finite model has",
        },
        checks=[
            Check(
                fact="with all conditions kept the error still falls in the last decade of steps",
                true=all(falls[world, name].high < FALLS for world in models for name in KEPT),
                detail="; ".join(f"{world}: " + ", ".join(f"{name} t^{falls[world, name]:.2f}" for name in KEPT) for world in models),
            ),
            *(
                Check(
                    fact=f"with {name} it ends above {STAYS:g} times the error with β_t = √t", of="ours",
                    true=all(ratio[world, name] >= STAYS for world in models),
                    detail="; ".join(f"{world}: {last[world, name]:.3f} against {base[world]:.4f}" for world in models),
                )
                for name in BROKEN
            ),
            Check(
                fact=f"with {fixed} it ends at the distance of the fixed point of T_β from Q*", of="ours",
                true=all(abs(last[world, fixed].value / bias[world] - 1) < 0.15 for world in models),
                detail="; ".join(f"{world}: {last[world, fixed]:.4f}, fixed point {bias[world]:.4f}" for world in models),
            ),
        ],
        tables=[
            Table(
                caption=f"‖Q_t − Q*‖ after {steps:,} steps, and the power of t by which it changes at the end, with 95 % intervals",
                header=("", *(f"{world}, {what}" for world in models for what in ("error", "power"))),
                rows=[
                    (name, *(f"{of[world, name]:{spec}}" for world in models for of, spec in ((last, ".3g"), (falls, ".2f"))))
                    for name in KEPT | BROKEN
                ],
            )
        ],
        figures=[
            Figure(
                name="theorem-3",
                caption=f"‖Q_t − Q*‖ against steps, geometric mean of {seeds} seeds with 95 % bands. Solid: all conditions hold. "
                "Broken lines: one does not. Grey: the distance of the fixed point of T_β.",
                alt="The curves with all conditions kept fall like straight lines on log-log axes; the others level off.",
                draw=lambda: _draw(errors, at, bias),
            )
        ],
        numbers={
            "steps": at, "errors": {f"{world}, {name}": np.exp(np.log(e).mean(axis=0)) for (world, name), e in errors.items()},
        },
    )  # fmt: skip


def _span(falls: dict[tuple[str, str], Interval], names: Mapping[str, Any]) -> str:
    values = [interval.value for (_, name), interval in falls.items() if name in names]
    return f"{max(values):.2f} to t^{min(values):.2f}".replace("-", "−")


def _draw(errors: dict[tuple[str, str], Floats], at: Any, bias: dict[str, float]) -> MatplotlibFigure:
    figure, panels = canvas(2, width=4.0, height=3.7, sharey=True)
    looks = dict(zip(KEPT, ((COLOURS[0], "-"), (COLOURS[5], "-"), ("#000000", "-")), strict=True))
    looks |= dict(
        zip(BROKEN, ((COLOURS[1], "--"), (COLOURS[3], "-."), (COLOURS[4], ":"), (COLOURS[2], "--")), strict=True)
    )
    for axes, world in zip(panels, bias, strict=True):
        for name, (colour, dashes) in looks.items():
            intervals = [mean_interval(column) for column in np.log(errors[world, name]).T]
            axes.plot(at, np.exp([i.value for i in intervals]), color=colour, ls=dashes, label=TITLES.get(name, name))
            axes.fill_between(
                at,
                *(np.exp([getattr(i, end) for i in intervals]) for end in ("low", "high")),
                color=colour,
                alpha=0.2,
                lw=0,
            )
        axes.axhline(bias[world], color="#999999", lw=0.8, zorder=0)
        axes.set(xscale="log", yscale="log", xlabel="steps", title=world)
    panels[0].set_ylabel(r"$\|Q_t - Q^*\|_\infty$")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=7, columnspacing=1.2)
    drawn: MatplotlibFigure = figure
    return drawn


CLAIM = Claim(
    name="theorem-3", title="Theorem 3: DBS Q-learning converges", section="learning",
    where="Section 3.2.1, Theorem 3; proof in Appendix D",
    says="DBS Q-learning converges to Q* if all pairs are visited infinitely often, Σα = ∞ and Σα² < ∞, β_t → ∞, and the "
    "variance of the rewards is bounded.",
    equations={
        "Eq. (q_update), DBS Q-learning": "dynaboltz.tabular.learn", "DBS operator": "dynaboltz.summaries.Dynamic",
    },
    test=partial(measure, seeds=24, steps=300_000), full=partial(measure, seeds=48, steps=3_000_000),
    small=partial(measure, seeds=10, steps=150_000),
)  # fmt: skip
