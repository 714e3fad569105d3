"""Random streams by counter: draw n of a stream is a hash of its key and n, so it depends on nothing else.

A seed has two: the agent's (choices, ties, the coin of double Q-learning) and the world's (first states, transitions).
A world without chance draws nothing, and an agent makes the same draws whatever world it meets.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dynaboltz.tabular.layout import AGENT, WORLD

Words = npt.NDArray[np.uint64]

_INITIAL = 1


def keys(root: int, seeds: Sequence[int]) -> Words:
    """Positions and increments of both streams of each seed, shape (seeds, 4).

    Draw n is ``mix(position + n · increment)``, where mix is the finaliser of SplitMix64 (Steele, Lea & Flood 2014).

    >>> (keys(0, [5, 6])[1] == keys(0, [6])[0]).all().item()
    True
    """
    words = np.empty((len(seeds), 4), np.uint64)
    for place, seed in enumerate(seeds):
        words[place] = np.random.SeedSequence(root, spawn_key=(seed,)).generate_state(4, np.uint64)
    for column in (AGENT + 1, WORLD + 1):
        words[:, column] = _mixing(words[:, column] | np.uint64(1))
    return words


def _mixing(increments: Words) -> Words:
    """Increments whose multiples change many bits: those with long runs of equal bits are spread (same source)."""
    changes = np.bitwise_count(increments ^ (increments >> np.uint64(1)))
    return np.where(changes < 24, increments ^ np.uint64(0xAAAAAAAAAAAAAAAA), increments)


def generator(root: int, seed: int) -> np.random.Generator:
    """The generator of a seed's initial values."""
    return np.random.default_rng(np.random.SeedSequence(root, spawn_key=(seed, _INITIAL)))


def episode_seeds(root: int, seed: int, episodes: range) -> list[int]:
    """What the episodes of an environment that is no model are reset with; episode n's does not depend on the others.

    >>> episode_seeds(0, 1, range(2, 4))[0] == episode_seeds(0, 1, range(4))[2]
    True
    """
    position, increment = (int(word) for word in keys(root, [seed])[0, WORLD : WORLD + 2])
    return [_mix(position + (number + 1) * increment) >> 33 for number in episodes]


def _mix(word: int) -> int:
    word &= (1 << 64) - 1
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & (1 << 64) - 1
    word = (word ^ word >> 27) * 0x94D049BB133111EB & (1 << 64) - 1
    return word ^ word >> 31
