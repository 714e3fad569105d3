"""What the reference value c̄ does: it decides where c goes. The return of the policy has no part in it."""

from __future__ import annotations

import math
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaboltz.deep.config import AgentConfig
from dynaboltz.mdp import load
from dynaboltz.paper.claim import Check, Claim, Evidence, Table
from dynaboltz.paper.deep_runs import Trained, band, train
from dynaboltz.reports.figures import Figure, canvas
from dynaboltz.reports.statistics import Interval, mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

    from dynaboltz.deep import Agent

WORLD, DISCOUNT = "garnet(states=20, actions=4, branching=3, seed=0)", 0.9
C = 3.0
"""The first c. With p = 0 it is β itself, where the softmax is far from both the mean and the maximum."""
RATIOS = (1 / 16, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 16.0, math.inf)
"""c̄/c."""
POLICIES: dict[str, dict[str, Any]] = {
    "c̄ = c₀/4": {"c_bar": "fixed", "c_reference": C / 4},
    "c̄ = c₀": {"c_bar": "fixed"},
    "c̄ = 4c₀": {"c_bar": "fixed", "c_reference": 4 * C},
    "c̄ = c": {"c_bar": "current"},
    "c̄ = ∞": {"c_bar": "infinity"},
}
"""Name → settings; the paper gives c̄ no value and no rule."""
LOW, SAME, HIGH, CURRENT, INFINITE = POLICIES
SETTLED = 0.5
"""Last share of the updates whose meta-gradients are averaged: before, the values are far below every target."""
ROWS = 20


def config(p: float = 0.0, **settings: Any) -> AgentConfig:
    """DBS-DQN with learned c of β = c·t^p; all else as in the preset, but small."""
    return AgentConfig(**{
        "summary": f"boltzmann(beta=power({p:g}, c={C:g}))", "c_learning": "corrected", "discount": DISCOUNT,
        "hidden": (32,), "replay_start_steps": 200, "replay_capacity_steps": 20_000, "target_period": "100 steps",
        "epsilon": "0.2", **settings,
    })  # fmt: skip


def force(ratio: float, seed: int, steps: int) -> float:
    """The mean of ∂J′/∂ψ late in training at c̄ = ratio·c, while c is held where it is."""
    bar: dict[str, Any] = {"c_bar": "infinity"} if math.isinf(ratio) else {"c_bar": "fixed", "c_reference": C * ratio}
    held = config(**bar, c_learning_rate=1e-12, c_optimiser="sgd")
    found = train(held, f"mdp/{WORLD}", seed=seed, steps=steps, every=round(steps * SETTLED))
    return float(found.rows[-1]["meta_gradient"])


