"""What the updates since the last reading were like."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaboltz.deep.target_rows import STATISTICS

if TYPE_CHECKING:
    from dynaboltz.deep.learner import Learner

BOOTSTRAPPED, LEARNING = STATISTICS.index("bootstrapped"), STATISTICS.index("learning")
NEXT_STATES = ("gap", "variance", "entropy", "saturated")
"""Means over next states that bootstrap; ``q_mean`` and ``td_error`` are means over all, ``loss`` over updates."""


class Records:
    """Sums that are drained."""

    def __init__(self) -> None:
        self._beta: float | None = None
        self._c: float | None = None
        self._clear()

    def _clear(self) -> None:
        self._sums = np.zeros(len(STATISTICS))
        self._updates = self._rows = self._meta = 0
        self._derivative = self._sign = 0.0

    def add(self, learner: Learner) -> None:
        """Count one update."""
        self._sums += learner.targets.counts
        self._updates += 1
        self._rows += len(learner.targets.error)
        self._beta = learner.beta
        if learner.coefficient is not None:
            self._c = learner.coefficient.c
            if not math.isnan(learner.derivative):
                self._meta += 1
                self._derivative += learner.derivative
                self._sign += (learner.derivative > 0) - (learner.derivative < 0)

    def drain(self) -> dict[str, float]:
        """Means since the last call; nothing where there was no update."""
        if not self._updates:
            return {}
        sums = dict(zip(STATISTICS, self._sums.tolist(), strict=True))
        found = {"loss": sums["loss"] / self._updates}
        found |= {name: sums[name] / self._rows for name in ("q_mean", "td_error")}
        if sums["bootstrapped"]:
            found |= {name: sums[name] / sums["bootstrapped"] for name in NEXT_STATES}
        if self._beta is not None:
            found["beta"] = self._beta
        if self._c is not None:
            found["c"] = self._c
        if self._meta:
            found |= {"meta_gradient": self._derivative / self._meta, "meta_sign": self._sign / self._meta}
        self._clear()
        return found

    def state(self) -> dict[str, Any]:
        """Everything :meth:`restore` needs."""
        return {name: getattr(self, name) for name in _FIELDS} | {"sums": self._sums}

    def restore(self, tree: Mapping[str, Any]) -> None:
        """Go back to a saved state."""
        for name in _FIELDS:
            setattr(self, name, tree[name])
        self._sums = np.array(tree["sums"])


_FIELDS = ("_updates", "_rows", "_meta", "_derivative", "_sign", "_beta", "_c")
