"""DBS in Rainbow, which the paper leaves to future work: what the backup is there, and a first comparison."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaboltz.deep.presets import PRESETS
from dynaboltz.operators import boltzmann
from dynaboltz.paper.algorithm_2 import BINS, CAP, EPISODES, LEVEL, WORLD, early, random_return
from dynaboltz.paper.algorithm_2_atari import OWN
from dynaboltz.paper.claim import Check, Claim, Evidence, Table
from dynaboltz.paper.deep_runs import Trained, band, binned, greedy_return, said, train
from dynaboltz.paper.progress import each
from dynaboltz.reports.figures import Figure, canvas
from dynaboltz.reports.statistics import difference_interval, holm, mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

    from dynaboltz.deep import AgentConfig

RAINBOW, DBS = "Rainbow", "DBS in Rainbow"
AGENTS = {RAINBOW: "rainbow", DBS: "dbs-rainbow"}
SMALL: dict[str, Any] = {"replay_start_steps": 200, "replay_capacity_steps": 20_000, "target_period": "200 steps"}
"""The presets are for longer runs; the same for both."""
PARTS = ("double", "prioritised", "duelling", "n_step", "noisy", "atoms", "value_range")
ROWS, ACTIONS, CLOSE = 64, 4, 1e-9


def config(agent: str) -> AgentConfig:
    """One of the two agents at the size of this claim."""
    return PRESETS[AGENTS[agent]](**SMALL)


def apart() -> set[str]:
    """Settings in which the two agents differ, at the size of Atari."""
    one, other = (dataclasses.asdict(PRESETS[f"{name}-nature"]()) for name in AGENTS.values())
    return {name for name in one if one[name] != other[name]}


def mean_of_backup(rng: np.random.Generator, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """Means of the backed up distributions of random transitions, and r + γ boltz_β of the means; values (ROWS,)."""
    from dynaboltz.deep.batch import Batch
    from dynaboltz.deep.distributions import Distributions
    from dynaboltz.envs import Spec

    made = dataclasses.replace(
        config(DBS), batch_size=ROWS, dtype="float64", double=False, summary=f"boltzmann(beta={beta:g})",
        c_learning="off",
    )  # fmt: skip
    targets = Distributions(made, ACTIONS)
    batch = Batch.empty(ROWS, Spec(shape=(1,), dtype="float32", n_actions=ACTIONS))
    batch.action[:] = rng.integers(0, ACTIONS, ROWS)
    batch.reward[:] = rng.normal(size=ROWS)
    batch.discount[:] = made.discount**made.n_step * (rng.random(ROWS) >= 0.1)
    logits = 3 * rng.normal(size=(ROWS, ACTIONS, made.atoms))
    following = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    following[..., [0, -1]] = 0  # what lies at the ends of the range may be cut there, which moves the mean
    following /= following.sum(axis=-1, keepdims=True)
    targets(batch, np.zeros_like(following), following, beta=beta)
    means = following @ targets.support
    return targets.target @ targets.support, batch.reward + batch.discount * boltzmann(means, beta)


def measure(rng: np.random.Generator, *, seeds: int, steps: int) -> Evidence:
    """The backup in numbers, then both agents on a small world."""
    errors = {}
    for beta in (0.1, 1.0, 10.0):
        found, wanted = mean_of_backup(rng, beta)
        errors[beta] = float(np.abs(found - wanted).max())
    roots = [int(seed) for seed in rng.integers(1 << 31, size=seeds)]
    runs: dict[str, list[Trained]] = {name: [] for name in AGENTS}
    for name, seed in each([(name, seed) for name in AGENTS for seed in roots]):
        runs[name].append(train(config(name), WORLD, seed=seed, steps=steps, every=steps // BINS))
    scores = {
        name: np.array([
            greedy_return(run.agent, WORLD, seed=seed, episodes=EPISODES) for run, seed in zip(found, roots, strict=True)
        ])
        for name, found in runs.items()
    }  # fmt: skip
    edges = np.linspace(0, steps, BINS + 1)
    curves = {name: np.array([binned(run.episodes, edges) for run in found]) for name, found in runs.items()}
    effects = {
        "greedy return at the end": difference_interval(scores[DBS], scores[RAINBOW]),
        "return of training episodes": difference_interval(curves[DBS].mean(axis=1), curves[RAINBOW].mean(axis=1)),
    }
    p = dict(zip(effects, holm([effect.p_value for effect in effects.values()]), strict=True))
    beyond = [name for name in effects if p[name] <= LEVEL]
    ends = {name: mean_interval(values) for name, values in scores.items()}
    random = random_return(roots[0])
    late = curves[DBS][:, -BINS // 4 :].mean(axis=1)
    first, last = early(runs[DBS], "saturated"), float(np.mean([run.column("saturated")[-1] for run in runs[DBS]]))
    differs = apart()
    return Evidence(
        finding=(
            "It can be done by a setting: the distribution that is backed up is the mixture of those of all next actions, with the Boltzmann "
            "weights of their means (ours; the paper says no more than that it is promising). Its mean is the target of DBS. "
            f"On {WORLD} it learns like Rainbow: {ends[DBS]:.0f} against {ends[RAINBOW]:.0f} after {steps:,} steps, {random.value:.0f} at random; "
            + (f"beyond chance differ: {', '.join(beyond)}" if beyond else f"no difference is found over {seeds} seeds")
            + f". The mixture is the one best action in {first:.0%} of next states at the first updates and in {last:.0%} at the end, where both are one agent."
        ),
        settings={
            "world": WORLD, "seeds": seeds, "steps": steps, "greedy episodes a seed": EPISODES, "t": "target syncs", "c": "learned, c₀ = c̄ = 1",
            "differences": "Welch, p-values after Holm over two", **said(config(DBS), (*PARTS, "hidden", "target_period", "learning_rate")),
        },
        checks=[
            Check(
                fact="the DBS operator can be put into Rainbow, all else as it is", true=differs == OWN,
                detail=f"the agents for Atari differ in {', '.join(sorted(differs))}",
            ),
            Check(
                fact="the agent learns with it: every run is above random in the last quarter of training", true=late.min() > random.high,
                detail=f"{late.min():.0f} or more against {random:.3g} at random; at most {CAP}",
            ),
            Check(
                fact="the mean of what it backs up is r + γ boltz_β of the means", of="ours", true=max(errors.values()) < CLOSE,
                detail=f"largest difference {max(errors.values()):.1e}, β from {min(errors):g} to {max(errors):g}",
            ),
            Check(
                fact="it differs from Rainbow on this world, beyond chance", of="aside", true=bool(beyond),
                detail="; ".join(f"{name}: {effect:.3g}, p = {p[name]:.2g}" for name, effect in effects.items()),
            ),
        ],
        tables=[
            Table(
                caption=f"Returns on {WORLD}, with 95 % intervals over {seeds} seeds", header=("agent", "greedy, at the end", "mean over training"),
                rows=[(name, f"{ends[name]:.4g}", f"{mean_interval(curves[name].mean(axis=1)):.4g}") for name in AGENTS],
            )
        ],
        figures=[
            Figure(
                name="rainbow", draw=lambda: _draw(curves, edges),
                caption=f"Return of training episodes on {WORLD}: means of {seeds} seeds with 95 % bands.",
                alt="Two rising curves whose bands overlap.",
            )
        ],
        numbers={"greedy return": scores, "curves": curves, "edges": edges, "error of the mean": errors},
    )  # fmt: skip


def _draw(curves: dict[str, np.ndarray], edges: np.ndarray) -> MatplotlibFigure:
    figure, axes = canvas()
    middles = (edges[1:] + edges[:-1]) / 2
    for i, (name, curve) in enumerate(curves.items()):
        mean, low, high = band(curve)
        axes.plot(middles, mean, color=f"C{i}", label=name)
        axes.fill_between(middles, np.maximum(low, 0), high, color=f"C{i}", alpha=0.18, lw=0)
    axes.set(xlabel="steps", ylabel="return of training episodes", ylim=(0, None), xlim=(0, edges[-1]))
    axes.legend(loc="upper left")
    drawn: MatplotlibFigure = figure
    return drawn


CLAIM = Claim(
    name="rainbow", title="DBS in Rainbow", section="deep", where="Section 6 (Conclusion), future work",
    says="It is promising to apply the DBS operator to other state-of-the-art DQN-based algorithms, such as Rainbow.",
    equations={"its backup": "dynaboltz.deep.distributions.Distributions", "the agent": "dynaboltz.deep.presets.dbs_rainbow"},
    test=partial(measure, seeds=5, steps=2500), full=partial(measure, seeds=20, steps=20_000),
    small=partial(measure, seeds=3, steps=1200),
)  # fmt: skip
