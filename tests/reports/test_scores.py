"""Scores on a common scale, and the paper's table as it is printed."""

from __future__ import annotations

import numpy as np
import pytest

from dynaboltz.errors import UnknownNameError
from dynaboltz.reports.scores import ROUNDING, human_normalised, paper_scores, relative


def test_random_is_0_and_human_is_100_percent() -> None:
    assert human_normalised([2.0, 12.0, 22.0], [2.0] * 3, [12.0] * 3).tolist() == [0.0, 100.0, 200.0]


def test_human_normalised_score_rises_where_fewer_points_are_better() -> None:
    assert human_normalised([-10.0], [-20.0], [0.0]).tolist() == [50.0]


def test_relative_score_divides_by_the_better_of_human_and_baseline() -> None:
    assert relative([30.0, 30.0], [20.0, 20.0], [0.0, 0.0], [50.0, 10.0]).tolist() == [20.0, 50.0]


def test_relative_score_over_a_baseline_below_human_is_the_difference_of_normalised_scores() -> None:
    table = paper_scores()
    below = table.scores("dqn") <= table.human
    difference = table.normalised("dbs_dqn") - table.normalised("dqn")
    assert table.relative("dbs_dqn", "dqn")[below] == pytest.approx(difference[below], rel=1e-12, abs=1e-9)


def test_table_gives_the_known_medians() -> None:
    table = paper_scores()
    medians = [float(np.median(table.normalised(agent))) for agent in table.agents]
    assert medians == pytest.approx([84.72, 104.39, 104.05], abs=0.005)


@pytest.mark.parametrize("agent", ["dbs_dqn", "dbs_dqn_fixed_c"])
def test_medians_of_dbs_are_the_score_of_freeway(agent: str) -> None:
    table = paper_scores()
    scores = table.normalised(agent)
    assert np.median(scores) == scores[table.games.index("Freeway")]


@pytest.mark.parametrize(
    ("agent", "other", "counts"),
    [("dbs_dqn", "dqn", (40, 9)), ("dbs_dqn_fixed_c", "dqn", (33, 15)), ("dbs_dqn", "dbs_dqn_fixed_c", (31, 15))],
)
def test_table_gives_the_known_wins_and_losses(agent: str, other: str, counts: tuple[int, int]) -> None:
    difference = paper_scores().scores(agent) - paper_scores().scores(other)
    assert ((difference > 0).sum(), (difference < 0).sum()) == counts


def test_table_is_printed_to_twice_its_rounding() -> None:
    table = paper_scores()
    for column in (table.random, table.human, *table.agents.values()):
        assert column * (0.5 / ROUNDING) == pytest.approx(np.round(column * (0.5 / ROUNDING)), abs=1e-6)


def test_unknown_agent_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'dbs_dqn'"):
        paper_scores().scores("dbsdqn")
