"""The paper's claims, one module each: settings, data, figure and verdict.

Adding a claim is a module with a :class:`~dynaboltz.paper.claim.Claim` and a line here.
"""

from dynaboltz.paper import (
    algorithm_1,
    algorithm_2,
    algorithm_2_atari,
    appendix_q_learning,
    atari_games,
    atari_scores,
    atari_table,
    beta_range,
    c_bar,
    corollary,
    figure_bound,
    figure_gridworld,
    figure_q_learning,
    meta_gradient,
    network_table,
    no_ops,
    overestimation,
    proposition_1,
    proposition_2,
    rainbow,
    sample_complexity,
    seaquest_c,
    settings_map,
    theorem_1,
    theorem_2,
    theorem_3,
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
        algorithm_1.CLAIM,
        theorem_3.CLAIM,
        overestimation.CLAIM,
        figure_q_learning.CLAIM,
        appendix_q_learning.CLAIM,
        settings_map.CLAIM,
        sample_complexity.CLAIM,
        algorithm_2.CLAIM,
        meta_gradient.CLAIM,
        c_bar.CLAIM,
        rainbow.CLAIM,
        no_ops.CLAIM,
        network_table.CLAIM,
        algorithm_2_atari.CLAIM,
        seaquest_c.CLAIM,
        atari_scores.MEDIANS,
        atari_scores.WINS,
        atari_table.RELATIVE,
        atari_table.TABLE,
        atari_games.GAMES,
        atari_games.SIX,
    )
}
"""Every claim by name, in the order of the paper."""
