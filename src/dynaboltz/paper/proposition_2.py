"""Proposition 2: boltz ≤ max ≤ log-sum-exp. And where mellowmax, which the paper leaves out, belongs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynaboltz.operators import boltzmann, hard_max, log_sum_exp, mean, mellowmax
from dynaboltz.paper.claim import Check, Claim, Evidence
from dynaboltz.reports.figures import Figure, canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

ROWS = 20_000
SIZES = (2, 3, 5, 9, 18, 50)
ROUNDING = 64 * np.finfo(np.float64).eps
"""Of the largest magnitude: what two operators' rounding can turn around."""
ROW = (0.0, 1.0, 3.0)


def test(rng: np.random.Generator) -> Evidence:
    """Count violations of the ordering on random rows, with a β of their own for boltz and log-sum-exp."""
    broken = {"boltz ≤ max": 0, "max ≤ log-sum-exp": 0, "mean ≤ mellowmax": 0, "mellowmax ≤ boltz": 0}
    for size in SIZES:
        for _ in range(20):
            beta, other = (float(10 ** rng.uniform(-3, 3)) for _ in range(2))
            rows = rng.normal(size=(ROWS // 20 // len(SIZES), size)) * 10 ** rng.uniform(-3, 3)
            slack = ROUNDING * np.abs(rows).max(axis=-1)
            chain = {
                "boltz ≤ max": (boltzmann(rows, beta), hard_max(rows)),
                "max ≤ log-sum-exp": (hard_max(rows), log_sum_exp(rows, other)),
                "mean ≤ mellowmax": (mean(rows), mellowmax(rows, beta)),
                "mellowmax ≤ boltz": (mellowmax(rows, beta), boltzmann(rows, beta)),
            }
            for fact, (low, high) in chain.items():
                broken[fact] += int((low > high + slack).sum())
    return Evidence(
        finding=(
            f"The ordering holds in every one of {ROWS:,} rows, for any pair β_t, β > 0. The right half is special to "
            "the unnormalised log-sum-exp: with a uniform prior (mellowmax, G-learning) it lies below boltz, since "
            "boltz − mellowmax = (log m − H(p))/β ≥ 0."
        ),
        settings={"rows": ROWS, "sizes": SIZES, "beta": "1e-3 to 1e3, log-uniform, one each", "scale": "1e-3 to 1e3"},
        checks=[
            Check(
                fact=fact,
                true=count == 0,
                of="paper" if position < 2 else "ours",
                detail=f"{count} of {ROWS:,} violations",
            )
            for position, (fact, count) in enumerate(broken.items())
        ],
        figures=[
            Figure(
                name="proposition-2",
                caption="What the operators make of the values 0, 1, 3 as β grows.",
                alt="Log-sum-exp falls to the maximum 3 from above; boltz rises to it from the mean 4/3, mellowmax "
                "below boltz.",
                draw=_draw,
            )
        ],
    )


def _draw() -> MatplotlibFigure:
    betas = np.geomspace(0.05, 50, 300)
    rows = np.tile(ROW, (betas.size, 1))
    figure, axes = canvas()
    for label, operator in (("log-sum-exp", log_sum_exp), ("boltz", boltzmann), ("mellowmax", mellowmax)):
        axes.plot(betas, operator(rows, betas), label=label)
    axes.axhline(max(ROW), color="C6", lw=1)
    axes.axhline(float(mean(list(ROW))), color="C6", lw=1, ls=":")
    axes.text(0.05, max(ROW) + 0.06, "max", va="bottom")
    axes.text(50, float(mean(list(ROW))) + 0.06, "mean", va="bottom", ha="right")
    axes.set(xscale="log", xlabel="β", ylabel="value", ylim=(1, 6.5), xlim=(0.05, 50))
    axes.legend(loc="upper right")
    drawn: MatplotlibFigure = figure
    return drawn


CLAIM = Claim(
    name="proposition-2",
    title="Proposition 2: boltz ≤ max ≤ log-sum-exp",
    section="theory",
    where="Appendix E, Proposition 2",
    says="For β_t, β > 0 and any vector x: boltz_{β_t}(x) ≤ max x ≤ L_β(x).",
    equations={"Proposition 2": "dynaboltz.operators.Operator"},
    test=test,
)