@cache
def dynamics() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The world as P (states, actions, states), r (states, actions) and the optimal state values."""
    model = load(WORLD)
    rows = np.repeat(np.arange(model.n_rows), np.diff(model.row_ptr))
    chances = np.zeros((model.n_states, model.n_actions, model.n_states))
    np.add.at(chances, (model.row_states()[rows], model.action[rows], model.next_state), model.probability)
    rewards = np.zeros(chances.shape[:2])
    rewards[model.row_states(), model.action] = model.reward
    values = np.zeros(model.n_states)
    for _ in range(500):
        values = (rewards + DISCOUNT * chances @ values).max(axis=1)
    return chances, rewards, values


def worth(agent: Agent) -> float:
    """The exact value of the greedy policy in percent of the optimal one, averaged over all states."""
    chances, rewards, best = dynamics()
    states = np.arange(best.size)
    player = agent.player(best.size, epsilon=0.0, rng=np.random.default_rng(0))
    player.begin(states)
    chosen = player.values().argmax(axis=1)
    values = np.linalg.solve(np.eye(best.size) - DISCOUNT * chances[states, chosen], rewards[states, chosen])
    return float(100 * values.mean() / best.mean())


def factor(first: list[Trained], second: list[Trained]) -> Interval:
    """How many times larger the last c of the first runs is than that of the second; paired by seed."""
    logs = [math.log(a.column("c")[-1] / b.column("c")[-1]) for a, b in zip(first, second, strict=True)]
    found = mean_interval(logs)
    return Interval(*(math.exp(x) for x in (found.value, found.low, found.high)))


def path(run: Trained) -> np.ndarray:
    """The coefficient c at every row; before the first update it is where it began."""
    found: np.ndarray = np.nan_to_num(run.column("c"), nan=C)
    return found


def final(runs: list[Trained], name: str = "c") -> Interval:
    """The last value of a measurement over seeds."""
    return mean_interval([run.column(name)[-1] for run in runs])


def measure(rng: np.random.Generator, *, seeds: int, steps: int, force_steps: int) -> Evidence:
    """The force on ψ against c̄/c, and where c goes under each policy."""
    roots = [int(seed) for seed in rng.integers(1 << 31, size=seeds)]
    forces = {ratio: [force(ratio, seed, force_steps) for seed in roots] for ratio in RATIOS}
    pulls = {ratio: mean_interval(values) for ratio, values in forces.items()}
    every = steps // ROWS
    runs = {
        name: [train(config(**policy), f"mdp/{WORLD}", seed=seed, steps=steps, every=every) for seed in roots]
        for name, policy in POLICIES.items()
    }
    squared = {
        name: [
            train(config(2, **POLICIES[name]), f"mdp/{WORLD}", seed=seed, steps=steps, every=every) for seed in roots
        ]
        for name in (LOW, HIGH, INFINITE)
    }
    worths = {name: [worth(run.agent) for run in found] for name, found in runs.items()}
    ends = {name: final(found) for name, found in runs.items()}
    spread = factor(runs[INFINITE], runs[LOW])
    gained = mean_interval(np.subtract(worths[INFINITE], worths[LOW]))
    same = mean_interval(np.divide(forces[1.0], np.abs(forces[RATIOS[0]])))
    return Evidence(
        finding=(
            f"c moves towards c̄. Held at c, its mean meta-gradient is positive (c is pushed down) for c̄ below c and negative (up) for c̄ above; "
            f"at c̄ = c it is {abs(same.value):.0%} of what it is at c̄ = c/16. Let go, c ends at {ends[LOW]:.3g}, {ends[SAME]:.3g} and "
            f"{ends[HIGH]:.3g} where c̄ is {C / 4:g}, {C:g} and {4 * C:g}, at {ends[CURRENT]:.3g} where c̄ is c itself and at "
            f"{ends[INFINITE]:.3g}, still rising, where it is ∞: a factor of {spread.value:.0f} between policies, made by c̄ alone. "
            "The meta-objective asks whether values lie below the target under c̄; it never sees the return, and the greedy policies "
            f"are worth {np.mean(worths[LOW]):.1f} and {np.mean(worths[INFINITE]):.1f} % of the optimum at the two ends. So c̄ is the parameter that must "
            "be tuned instead of c. With β = c·t² it matters less, because c stays where it is once β is large."
        ),
        settings={
            "world": WORLD, "γ": DISCOUNT, "seeds": seeds, "steps": steps, "steps with c held": force_steps, "c₀": C,
            "β": "c (p = 0), so that time does not blur the picture; and c·t², t in syncs", "meta-optimiser": "Adam, 0.001",
            "agent": "DQN, one hidden layer of 32, Adam 0.001, a sync every 100 steps, ε = 0.2",
        },
        checks=[
            Check(
                fact="learning c requires no tuning: it ends at the same c whatever the reference",
                true=spread.low <= 1 <= spread.high, detail=f"at c̄ = ∞ c is {spread:.3g} times that at c̄ = c₀/4",
            ),
            Check(
                fact="∂J′/∂ψ is positive at every c̄ below c and negative at every c̄ above it", of="aside",
                true=all(pulls[r].low > 0 for r in RATIOS if r < 1) and all(pulls[r].high < 0 for r in RATIOS if r > 1),
                detail="; ".join(f"c̄/c = {r:.3g}: {pulls[r]:.2g}" for r in RATIOS),
            ),
            Check(
                fact="a c that is learned moves towards its c̄: down, hardly at all and up", of="aside",
                true=ends[LOW].high < 0.8 * C and 0.8 * C < ends[SAME].value < 1.25 * C and ends[HIGH].low > 1.25 * C,
                detail=f"{ends[LOW]:.3g}; {ends[SAME]:.3g}; {ends[HIGH]:.3g} from c₀ = {C:g}",
            ),
            Check(
                fact="with c̄ = ∞ it rises above what it is with c̄ = c₀", of="aside", true=ends[INFINITE].low > ends[SAME].high,
                detail=f"{ends[INFINITE]:.3g}",
            ),
            Check(
                fact="the policies found at the two ends differ in value, beyond chance", of="aside",
                true=gained.excludes(0), detail=f"c̄ = ∞ minus c̄ = c₀/4: {gained:.2g} points of the optimum, paired",
            ),
        ],
        tables=[
            Table(
                caption="Where c ends, and what the greedy policy is worth in percent of the optimum, with 95 % intervals over seeds",
                header=("policy", "c, β = c", "worth, %", "c, β = c·t²", "its β"),
                rows=[
                    (
                        name, f"{ends[name]:.3g}", f"{mean_interval(worths[name]):.4g}",
                        *((f"{final(squared[name]):.3g}", f"{final(squared[name], 'beta'):.3g}") if name in squared else ("–", "–")),
                    )
                    for name in POLICIES
                ],
            )
        ],
        figures=[
            Figure(
                name="c-bar", draw=lambda: _draw(pulls, runs, steps),
                caption=f"Left: the mean meta-gradient of ψ = log c against c̄/c, with c held; above 0 it pushes c down. Right: c against "
                f"steps under five policies of c̄ (dotted: their values), all from c₀ = {C:g}. Means of {seeds} seeds with 95 % intervals.",
                alt="Left, the meta-gradient falls from positive to negative and crosses zero where c̄ equals c. Right, the curves fan out: "
                "with a fixed c̄ each ends at its own, with c̄ = c slightly above the start, with infinity it keeps rising.",
            )
        ],
        numbers={
            "meta-gradient": {f"{ratio:g}": values for ratio, values in forces.items()},
            "c": {name: [path(run) for run in found] for name, found in runs.items()},
            "c with t²": {name: [path(run) for run in found] for name, found in squared.items()},
            "worth": worths,
        },
    )  # fmt: skip


def _draw(pulls: dict[float, Interval], runs: dict[str, list[Trained]], steps: int) -> MatplotlibFigure:
    figure, (left, right) = canvas(2, width=4.2, height=3.2)
    finite = [ratio for ratio in pulls if not math.isinf(ratio)]
    at = [*finite, finite[-1] * 4]
    shown = [*(pulls[ratio] for ratio in finite), pulls[math.inf]]
    reaches = [[x.value - x.low for x in shown], [x.high - x.value for x in shown]]
    left.errorbar(at, [1e4 * x.value for x in shown], 1e4 * np.array(reaches), fmt="o-", ms=4, lw=1.2)
    left.axhline(0, color="#888888", lw=0.8)
    left.axvline(1, color="#888888", lw=0.8, ls=":")
    left.set_xscale("log")
    left.set_xticks([1 / 16, 1 / 4, 1, 4, 16, at[-1]], ["1/16", "1/4", "1", "4", "16", "∞"])
    left.minorticks_off()
    left.set(xlabel="c̄/c", ylabel="mean ∂J′/∂ψ, in 10⁻⁴")
    for i, (name, found) in enumerate(runs.items()):
        mean, low, high = band(np.array([path(run) for run in found]))
        time = [0, *(row["step"] for row in found[0].rows)]
        right.plot(time, [C, *mean], color=f"C{i}", label=name)
        right.fill_between(time, [C, *low], [C, *high], color=f"C{i}", alpha=0.2, lw=0)
        bar = {LOW: C / 4, SAME: C, HIGH: 4 * C}.get(name)
        if bar:
            right.axhline(bar, color=f"C{i}", lw=0.8, ls=":")
    right.set(yscale="log", xlabel="steps", ylabel="c", xlim=(0, steps))
    levels = [0.75, 1.5, 3, 6, 12, 24]
    right.set_yticks(levels, [f"{level:g}" for level in levels])
    right.minorticks_off()
    right.legend(ncols=2, loc="lower left")
    drawn: MatplotlibFigure = figure
    return drawn


CLAIM = Claim(
    name="c-bar", title="The reference value c̄", section="deep", where="Section 4: J(τ′, θ′, c̄)",
    says="c is updated by the gradient of the squared error on subsequent experience under the reference value c̄; the DBS operator is "
    "effective and efficient as it does not require tuning.",
    equations={"c′, J(τ′, θ′, c̄)": "dynaboltz.deep.meta.Coefficient", "Algorithm 2": "dynaboltz.deep.Agent"},
    test=partial(measure, seeds=5, steps=4000, force_steps=1500),
    full=partial(measure, seeds=20, steps=20_000, force_steps=10_000),
    small=partial(measure, seeds=3, steps=1200, force_steps=1000),
)  # fmt: skip
