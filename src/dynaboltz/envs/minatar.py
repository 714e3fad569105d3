"""MinAtar (Young & Tian, 2019): an adapter to the ``minatar`` package, whose rules, rewards and ends are untouched.

One thing is different: the action that may be repeated is forgotten at the end of an episode (the package carries it
into the next one), so that an episode is a function of its seed and its actions.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from dynaboltz.envs.names import written
from dynaboltz.envs.spec import Environments, Spec
from dynaboltz.envs.world import World, Worlds
from dynaboltz.errors import MissingExtraError, UnknownNameError, UserError
from dynaboltz.mdp.calls import number

GAMES = ("asterix", "breakout", "freeway", "seaquest", "space_invaders")

ACTIONS = ("nothing", "left", "up", "right", "down", "fire")
"""All games take all six, as in the paper; ``minimal_actions`` leaves those that do something."""


def make_minatar(name: str, keywords: dict[str, Any], *, n: int, seed: int, stream: int) -> Environments:
    """``n`` worlds of a game. Keywords: ``sticky_actions``, ``ramping``, ``minimal_actions``."""
    if name not in GAMES:
        raise UnknownNameError("MinAtar game", name, GAMES)
    known = ("sticky_actions", "ramping", "minimal_actions")
    for key in keywords:
        if key not in known:
            raise UnknownNameError(f"argument of minatar/{name}:", key, known)
    worlds = [MinatarWorld(name, **keywords) for _ in range(n)]
    return Worlds(worlds, name=written(f"minatar/{name}", keywords), seed=seed, stream=stream)


class MinatarWorld(World):
    """A game on 10 × 10 cells; frames are bool, one channel a kind of thing, channels first.

    Args:
        game: one of ``GAMES``.
        sticky_actions: probability that the last action is repeated in place of the one that was chosen.
        ramping: whether the game gets harder as it goes on (Breakout and Freeway do not).
        minimal_actions: leave out the actions that do nothing in this game.
    """

    def __init__(
        self, game: str, *, sticky_actions: float = 0.1, ramping: bool = True, minimal_actions: bool = False
    ) -> None:
        self._sticky: Final = number("sticky_actions", sticky_actions, 0.0, 1.0)
        for key, value in (("ramping", ramping), ("minimal_actions", minimal_actions)):
            if not isinstance(value, bool):
                raise UserError(f"{key} must be True or False, got {value!r}")
        self._game: Final[Any] = _rules(game).Env(ramping=ramping)
        self._act: Final = self._game.act
        self._state: Final = self._game.state
        self._set: Final[tuple[int, ...]] = tuple(
            self._game.minimal_action_set() if minimal_actions else range(len(ACTIONS))
        )
        self.channels: Final = tuple(self._game.channels)
        self.spec = Spec(
            shape=(len(self.channels), 10, 10),
            dtype="bool",
            n_actions=len(self._set),
            action_labels=tuple(ACTIONS[action] for action in self._set),
        )
        self._random: Final = np.random.RandomState(
            0
        )  # of the games' own kind; a new one for each episode costs 0.1 ms
        self._game.random = self._random
        self._last = 0

    def reset(self, seed: int) -> Any:
        """First frame of the episode."""
        self._random.seed(seed)
        self._last = 0
        self._game.reset()
        return self._state().transpose(2, 0, 1)

    def step(self, action: int) -> tuple[Any, Any, Any, Any]:
        """One action, which sticks with the probability set."""
        if self._random.random_sample() >= self._sticky:
            self._last = self._set[action]
        reward, terminated = self._act(self._last)
        return self._state().transpose(2, 0, 1), reward, terminated, False

    def text(self) -> str:
        """The cells, by the first letter of what is there."""
        from dynaboltz.envs.pictures import cells_text

        return cells_text(self._state().transpose(2, 0, 1), self.channels)


@cache
def _rules(game: str) -> Any:
    """The module of a game, from its file: importing the package would bring in pyplot and seaborn, for 1.2 s."""
    found = importlib.util.find_spec("minatar")
    if found is None or not found.submodule_search_locations:
        raise MissingExtraError("minatar", "minatar", f"the environment minatar/{game}")
    path = Path(found.submodule_search_locations[0]) / "environments" / f"{game}.py"
    described = importlib.util.spec_from_file_location(f"minatar_{game}", path)
    assert described is not None
    assert described.loader is not None
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    return module
