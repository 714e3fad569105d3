"""Proposition 1: log-sum-exp exceeds Boltzmann by the entropy over β, at most log(n)/β. And the sharp gap to the max."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynaboltz.operators import boltzmann, gap_constant, log_sum_exp
from dynaboltz.paper.claim import Check, Claim, Evidence, Table
from dynaboltz.reports.figures import Figure, canvas
from dynaboltz.theory import entropy_gap, entropy_gap_bound, sharp_gap, sharp_gap_row

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

ROWS = 20_000
SIZES = (2, 3, 5, 9, 18, 50)
SHOWN = (2, 3, 4, 6, 9, 18, 100)
TOLERANCE = 1e-12
"""Of |L − boltz − H/β| over max|x| + log(n)/β: rounding, no more."""


def test(rng: np.random.Generator) -> Evidence:
    """Check the identity and the bound on random rows of every scale, and how close the sharp gap comes."""
    identity, over_bound, over_sharp, closest = 0.0, 0, 0, 0.0
    for size in SIZES:
        for _ in range(20):
            beta = float(10 ** rng.uniform(-3, 3))
            rows = rng.normal(size=(ROWS // 20 // len(SIZES), size)) * 10 ** rng.uniform(-3, 3)
            difference = log_sum_exp(rows, beta) - boltzmann(rows, beta)
            scale = np.abs(rows).max(axis=-1) + entropy_gap_bound(beta, size)
            entropy = entropy_gap(rows, beta)
            identity = max(identity, float((np.abs(difference - entropy) / scale).max()))
            over_bound += int((entropy > entropy_gap_bound(beta, size) * (1 + 1e-14)).sum())
            gap = rows.max(axis=-1) - boltzmann(rows, beta)
            over_sharp += int((gap > sharp_gap(beta, size) + TOLERANCE * scale).sum())
    attained = []
    for size in SHOWN:
        row = sharp_gap_row(1.0, size)
        attained.append(float(row.max() - boltzmann(row, 1.0)) / gap_constant(size))
        closest = max(closest, abs(attained[-1] - 1.0))
    ties = [float(entropy_gap(np.zeros(size), 1.0)) / entropy_gap_bound(1.0, size) for size in SIZES]
    return Evidence(
        finding=(
            f"The identity holds to rounding and the bound in every one of {ROWS:,} rows; it is attained at ties. "
            "Theorem 1 uses it to bound max − boltz by log(m)/β, which is never attained: the supremum is "
            "W((m−1)/e)/β, smaller by a factor between "
            f"{min(np.log(m) / gap_constant(m) for m in SHOWN):.2f} and "
            f"{max(np.log(m) / gap_constant(m) for m in SHOWN):.2f}, and it is attained by one value on top and "
            "m − 1 values (1 + W)/β lower. β must be above 0, and the entropy in the proof's last line is the "
            "entropy over β."
        ),
        settings={"rows": ROWS, "sizes": SIZES, "beta": "1e-3 to 1e3, log-uniform", "scale": "1e-3 to 1e3"},
        checks=[
            Check(
                fact="L_β − boltz_β equals H(p)/β", true=identity < TOLERANCE, detail=f"largest error {identity:.1e}"
            ),
            Check(fact="H(p)/β is at most log(n)/β", true=over_bound == 0, detail=f"{over_bound} of {ROWS:,} above"),
            Check(fact="log(n)/β is attained, at ties", true=max(abs(t - 1) for t in ties) < TOLERANCE, of="ours"),
            Check(
                fact="max − boltz is at most W((m−1)/e)/β",
                true=over_sharp == 0,
                of="ours",
                detail=f"{over_sharp} of {ROWS:,} above",
            ),
            Check(fact="W((m−1)/e)/β is attained", true=closest < TOLERANCE, of="ours", detail=f"off by {closest:.1e}"),
        ],
        tables=[
            Table(
                caption="The per-step constant of Theorem 1, in units of 1/β",
                header=("m", "log m (paper)", "W((m−1)/e) (sharp)", "ratio", "share attained"),
                rows=[
                    (m, float(np.log(m)), gap_constant(m), float(np.log(m)) / gap_constant(m), share)
                    for m, share in zip(SHOWN, attained, strict=True)
                ],
            )
        ],
        figures=[
            Figure(
                name="proposition-1",
                caption="β times the distance from the Boltzmann value of m = 4 values, three of which lie u/β below "
                "the first. The entropy is largest at ties; the distance to the maximum is largest at u = 1 + W.",
                alt="Two curves over u: the entropy falls from log 4 to 0; the distance to the maximum rises from 0 to "
                "its peak 0.60 near u = 1.6 and falls to 0.",
                draw=_draw,
            )
        ],
    )


def _draw() -> MatplotlibFigure:
    m = 4
    u = np.linspace(0, 8, 400)
    rows = np.concatenate([np.zeros((u.size, 1)), np.repeat(-u[:, None], m - 1, axis=1)], axis=1)
    figure, axes = canvas()
    axes.plot(u, entropy_gap(rows, 1.0), label="log-sum-exp − boltz = H(p)/β")
    axes.plot(u, -boltzmann(rows, 1.0), label="max − boltz")
    axes.axhline(np.log(m), color="C0", ls=":", lw=1)
    axes.axhline(gap_constant(m), color="C1", ls=":", lw=1)
    axes.text(8, np.log(m), "log m", ha="right", va="bottom", color="C0")
    axes.text(8, gap_constant(m), "W((m−1)/e)", ha="right", va="bottom", color="C1")
    axes.set(xlabel="u = β · (distance below the maximum)", ylabel="β · gap", ylim=(0, 1.6), xlim=(0, 8))
    axes.legend(loc="upper right", bbox_to_anchor=(1, 0.85))
    drawn: MatplotlibFigure = figure
    return drawn


CLAIM = Claim(
    name="proposition-1",
    title="Proposition 1: log-sum-exp − boltz = entropy/β ≤ log(n)/β",
    section="theory",
    where="Appendix A, Proposition 1; used in Ineq. (11) of Theorem 1",
    says="L_β(X) − boltz_β(X) = (1/β) Σ −p_i log p_i ≤ log(n)/β.",
    equations={
        "Proposition 1": "dynaboltz.theory.entropy_gap",
        "Ineq. (11), per-step gap": "dynaboltz.theory.step_gap",
        "sharp per-step gap (ours)": "dynaboltz.theory.sharp_gap",
    },
    test=test,
)
