"""The appendix of 49 games: the bars of relative scores, and the table that all of Section 4.3 rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynaboltz.paper.atari_scores import EQUATION, NAMES
from dynaboltz.paper.claim import Check, Claim, Evidence, Table
from dynaboltz.reports.figures import COLOURS, Figure, canvas
from dynaboltz.reports.scores import ROUNDING, paper_scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure


def test_relative(rng: np.random.Generator) -> Evidence:  # noqa: ARG001
    """The bars of the appendix figure."""
    table = paper_scores()
    scores = table.relative("dbs_dqn", "dqn")
    order = np.argsort(scores)[::-1]
    above = int((scores > 0).sum())
    best = [table.games[i] for i in order[:2]]
    shown = {table.games[i]: float(scores[i]) for i in order}
    return Evidence(
        finding=(
            f"The bars follow from the table of scores: {above} are above zero, from {best[0]} ({scores[order[0]]:,.0f} %) and "
            f"{best[1]} ({scores[order[1]]:,.0f} %) down to {table.games[order[-1]]} ({scores[order[-1]]:.0f} %); half of all "
            f"games change by less than {np.median(np.abs(scores)):.0f} %."
        ),
        settings={"score": "100 · (DBS-DQN − DQN) / (max(human, DQN) − random)"},
        checks=[
            Check(fact="DBS-DQN improves on DQN in most games", true=above > len(scores) / 2, detail=f"{above} of {len(scores)}")
        ],
        figures=[
            Figure(
                name="atari-relative", draw=_draw_relative,
                caption="Relative human-normalised score of DBS-DQN over DQN; the axis is linear within ±10 % and logarithmic beyond.",
                alt="Forty bars to the right, led by Atlantis and Video Pinball above a hundred percent, nine to the left.",
            )
        ],
        numbers={"relative": shown},
    )  # fmt: skip


def test_table(rng: np.random.Generator) -> Evidence:  # noqa: ARG001
    """The table of 49 games: what an average over it is an average of."""
    table = paper_scores()
    scores = {agent: table.normalised(agent) for agent in NAMES}
    top = np.argsort(scores["dbs_dqn"])[::-1][:2]
    part = float(scores["dbs_dqn"][top].sum() / scores["dbs_dqn"].sum())
    first, second = (table.games[i] for i in top)
    spread = sorted(table.human - table.random)
    return Evidence(
        finding=(
            f"Every game has a score of every agent and a human score above the random one, so that each can be normalised. "
            f"A mean over the games would be a mean of two: {first} and {second} make {part:.0%} of DBS-DQN's. Both are at "
            f"{scores['dbs_dqn'][top[0]]:,.0f} % and {scores['dbs_dqn'][top[1]]:,.0f} % of human, where DQN's column has "
            f"{scores['dqn'][top[0]]:,.0f} % and {scores['dqn'][top[1]]:,.0f} %; scores that grow with the length of an episode are "
            "comparable only under one cap, and the paper does not name its own."
        ),
        settings={"games": len(table.games), "starts": "up to 30 no-ops", "rounding of a score": f"± {ROUNDING}"},
        checks=[
            Check(
                fact="there are 49 games, each with a score of every agent",
                true=len(set(table.games)) == 49 and all(np.isfinite(table.scores(agent)).all() for agent in NAMES),
            ),
            Check(
                fact="a human scores above a random player in every game", of="ours", true=spread[0] > 0,
                detail=f"by {spread[0]:g} points or more",
            ),
            Check(
                fact="two games make most of the mean", of="ours", true=part > 0.5, detail=f"{first}, {second}: {part:.0%}"
            ),
        ],
        tables=[
            Table(
                caption="Raw scores, and in percent of human",
                header=("game", "random", "human", *NAMES.values(), *(f"{name}, %" for name in NAMES.values())),
                rows=[
                    (
                        game, table.random[i], table.human[i], *(table.scores(agent)[i] for agent in NAMES),
                        *(f"{scores[agent][i]:,.1f}" for agent in NAMES),
                    )
                    for i, game in enumerate(table.games)
                ],
            )
        ],
        numbers={"normalised": {NAMES[agent]: dict(zip(table.games, scores[agent], strict=True)) for agent in NAMES}},
    )  # fmt: skip


def _draw_relative() -> MatplotlibFigure:
    table = paper_scores()
    scores = table.relative("dbs_dqn", "dqn")
    order = np.argsort(scores)
    figure, axes = canvas(width=5.6, height=7.6)
    colours = [COLOURS[0] if scores[i] > 0 else COLOURS[1] for i in order]
    axes.barh(np.arange(scores.size), scores[order], color=colours, height=0.72)
    axes.set_yticks(np.arange(scores.size), [table.games[i] for i in order], fontsize=6.5)
    axes.set_xscale("symlog", linthresh=10)
    ticks = [-100, -10, 0, 10, 100, 1000]
    axes.set_xticks(ticks, [f"{tick:,}".replace("-", "−") for tick in ticks])
    axes.set(xlabel="relative human-normalised score, %", ylim=(-0.8, scores.size - 0.2))
    axes.grid(visible=False, axis="y")
    drawn: MatplotlibFigure = figure
    return drawn


RELATIVE = Claim(
    name="figure-relative", title="Relative scores of 49 games", section="atari",
    where="Appendix (Relative human normalized score on Atari games)",
    says="The improvement of DBS-DQN over DQN by game, as a relative human-normalised score.",
    equations={"relative human-normalised score": "dynaboltz.reports.scores.relative"}, test=test_relative,
)  # fmt: skip
TABLE = Claim(
    name="table-scores", title="The table of 49 games", section="atari", where="Appendix (Atari Scores)",
    says="Raw scores on 49 games from 30 no-op starts; random, human and DQN are those of Wang et al. (2015).",
    equations={"the table": "dynaboltz.reports.scores.paper_scores"} | EQUATION, test=test_table,
)  # fmt: skip
