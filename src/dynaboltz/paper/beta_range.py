"""Eq. (beta_range): where the Corollary's bound is tighter than that of Song et al. (2019)."""

from __future__ import annotations

import itertools
import math

import numpy as np

from dynaboltz.paper.claim import Check, Claim, Evidence, Table
from dynaboltz.theory import beta_range_printed, beta_range_true, corollary_first_term, corollary_printed, song_bound

DISCOUNTS = (0.85, 0.9, 0.95, 0.99)
ACTIONS = (2, 3, 4, 6, 9, 18)
GRID = np.geomspace(1e-3, 1e2, 4000)
EXAMPLES = ((3, 0.9, 0.06), (2, 0.9, 5.0), (2, 0.85, 6.0))
"""(|A|, γ, β) at or above the printed threshold where the bound is not tighter."""


def test(rng: np.random.Generator) -> Evidence:  # noqa: ARG001  (nothing here is random)
    """Compare the two bounds on a grid of β with the printed threshold and with the exact set."""
    wrong_above, wrong_set, checked, always = 0, 0, 0, 0
    rows = []
    for m, discount in itertools.product(ACTIONS, DISCOUNTS):
        printed, true_set = beta_range_printed(m, discount), beta_range_true(m, discount)
        for beta in map(float, GRID):
            tighter = corollary_first_term(beta, m, discount) <= song_bound(beta, m, discount, 1.0)
            wrong_above += beta >= printed and not tighter
            edge = any(math.isclose(beta, end, rel_tol=1e-9) for interval in true_set for end in interval)
            wrong_set += not edge and tighter != any(low <= beta <= high for low, high in true_set)
            checked += 1
        if m >= 4:
            always += any(
                corollary_printed(float(b), m, discount, 1.0) > song_bound(float(b), m, discount, 1.0) for b in GRID
            )
        rows.append((m, discount, printed, _as_text(true_set)))
    examples = [
        (m, g, b, beta_range_printed(m, g), corollary_first_term(b, m, g), song_bound(b, m, g, 1.0))
        for m, g, b in EXAMPLES
    ]
    return Evidence(
        finding=(
            "The printed condition misses the division by log|A| in its second entry and treats 1/(1+e^β) as if it were at "
            "least 1/(β+2), where the opposite holds. So its threshold is too small for |A| ≥ 3, and for |A| = 2 with "
            "γ = 0.85 or 0.9 the true set has a hole. With the Corollary's minimum kept, the bound is tighter for every β "
            "once |A| ≥ 4 at these discounts, which makes the condition moot there. And the comparison is not like for "
            "like: Song et al. bound Q, the Corollary V."
        ),
        settings={
            "|A|": ACTIONS,
            "discounts": DISCOUNTS,
            "R": 1,
            "β grid": f"{GRID.size} points from {GRID[0]:g} to {GRID[-1]:g}",
        },
        checks=[
            Check(
                fact="the bound is tighter for every β at or above the printed threshold",
                true=wrong_above == 0,
                detail=f"{wrong_above} of {checked:,} grid points contradict it",
            ),
            Check(
                fact="it is tighter exactly on the set given here",
                of="ours",
                true=wrong_set == 0,
                detail=f"{wrong_set} of {checked:,} grid points contradict it",
            ),
            Check(
                fact="with the minimum kept it is tighter for every β if |A| ≥ 4",
                of="ours",
                true=always == 0,
            ),
        ],
        tables=[
            Table(
                caption="Where log|A|/(β(1−γ)) is at most Song et al.'s bound (R = 1)",
                header=("|A|", "γ", "printed: β ≥", "true set"),
                rows=rows,
            ),
            Table(
                caption="Counterexamples to the printed condition",
                header=("|A|", "γ", "β", "printed threshold", "Corollary's bound", "Song et al.'s bound"),
                rows=examples,
            ),
        ],
    )


def _as_text(intervals: list[tuple[float, float]]) -> str:
    return " ∪ ".join(f"[{low:.4f}, {'∞)' if math.isinf(high) else f'{high:.4f}]'}" for low, high in intervals)


CLAIM = Claim(
    name="beta-range",
    title="Eq. (beta_range): where the bound is tighter than Song et al.'s",
    section="theory",
    where="Section 3.1.2, Eq. (19)",
    says="The bound is tighter when β ≥ 2/(max{γ(|A|−1)/log|A|, 2γ(|A|−1)R/(1−γ)} − 1).",
    equations={
        "Eq. (beta_range) as printed": "dynaboltz.theory.beta_range_printed",
        "Eq. (beta_range), true set (ours)": "dynaboltz.theory.beta_range_true",
        "Song et al. 2019, Theorem 3": "dynaboltz.theory.song_bound",
    },
    test=test,
)
