"""One batch of transitions in arrays that are used again and again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dynaboltz.envs.spec import Spec


class Batch(NamedTuple):
    """What an update learns from."""

    inputs: np.ndarray
    """(B, stack, *shape)"""
    next_inputs: np.ndarray
    """(B, stack, *shape): where the bootstrap is taken; anything where ``discount`` is 0."""
    action: np.ndarray
    """(B,) int64"""
    reward: np.ndarray
    """(B,) float64: Σ γᵏ r over the n steps, or to the end of the episode."""
    discount: np.ndarray
    """(B,) float64: γⁿ, with fewer steps after a truncation, and 0 after termination."""
    importance: np.ndarray
    """(B,) float64: importance weights, 1 where sampling is uniform."""
    slot: np.ndarray
    """(B,) int64: where the transitions are in the replay memory."""

    @classmethod
    def empty(cls, size: int, spec: Spec) -> Batch:
        """Arrays for ``size`` transitions."""
        shape = (size, spec.stack, *spec.shape)
        return cls(
            np.zeros(shape, spec.dtype), np.zeros(shape, spec.dtype), np.zeros(size, np.int64), np.zeros(size),
            np.zeros(size), np.ones(size), np.zeros(size, np.int64),
        )  # fmt: skip
