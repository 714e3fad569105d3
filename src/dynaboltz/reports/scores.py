"""Scores on a common scale: human-normalised, relative to a baseline, and the paper's own table of 49 Atari games."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from dynaboltz.errors import UnknownNameError

if TYPE_CHECKING:
    import numpy.typing as npt

Floats = np.ndarray[tuple[int], np.dtype[np.float64]]

ROUNDING = 0.05
"""The table prints one decimal: the score behind an entry lies within this of it."""


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTable:
    """One score a game of several agents, with the references that put them on a common scale."""

    games: tuple[str, ...]
    random: Floats
    human: Floats
    agents: dict[str, Floats]

    def normalised(self, agent: str) -> Floats:
        """The agent's human-normalised score of every game, in percent."""
        return human_normalised(self.scores(agent), self.random, self.human)

    def relative(self, agent: str, baseline: str) -> Floats:
        """The agent's relative human-normalised score over a baseline, in percent."""
        return relative(self.scores(agent), self.scores(baseline), self.random, self.human)

    def scores(self, agent: str) -> Floats:
        """The raw scores."""
        if agent not in self.agents:
            raise UnknownNameError("agent", agent, self.agents, "the table of scores")
        return self.agents[agent]


def human_normalised(score: npt.ArrayLike, random: npt.ArrayLike, human: npt.ArrayLike) -> Floats:
    """``100 · (score − random) / (human − random)``, in percent (Pan et al. 2020, Section 4.3).

    >>> human_normalised([15.0], [10.0], [20.0])
    array([50.])
    """
    low = np.asarray(random, np.float64)
    scaled: Floats = 100.0 * (np.asarray(score, np.float64) - low) / (np.asarray(human, np.float64) - low)
    return scaled


def relative(score: npt.ArrayLike, baseline: npt.ArrayLike, random: npt.ArrayLike, human: npt.ArrayLike) -> Floats:
    """``100 · (score − baseline) / (max(human, baseline) − random)``, in percent (Pan et al. 2020, appendix).

    >>> relative([15.0, 45.0], [10.0, 40.0], [0.0, 0.0], [20.0, 20.0])
    array([25. , 12.5])
    """
    other = np.asarray(baseline, np.float64)
    top = np.maximum(np.asarray(human, np.float64), other)
    scaled: Floats = 100.0 * (np.asarray(score, np.float64) - other) / (top - np.asarray(random, np.float64))
    return scaled


def human_references(env: str) -> tuple[float, float] | None:
    """The scores of a random player and of a human on the Atari game that an environment's name says, if there are any.

    >>> human_references("ALE/Breakout-v5"), human_references("atari/MsPacman"), human_references("CartPole-v1")
    ((1.7, 30.5), (307.3, 6951.6), None)
    """
    made = re.fullmatch(r"(?:ALE/|atari/)([A-Za-z*._' -]+?)(?:NoFrameskip)?(?:-v\d+)?(?:\(.*\))?", env)
    if made is None:
        return None
    table = paper_scores()
    games = {_plain(game): i for i, game in enumerate(table.games)} | {"upndown": table.games.index("Up and Down")}
    place = games.get(_plain(made.group(1)))
    return None if place is None else (float(table.random[place]), float(table.human[place]))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())


@cache
def paper_scores() -> ScoreTable:
    """The raw scores of Pan et al. (2020), last table: random, human and DQN are Wang et al.'s (2015).

    30 no-op starts, one seed. The columns ``dbs_dqn`` and ``dbs_dqn_fixed_c`` are the paper's own.

    >>> table = paper_scores()
    >>> len(table.games), list(table.agents)
    (49, ['dqn', 'dbs_dqn', 'dbs_dqn_fixed_c'])
    """
    text = files("dynaboltz.reports").joinpath("data/atari_scores.csv").read_text(encoding="utf-8")
    header, *rows = csv.reader(text.splitlines())
    columns = {name: np.array([float(row[i]) for row in rows]) for i, name in enumerate(header) if i > 0}
    return ScoreTable(tuple(row[0] for row in rows), columns.pop("random"), columns.pop("human"), columns)
