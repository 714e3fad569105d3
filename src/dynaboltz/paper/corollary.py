"""The Corollary: the error of value iteration with a fixed β. Its limit need not exist; its bound can be sharpened."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from dynaboltz.operators import lipschitz_constant
from dynaboltz.paper.claim import Check, Claim, Evidence, Table
from dynaboltz.reports.figures import Figure, canvas
from dynaboltz.theory import (
    contraction_factor,
    corollary_printed,
    corollary_sharp,
    find_period,
    iterate,
    optimal_values,
    tight_bandit,
    two_cycle,
)
from dynaboltz.theory.examples import World

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

WORLDS, SWEEPS, TAIL = 200, 400, 50
STATES, ACTIONS = (2, 10), (2, 6)
CYCLE_BETAS = (1.0, 3.0, 6.0)
BANDIT = (5.0, 2, 0.9)
ROUNDING = 1e-9


def test(rng: np.random.Generator) -> Evidence:
    """Iterate with fixed β on random worlds, on the two-cycle, and on the bandit that attains the sharp bound."""
    points, above_printed, above_sharp, not_contracting = [], 0, 0, 0
    for _ in range(WORLDS):
        world, beta = _random_world(rng), float(10 ** rng.uniform(-1, 2))
        values = iterate(world, [beta] * SWEEPS)
        best = optimal_values(world)
        error = max(float(np.abs(v - best).max()) for v in values[-TAIL:])
        m, reward_range = world.rewards.shape[1], float(np.ptp(world.rewards))
        printed = corollary_printed(beta, m, world.discount, float(np.abs(world.rewards).max()))
        sharp = corollary_sharp(beta, m, world.discount, reward_range)
        points.append((beta, error / printed, error / sharp))
        above_printed += error > printed + ROUNDING
        above_sharp += error > sharp + ROUNDING
        if contraction_factor(world.discount, m) < 1:
            steps = [float(np.abs(b - a).max()) for a, b in itertools.pairwise(values)]
            not_contracting += any(
                later > contraction_factor(world.discount, m) * earlier + ROUNDING
                for earlier, later in itertools.pairwise(steps)
            )
    periods = {beta: find_period(iterate(two_cycle(), [beta] * 2000)) for beta in CYCLE_BETAS}
    orbit = [sorted(v.tolist()) for v in iterate(two_cycle(), [3.0] * 2000)[-2:]]
    dynamic = float(np.abs(iterate(two_cycle(), [float(t) ** 2 for t in range(1, 2001)])[-1] - 20.0).max())
    bandit_error = -iterate(tight_bandit(*BANDIT), [BANDIT[0]] * 600)[-1].item()
    attained = bandit_error / corollary_sharp(*BANDIT, float(np.ptp(tight_bandit(*BANDIT).rewards)))
    largest = {m: 1 / lipschitz_constant(m) for m in (2, 3, 4, 6, 9, 18)}
    return Evidence(
        finding=(
            f"The bound holds on all {WORLDS} random worlds, but the limit in it need not exist: on two states with the "
            "actions “switch” (reward 1) and “stay” (0), γ = 0.95, β = 3, the iterates alternate for ever, so it must "
            "read limsup. Its second term is larger than the trivial bound (r_max − r_min)/(1−γ). Both terms are "
            "replaced by min{W((m−1)/e)/(β(1−γ)), (r_max − r_min)/(1−γ)}, which a bandit attains. New: boltz_β has a "
            "sup-norm Lipschitz constant L(m) that does not depend on β, so for γ < 1/L(m) value iteration contracts "
            "for every fixed β and the limit exists."
        ),
        settings={
            "worlds": WORLDS,
            "states": f"{STATES[0]} to {STATES[1]}",
            "actions": f"{ACTIONS[0]} to {ACTIONS[1]}",
            "sweeps": SWEEPS,
            "limsup": f"largest error of the last {TAIL} sweeps",
            "beta": "0.1 to 100, log-uniform",
        },
        checks=[
            Check(
                fact="the limit exists for every fixed β",
                true=all(p == 1 for p in periods.values()),
                detail=", ".join(f"β = {b:g}: period {p}" for b, p in periods.items()) + f"; orbit {_round(orbit)}",
            ),
            Check(
                fact="the error ends within the printed bound",
                true=above_printed == 0,
                detail=f"{above_printed} of {WORLDS} worlds above; largest share {max(p[1] for p in points):.2f}",
            ),
            Check(
                fact="it ends within the sharp bound",
                of="ours",
                true=above_sharp == 0,
                detail=f"{above_sharp} of {WORLDS} worlds above; largest share {max(p[2] for p in points):.2f}",
            ),
            Check(
                fact="the sharp bound is attained",
                of="ours",
                true=abs(attained - 1) < 1e-6,
                detail=f"bandit with m = {BANDIT[1]}, β = {BANDIT[0]:g}, γ = {BANDIT[2]}: {bandit_error:.6f}, {attained:.7f} of the bound",
            ),
            Check(
                fact="steps shrink by γ·L(m) wherever that is below 1",
                of="ours",
                true=not_contracting == 0,
                detail=f"{not_contracting} worlds with a longer step",
            ),
            Check(
                fact="on the two-cycle β_t = t² converges to V*",
                of="ours",
                true=dynamic < 1e-4,
                detail=f"error {dynamic:.1e}",
            ),
        ],
        tables=[
            Table(
                caption="Discounts below which value iteration with any fixed β contracts",
                header=("m", "L(m)", "1/L(m)"),
                rows=[(m, lipschitz_constant(m), discount) for m, discount in largest.items()],
            )
        ],
        figures=[
            Figure(
                name="corollary-two-cycle",
                caption="Error of value iteration on the two-cycle (γ = 0.95, V_0 = (0.1, 0)). β = 3 alternates for ever; "
                "the dynamic β_t = t² converges.",
                alt="For beta 1 and 6 the error levels off; for beta 3 it levels off while the two states keep swapping; "
                "for beta t squared it falls to rounding.",
                draw=_draw_cycle,
            ),
            Figure(
                name="corollary-bounds",
                caption=f"Error after {SWEEPS} sweeps on {WORLDS} random worlds, as a share of each bound.",
                alt="All points lie below 1; shares of the sharp bound are about twice those of the printed one.",
                draw=lambda: _draw_points(points),
            ),
        ],
        numbers={
            "points": {
                "beta": [p[0] for p in points],
                "of printed": [p[1] for p in points],
                "of sharp": [p[2] for p in points],
            }
        },
    )


def _random_world(rng: np.random.Generator) -> World:
    states, actions = int(rng.integers(*STATES, endpoint=True)), int(rng.integers(*ACTIONS, endpoint=True))
    transitions = rng.dirichlet(np.full(states, 0.3), size=(states, actions))
    rewards = rng.normal(size=(states, actions)) * 10 ** rng.uniform(-1, 1)
    discount = float(rng.choice([0.5, 0.7, 0.9, 0.95]))
    return World(rewards, transitions, discount, np.zeros(states))


def _round(values: list[list[float]]) -> str:
    return " and ".join("(" + ", ".join(f"{v:.3f}" for v in pair) + ")" for pair in values[:1])


def _draw_cycle() -> MatplotlibFigure:
    figure, (left, right) = canvas(2, width=4.2, height=3.1)
    best = optimal_values(two_cycle())
    runs = {f"β = {beta:g}": [beta] * 200 for beta in CYCLE_BETAS} | {
        "β_t = t²": [float(t) ** 2 for t in range(1, 201)]
    }
    for label, betas in runs.items():
        errors = [max(float(np.abs(v - best).max()), 1e-12) for v in iterate(two_cycle(), betas)]
        left.plot(errors, label=label)
    left.set(yscale="log", xlabel="sweep", ylabel=r"$\|V_t - V^*\|_\infty$", title="error")
    left.legend()
    values = np.array(iterate(two_cycle(), [3.0] * 200)[-12:])
    right.plot(values[:, 0], "o-", label="state 1")
    right.plot(values[:, 1], "s-", label="state 2")
    right.set(xlabel="last twelve sweeps", ylabel=r"$V_t$", title="β = 3: the states swap for ever", ylim=(18.6, 20.2))
    right.legend(loc="upper right", ncols=2)
    drawn: MatplotlibFigure = figure
    return drawn


def _draw_points(points: list[tuple[float, float, float]]) -> MatplotlibFigure:
    figure, axes = canvas()
    betas, printed, sharp = np.array(points).T
    axes.plot(betas, printed, "o", label="of the printed bound", mfc="none")
    axes.plot(betas, sharp, "^", label="of the sharp bound", mfc="none")
    axes.axhline(1, color="#777777", lw=0.8)
    axes.set(xscale="log", yscale="log", xlabel="β", ylabel="share of the bound", ylim=(1e-6, 2))
    axes.legend(loc="lower left")
    drawn: MatplotlibFigure = figure
    return drawn


CLAIM = Claim(
    name="corollary",
    title="Corollary: error bound for a fixed β",
    section="theory",
    where="Section 3.1.1, Corollary 1; proof in Appendix C",
    says="For any fixed β, lim ‖V_t − V*‖ ≤ min{log|A|/(β(1−γ)), 2R/(1−γ)²}.",
    equations={
        "Corollary as printed": "dynaboltz.theory.corollary_printed",
        "Corollary, sharp (ours)": "dynaboltz.theory.corollary_sharp",
        "contraction certificate (ours)": "dynaboltz.theory.contraction_certificate",
    },
    test=test,
)
