"""One update: targets, gradient, step, and what it says about c. It decides nothing about when."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynaboltz.deep.batch import Batch
from dynaboltz.deep.config import AgentConfig
from dynaboltz.deep.distributions import Distributions
from dynaboltz.deep.engine import Engine
from dynaboltz.deep.faults import NonFinite
from dynaboltz.deep.meta import FADED, Coefficient
from dynaboltz.deep.noise import Noise
from dynaboltz.deep.parameters import CHANGE, GRADIENT, REFERENCE
from dynaboltz.deep.target_rows import STATISTICS
from dynaboltz.deep.targets import Targets
from dynaboltz.envs.spec import Spec

Ahead = Callable[[], np.ndarray]
"""Waits for the values, or distributions, of the states that a batch leads to."""

LOSS, LEARNING = STATISTICS.index("loss"), STATISTICS.index("learning")


@dataclass(frozen=True, slots=True)
class Moment:
    """When an update is made."""

    update: int
    """Counted from 1."""
    step: int
    t: float
    """Time on the clock of β."""
    synced: bool
    """Whether the target network has been copied to since the beginning, or there is none."""


class Learner:
    """The networks and c, and how one batch changes them; with ``noise``, each pass over the batch has its own."""

    def __init__(self, config: AgentConfig, spec: Spec, engine: Engine, noise: Noise | None = None) -> None:
        self.engine, self.parameters = engine, engine.parameters
        self.summary = config.parsed_summary
        self.double, self.munchausen = config.double, config.munchausen > 0
        self.targets: Targets
        self._ahead: Callable[..., np.ndarray]
        if config.atoms == 1:
            self.targets, self._ahead = Targets(config, spec.n_actions), engine.values
        else:
            self.targets, self._ahead = Distributions(config, spec.n_actions), engine.distributions
        self._noise = noise
        self.coefficient = Coefficient(config) if config.c_learning != "off" else None
        self._period = config.c_period_updates if self.coefficient is not None else 1
        self._plain = self.targets.cotangents[GRADIENT : GRADIENT + 1]
        self.before: tuple[np.ndarray, np.ndarray] | None = None
        """Inputs and actions of the last τ, where c is learned as the paper prints it."""
        self.beta: float | None = None
        self._t = math.nan
        self.derivative = math.nan
        """∂J′/∂ψ of the last update (∂J′/∂c as printed), NaN where none was taken."""

    def begin(self, batch: Batch) -> Ahead:
        """Begin an update where it needs no weights that learn: the values ahead of it under the target network."""
        return self.engine.side.begin(self._ahead, batch.next_inputs, "target", self._draw())

    def update(self, batch: Batch, now: Moment, ahead: Ahead | None = None) -> None:
        """One gradient step on a batch, begun or not; its errors and statistics are in ``targets``."""
        place = now.update % self._period
        changes, judges = place == 0, place == 1 % self._period  # is a τ, is a τ′; of a period of 1 each is both
        learned = self.coefficient if changes or judges else None
        self.derivative = math.nan
        slope, bar = 0.0, None
        if now.t != self._t:  # a schedule costs a small network a fortieth of its update
            self._t, self.beta = now.t, (self.coefficient or self.summary).beta(now.t)
            if self.beta is not None and math.isnan(self.beta):
                raise NonFinite("β", self.beta, now.update, now.step)
        if learned is not None:
            slope = learned.slope(now.t) if now.synced and (judges if learned.printed else changes) else 0.0
            bar = learned.bar(now.t) if judges and self._meets(learned, now) else None
        self._evaluate(batch, slope, bar, now, ahead or self.begin(batch))
        if learned is None:
            self.engine.gradients(batch.action, self._plain, (GRADIENT,))
            finite = self.parameters.step()
        elif learned.printed:
            finite = self._as_printed(batch, learned, bar is not None, changes)
        else:
            finite = self._corrected(batch, learned, bar is not None, changes, judges)
        if not finite:
            what, value = self.parameters.not_finite() or ("a weight", math.nan)
            raise NonFinite(what, value, now.update, now.step)
        if learned is not None and not math.isfinite(learned.c):
            raise NonFinite("c", learned.c, now.update, now.step)
        if learned is not None:
            self._t = math.nan  # c has moved, and with it β

    def _meets(self, learned: Coefficient, now: Moment) -> bool:
        """Whether this batch is the τ′ of an update that depended on c."""
        return now.synced and self.before is not None if learned.printed else learned.share > 0

    def _evaluate(self, batch: Batch, slope: float, bar: float | None, now: Moment, ahead: Ahead) -> None:
        engine = self.engine
        online = engine.values(batch.next_inputs, "online", self._draw()) if self.double else None
        here_draw = self._draw() if self.munchausen else None
        q = engine.forward(batch.inputs, self._draw())
        following = ahead()
        engine.side.end()
        here = engine.values(batch.inputs, "target", here_draw) if self.munchausen else None
        self.targets(batch, q, following, beta=self.beta, online=online, here=here, slope=slope, bar=bar)
        if not math.isfinite(self.targets.counts[LOSS]):
            networks = (("online", q), ("target", following), ("online", online), ("target", here))
            for name, values in networks:
                if values is not None and not np.isfinite(values).all():
                    wrong = float(values[~np.isfinite(values)][0])
                    raise NonFinite(f"an action value of the {name} network", wrong, now.update, now.step)
            raise NonFinite("the loss", float(self.targets.counts[LOSS]), now.update, now.step)

    def _draw(self) -> np.ndarray | None:
        return None if self._noise is None else self._noise.draw()

    def _corrected(self, batch: Batch, learned: Coefficient, has_bar: bool, changes: bool, judges: bool) -> bool:
        parameters, cotangents = self.parameters, self.targets.cotangents
        moves = self.targets.counts[LEARNING] > 0
        apart = False
        # The gradient of the loss is there anyway: what is missing is 0 in the states where c̄ is as good as c.
        if has_bar:
            cotangents[REFERENCE] -= cotangents[GRADIENT]
            apart = bool(cotangents[REFERENCE].any())
        rows = (GRADIENT, *((CHANGE,) if moves else ()), *((REFERENCE,) if apart else ()))
        wanted = cotangents[: len(rows)] if rows == tuple(range(len(rows))) else cotangents[list(rows)]
        self.engine.gradients(batch.action, wanted, rows)
        if judges and learned.share > 0:
            self.derivative = parameters.dot(parameters.gradients[GRADIENT], parameters.trace)
            if apart:
                self.derivative += parameters.dot(parameters.gradients[REFERENCE], parameters.trace)
            learned.descend(self.derivative)
        if moves:
            finite = parameters.step_and_trace(learned.decay if learned.share > 0 else 0.0)
            learned.share = 1.0
            return finite
        if changes:
            learned.share *= learned.decay
            if learned.share > FADED:
                parameters.fade(learned.decay)
            else:
                learned.share = 0.0
        return parameters.step()

    def _as_printed(self, batch: Batch, learned: Coefficient, has_bar: bool, changes: bool) -> bool:
        """dθ′/dc = αγ ∂boltz_{β(c̄)}(Q(s′_next))/∂c·∂Q(s, a; θ)/∂θ, with s of the last batch and s′ of this one."""
        parameters, cotangents = self.parameters, self.targets.cotangents
        rows = (GRADIENT, REFERENCE) if has_bar else (GRADIENT,)
        self.engine.gradients(batch.action, cotangents[list(rows)], rows)
        if has_bar:
            self.derivative = 0.0
            if cotangents[CHANGE].any():
                assert self.before is not None
                inputs, action = self.before
                with parameters.as_before():
                    self.engine.forward(inputs)
                    self.engine.gradients(action, cotangents[CHANGE : CHANGE + 1], (CHANGE,))
                inner = parameters.dot(parameters.gradients[REFERENCE], parameters.gradients[CHANGE])
                self.derivative = parameters.rate * inner
            learned.descend(self.derivative)
        self.before = None
        if changes:
            self.before = batch.inputs.copy(), batch.action.copy()
            parameters.keep()
        return parameters.step()

    def state(self) -> dict[str, Any]:
        """Everything :meth:`restore` needs."""
        return {
            "parameters": self.parameters.state(),
            "coefficient": None if self.coefficient is None else self.coefficient.state(),
            "before": None if self.before is None else list(self.before),
            "beta": self.beta,
            "derivative": self.derivative,
        }

    def restore(self, tree: Mapping[str, Any]) -> None:
        """Go back to a saved state."""
        self.parameters.restore(tree["parameters"])
        if self.coefficient is not None:
            self.coefficient.restore(tree["coefficient"])
        before = tree["before"]
        self.before = None if before is None else (np.array(before[0]), np.array(before[1]))
        self.beta, self._t = tree["beta"], math.nan
        self.derivative = float(tree["derivative"])
