"""The numbers of an agent's networks: weights, gradients, moments and the trace, in flat arrays of one layout."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from dynaboltz.deep.architecture import ALIGNMENT, Layout
from dynaboltz.deep.config import AgentConfig
from dynaboltz.deep.rules import Rule, parse_rule
from dynaboltz.deep.side import Side
from dynaboltz.errors import UserError
from dynaboltz.storage import Weights

GRADIENT, CHANGE, REFERENCE = 0, 1, 2
"""Rows of ``gradients``: of the loss; −d(gradient)/dψ; of the meta-objective less that of the loss."""


class Parameters(ABC):
    """Flat arrays, and the few passes over them that every engine shares.

    ``online``, ``target`` and ``acting`` may be one array: without a target network, or without overlap.
    """

    online: Any
    target: Any
    acting: Any
    first: Any
    second: Any
    gradients: Any
    """(rows, size): one row, or three where c is learned."""
    trace: Any
    """z = dθ/dψ, where c is learned."""
    previous: Any
    """The weights when :meth:`keep` was called, where c is learned as the paper prints it; ``spare`` as large."""
    spare: Any
    updates: int = 0
    version: int = 0
    """Changes with the target network."""

    def __init__(self, config: AgentConfig, layout: Layout) -> None:
        self.layout = layout
        self.dtype = np.dtype(config.dtype)
        self.rule: Rule = parse_rule(config.optimiser)
        self.rate = config.learning_rate
        self.clip = config.gradient_clip
        self.learns = config.c_learning != "off"
        self.prints = config.c_learning == "as_printed"
        self.exact = 1.0 if config.c_derivative == "exact" else 0.0
        self.has_target = config.parsed_target_period is not None
        self.overlaps = config.overlap
        self.rows = 3 if self.learns else 1

    def names(self) -> dict[str, Any]:
        """Every flat array that is worth saving, by its name."""
        kept = {"online": self.online}
        if self.has_target:
            kept["target"] = self.target
        if self.overlaps:
            kept["acting"] = self.acting
        if self.rule.moments:
            kept |= {"first": self.first, "second": self.second}
        if self.prints:
            kept["previous"] = self.previous
        elif self.learns:
            kept["trace"] = self.trace
        return kept

    def keep(self) -> None:
        """Keep the online weights for :meth:`as_before`."""
        self.copy(self.online, self.previous)

    @contextmanager
    def as_before(self) -> Iterator[None]:
        """Within, the online weights are those that were kept."""
        self.copy(self.online, self.spare)
        self.copy(self.previous, self.online)
        try:
            yield
        finally:
            self.copy(self.spare, self.online)

    @abstractmethod
    def copy(self, source: Any, into: Any) -> None:
        """Overwrite one flat array by another."""

    @abstractmethod
    def host(self, flat: Any) -> np.ndarray:
        """A flat array in host memory, without a copy where it is there already."""

    @abstractmethod
    def fill(self, flat: Any, values: np.ndarray) -> None:
        """Overwrite a flat array by numbers in host memory."""

    @abstractmethod
    def dot(self, a: Any, b: Any) -> float:
        """The inner product."""

    @abstractmethod
    def _step(self, factor: float) -> bool: ...

    @abstractmethod
    def _step_and_trace(self, factor: float, share: float, decay: float) -> bool: ...

    def step(self) -> bool:
        """One step of the optimiser along ``gradients[0]``; False if a weight is no longer finite."""
        self.updates += 1
        return self._step(self._factor()[0])

    def step_and_trace(self, decay: float) -> bool:
        """The same step, and ``z ← decay·z + dθ′/dψ`` from ``gradients[1]``, through the clipped norm too."""
        self.updates += 1
        factor, square = self._factor()
        share = 0.0
        if factor < 1:  # d(g/|g|) = (dg − g (g·dg)/|g|²)/|g|
            share = self.dot(self.gradients[GRADIENT], self.gradients[CHANGE]) / square
        return self._step_and_trace(factor, share, decay)

    def fade(self, decay: float) -> None:
        """``z ← decay·z``."""
        self.trace *= decay

    def _factor(self) -> tuple[float, float]:
        """What the gradient is multiplied by, and its squared norm."""
        if math.isinf(self.clip):
            return 1.0, 0.0
        gradient = self.gradients[GRADIENT]
        square = self.dot(gradient, gradient)
        norm = math.sqrt(square) if square >= 0 else math.nan
        return (self.clip / norm if norm > self.clip else 1.0), square

    def sync(self) -> None:
        """Copy the online into the target network."""
        if self.has_target:
            self.copy(self.online, self.target)
            self.version += 1

    def publish(self) -> None:
        """Copy the online into the acting network."""
        if self.overlaps:
            self.copy(self.online, self.acting)

    def not_finite(self) -> tuple[str, float] | None:
        """The first gradient or weight that is not finite, by name, with the number; None if all are."""
        for kind, flat in (("gradient of", self.gradients[GRADIENT]), ("weight", self.online)):
            for name, array in self.layout.views(self.host(flat)).items():
                wrong = ~np.isfinite(array)
                if wrong.any():
                    return f"{kind} {name}", float(array[wrong].flat[0])
        return None

    def weights(self) -> Weights:
        """The online network: named arrays, copied."""
        return Weights((name, array.copy()) for name, array in self.layout.views(self.host(self.online)).items())

    def load(self, weights: Mapping[str, Any]) -> None:
        """Overwrite the online, target and acting networks."""
        self.fill(self.online, self._flat(weights, "weights"))
        self.sync()
        self.publish()

    def state(self) -> dict[str, Any]:
        """Everything :meth:`restore` needs; arrays are views where they are in host memory."""
        tree: dict[str, Any] = {
            name: Weights(self.layout.views(self.host(flat))) for name, flat in self.names().items()
        }
        return {"updates": self.updates, **tree}

    def restore(self, tree: Mapping[str, Any]) -> None:
        """Go back to a saved state."""
        for name, flat in self.names().items():
            if name not in tree:
                raise UserError(f"the saved agent has no {name!r} network: it was trained under other settings")
            self.fill(flat, self._flat(tree[name], name))
        self.version += 1
        self.updates = int(tree["updates"])

    def _flat(self, weights: Mapping[str, Any], what: str) -> np.ndarray:
        expected = {piece.name: piece.shape for piece in self.layout.pieces}
        if set(weights) != set(expected):
            odd = sorted(set(weights) ^ set(expected))
            raise UserError(f"{what}: must hold the weights {', '.join(expected)}; the difference is {', '.join(odd)}")
        flat = np.zeros(self.layout.size, self.dtype)
        for name, view in self.layout.views(flat).items():
            array = np.asarray(weights[name])
            if array.shape != view.shape:
                raise UserError(f"{what}: {name} must have shape {view.shape}, got {array.shape}")
            view[...] = array
        return flat


def aligned(size: int, dtype: np.dtype[Any]) -> np.ndarray:
    """Zeros that begin at a multiple of 64 bytes, so that no register straddles two cache lines."""
    raw = np.zeros(size * dtype.itemsize + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size * dtype.itemsize].view(dtype)


class HostParameters(Parameters):
    """Flat NumPy arrays, passed over by compiled code."""

    def __init__(self, config: AgentConfig, layout: Layout, side: Side | None = None) -> None:
        from dynaboltz.deep import steps

        super().__init__(config, layout)
        self.side = side or Side(shared=False)
        self._steps = steps
        self.online = aligned(layout.size, self.dtype)
        self.target = aligned(layout.size, self.dtype) if self.has_target else self.online
        self.acting = aligned(layout.size, self.dtype) if self.overlaps else self.online
        moments = (aligned(layout.size, self.dtype) for _ in range(2))
        self.first, self.second = moments if self.rule.moments else (self.online, self.online)
        self.gradients = aligned(self.rows * layout.size, self.dtype).reshape(self.rows, layout.size)
        self.trace = aligned(layout.size, self.dtype) if self.learns and not self.prints else None
        self.previous, self.spare = (aligned(layout.size, self.dtype) if self.prints else None for _ in range(2))

    def copy(self, source: Any, into: Any) -> None:
        """One copy in memory."""
        np.copyto(into, source)

    def host(self, flat: Any) -> np.ndarray:
        """The array itself."""
        array: np.ndarray = flat
        return array

    def fill(self, flat: Any, values: np.ndarray) -> None:
        """One copy in memory."""
        flat[...] = values

    def dot(self, a: Any, b: Any) -> float:
        """Σ a·b, in blocks that are added up in float64."""
        return float(self._steps.dot(a, b))

    def _step(self, factor: float) -> bool:
        constants = self._steps.constants(self.rule, self.updates)

        def part(where: slice) -> float:
            return self._steps.step(  # type: ignore[no-any-return]
                self.online[where], self.gradients[GRADIENT, where], self.first[where], self.second[where],
                constants, self.rate, factor,
            )  # fmt: skip

        return self._in_parts(part)

    def _step_and_trace(self, factor: float, share: float, decay: float) -> bool:
        constants = self._steps.constants(self.rule, self.updates)

        def part(where: slice) -> float:
            return self._steps.step_and_trace(  # type: ignore[no-any-return]
                self.online[where], self.gradients[GRADIENT, where], self.first[where], self.second[where],
                constants, self.rate, factor,
                self.gradients[CHANGE, where], share, self.trace[where], decay, self.exact,
            )  # fmt: skip

        return self._in_parts(part)

    def _in_parts(self, part: Callable[[slice], float]) -> bool:
        """All entries, or half of them here and half on the side; False if one is no longer finite."""
        if not self.side.shared:
            return not math.isnan(part(slice(None)))
        middle = self.layout.size // (2 * ALIGNMENT) * ALIGNMENT
        rest = self.side.begin(part, slice(middle, None))
        wrong = part(slice(middle))
        return not math.isnan(wrong + rest())
