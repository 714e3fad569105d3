"""The paper's claims, one module each: settings, data, figure and verdict.

Adding a claim is a module with a :class:`~dynaboltz.paper.claim.Claim` and a line here.
"""

from dynaboltz.paper import (
    atari_scores,
    atari_table,
    beta_range,
    corollary,
    figure_bound,
    figure_gridworld,
    proposition_1,
    proposition_2,
    theorem_1,
    theorem_2,
    theorem_4,
)
from dynaboltz.paper.claim import Claim

CLAIMS: dict[str, Claim] = {
    claim.name: claim
    for claim in (
        proposition_1.CLAIM,
        theorem_2.CLAIM,
        corollary.CLAIM,
        beta_range.CLAIM,
        figure_bound.RANGE,
        figure_bound.IMPROVEMENT,
        theorem_1.THEOREM_1,
        theorem_1.THEOREM_2,
        figure_gridworld.WORLD,
        figure_gridworld.VALUE_LOSS,
        figure_gridworld.RATE,
        proposition_2.CLAIM,
        theorem_4.CLAIM,
        atari_scores.MEDIANS,
        atari_scores.WINS,
        atari_table.RELATIVE,
        atari_table.TABLE,
    )
}
"""Every claim by name, in the order of the paper."""
