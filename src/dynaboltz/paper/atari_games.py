"""49 games and six learning curves: what of them runs here, and the studies that decide the rest."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from dynaboltz.paper.atari_runs import AGENTS, SEEDS, STEPS, costs, tried
from dynaboltz.paper.claim import Check, Claim, Evidence, Table
from dynaboltz.reports.scores import paper_scores

CURVES = ("Frostbite", "Ice Hockey", "River Raid", "Road Runner", "Seaquest", "Zaxxon")
"""As the table of scores writes them."""


def play(game: str, decisions: int, seed: int) -> tuple[int, float]:
    """How many actions a game has under the published protocol, and the points of so many random decisions."""
    from dynaboltz.envs import make

    rng = np.random.default_rng(seed)
    with make(f"atari/{game}", seed=seed) as worlds:
        worlds.reset()
        n = worlds.spec.n_actions
        points = math.fsum(float(worlds.step(rng.integers(n, size=1)).reward[0]) for _ in range(decisions))
    return n, points


def test_games(rng: np.random.Generator, *, seconds: float, decisions: int) -> Evidence:
    """Every game of the table, for some decisions; and the cost of the runs."""
    seed = int(rng.integers(1 << 31))
    table = paper_scores()
    played = {game: play(game, decisions, seed) for game in table.games}
    runs = len(table.games) * len(AGENTS) * SEEDS
    said, cost = costs({name: tried(agent, seed=seed, seconds=seconds) for name, agent in AGENTS.items()}, runs=runs)
    actions = [n for n, _ in played.values()]
    return Evidence(
        finding=(
            f"All {len(played)} games of the table are played here by the published protocol, with {min(actions)} to {max(actions)} actions. Training on "
            f"them is for a cluster. {said}. Every run is one process that goes on from its checkpoint on another machine. The scores that the paper "
            "prints are audited by themselves: the claims on Table 1, on 40 and 33 games and on the table of the appendix."
        ),
        settings={
            "games": len(played), "decisions of a game": decisions, "algorithms": tuple(AGENTS), "runs of each on a game": SEEDS, "steps of a run": STEPS,
        },
        command="dynaboltz study studies/paper-atari.toml --on slurm",
        checks=[
            Check(
                fact="each of the 49 games is in the Arcade Learning Environment and can be played by the protocol",
                true=len(played) == 49 and all(math.isfinite(points) for _, points in played.values()),
                detail=f"{len(played)} games, {sum(points != 0 for _, points in played.values())} with points in {decisions} random decisions",
            ),
            Check(fact="DBS-DQN scores above DQN in 40 of them, and with a fixed c in 33", true=None, detail=f"{runs} runs"),
            Check(fact="the median of its human-normalised scores is above 100 %", true=None, detail="the same runs"),
        ],
        tables=[
            cost,
            Table(
                caption="The games, with their actions and what random decisions brought",
                header=("game", "actions", f"points in {decisions} decisions"),
                rows=[(game, n, points) for game, (n, points) in played.items()],
            ),
        ],
        numbers={"played": {game: list(each) for game, each in played.items()}},
    )  # fmt: skip


def test_curves(rng: np.random.Generator, *, seconds: float) -> Evidence:
    """The six games in the paper's own table, and the cost of their curves."""
    seed = int(rng.integers(1 << 31))
    table = paper_scores()
    relative = dict(zip(table.games, table.relative("dbs_dqn", "dqn").tolist(), strict=True))
    ranks = {game: 1 + int(sum(other > relative[game] for other in relative.values())) for game in CURVES}
    wins = sum(value > 0 for value in relative.values())
    chance = math.comb(wins, len(CURVES)) / math.comb(len(relative), len(CURVES))
    runs = len(CURVES) * len(AGENTS) * SEEDS
    said, cost = costs({name: tried(agent, seed=seed, seconds=seconds) for name, agent in AGENTS.items()}, runs=runs)
    best, middle, worst = (
        f([relative[game] for game in CURVES]) for f in (max, lambda values: float(np.median(values)), min)
    )
    return Evidence(
        finding=(
            f"The six games are six of the {wins} that DBS-DQN wins by the table of scores, by {worst:.0f} to {best:.0f} % on the relative scale, half of them by "
            f"more than {middle:.0f} %. None of its {len(relative) - wins} losses is among them; of six games drawn at random that would be so with "
            f"probability {chance:.2f}. The text does not say which runs they average. {said}."
        ),
        settings={"games": CURVES, "algorithms": tuple(AGENTS), "runs of each on a game": SEEDS, "steps of a run": STEPS},
        command="dynaboltz study studies/six-curves.toml --on slurm",
        checks=[
            Check(
                fact="at the end DBS-DQN is above DQN in all six, by the paper's table of scores", true=worst > 0,
                detail=", ".join(f"{game} {relative[game]:+.0f} %" for game in CURVES),
            ),
            Check(fact="its curve is above DQN's in all six", true=None, detail=f"{runs} runs"),
            Check(
                fact="the six are no better than games drawn at random: half of them are in the upper half by relative score", of="aside",
                true=sum(rank <= len(relative) / 2 for rank in ranks.values()) <= len(CURVES) / 2,
                detail=", ".join(f"{game} is number {rank}" for game, rank in ranks.items()),
            ),
        ],
        tables=[
            Table(
                caption="The six games in the table of scores",
                header=("game", "DQN", "DBS-DQN", "relative, %", f"rank among {len(relative)}"),
                rows=[
                    (
                        game, *(float(table.scores(agent)[table.games.index(game)]) for agent in ("dqn", "dbs_dqn")),
                        f"{relative[game]:.1f}", ranks[game],
                    )
                    for game in CURVES
                ],
            ),
            cost,
        ],
        numbers={"relative": relative, "chance that all six are wins": chance},
    )  # fmt: skip


GAMES = Claim(
    name="atari-games", title="49 games, run again", section="atari", where="Section 4.3, Appendix (Atari Scores)",
    says="For each of 49 games each algorithm is trained for 50 million steps in 3 independent runs; DBS-DQN exceeds DQN in 40 games, "
    "with a fine-tuned fixed c in 33, and its median surpasses human level.",
    equations={"a game": "dynaboltz.envs.make", "a study": "dynaboltz.studies.read_study"},
    test=partial(test_games, seconds=3.0, decisions=100), small=partial(test_games, seconds=0.5, decisions=2),
)  # fmt: skip
SIX = Claim(
    name="atari-curves", title="Learning curves of six games", section="atari", where="Section 4.3, Figure (learning curves)",
    says="Moving averages of the scores of DBS-DQN and DQN on Frostbite, Ice Hockey, River Raid, Road Runner, Seaquest and Zaxxon: "
    "DBS-DQN is above.",
    equations={"relative score": "dynaboltz.reports.scores.relative", "a study": "dynaboltz.studies.read_study"},
    test=partial(test_curves, seconds=3.0), small=partial(test_curves, seconds=0.5),
)  # fmt: skip
