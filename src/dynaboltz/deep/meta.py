"""Learning c of β_t = c·t^p: the meta-gradient in closed form (MATHEMATICS 4.4; Pan et al. 2020, Section 6, corrected).

With ψ = log c, batch τ of an update θ → θ′ and the next batch τ′, whose loss against the target under c̄ is J′:

    w_j = 1[|δ_j| < bound]·γ(1−d_j)·β·Var_j        what ψ does to the targets of τ; 0 where β is capped
    v   = Σ_j w_j ∇Q(s_j, a_j; θ) / B               so that ∂g/∂ψ = −v
    z   ← μ z + α D∘v                              dθ′/dψ, through the optimiser's own slope D and the clipped norm
    ∂J′/∂ψ = ⟨∇J′(τ′, θ′), z⟩

Nothing here is of second order: targets depend on θ⁻ alone. The next batch is the one that the next update learns from,
so where c̄ is c itself ∇J′ is the gradient that update needs anyway; where every w_j is 0 nothing is computed.

With a period of k updates τ is the batch of update n·k and τ′ that of update n·k + 1, for every n: z, and with it μ, is
of the updates n·k alone, as if ψ did nothing to the others. At k = 1 each batch is the τ′ of the one before and a τ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dynaboltz.deep.config import AgentConfig
from dynaboltz.deep.rules import parse_rule

FADED = 1e-30
"""A trace that has decayed to this share of itself is 0."""


class Coefficient:
    """c, its optimiser, and the temperatures that follow from it."""

    def __init__(self, config: AgentConfig) -> None:
        power = config.power
        self.p, self.cap = power.p, config.largest_beta
        self.psi = math.log(power.c)
        self.policy, self.printed = config.c_bar, config.c_learning == "as_printed"
        self.reference = config.c_reference or power.c
        self.rule, self.rate = parse_rule(config.c_optimiser), config.c_learning_rate
        self.largest_step, self.decay = config.c_largest_step, config.c_trace
        self.first = self.second = 0.0
        self.updates = 0
        self.share = 0.0
        """What is left of the trace since it was last added to: 0 says that the trace is 0."""

    @property
    def c(self) -> float:
        """The coefficient; ∞ where it has overflowed."""
        try:
            return math.exp(self.psi)
        except OverflowError:
            return math.inf

    def beta(self, t: float) -> float:
        """``min(c·t^p, cap)``."""
        return self._power(self.c, t)

    def slope(self, t: float) -> float:
        """dβ/dψ, which is β below the cap and 0 above; as the paper prints it dβ/dc at c̄."""
        if not self.printed:
            beta = self.beta(t)
            return beta if beta < min(self.cap, math.inf) else 0.0
        bar = self.bar(t)
        return self._power(1.0, t, math.inf) if bar is not None and bar < min(self.cap, math.inf) else 0.0

    def bar(self, t: float) -> float | None:
        """β under c̄; None where the meta-objective is the loss itself."""
        if self.policy == "infinity":
            return math.inf
        if self.policy == "fixed":
            return self._power(self.reference, t)
        return self.beta(t) if self.printed else None

    def _power(self, c: float, t: float, cap: float | None = None) -> float:
        try:
            return float(min(c * t**self.p, self.cap if cap is None else cap))
        except OverflowError:
            return self.cap if cap is None else cap

    def descend(self, derivative: float) -> None:
        """One step of ψ along ∂J′/∂ψ; as the paper prints it, of c along ∂J′/∂c."""
        self.updates += 1
        if self.printed:
            moved = 1.0 - self.rate * derivative / self.c
            step = math.log(moved) if moved > 0 else -math.inf if moved <= 0 else math.nan
        else:
            step, self.first, self.second, _, _ = self.rule.entry(
                derivative, self.first, self.second, self.rule.constants(self.updates)
            )
            step *= -self.rate
        self.psi += max(-self.largest_step, min(self.largest_step, step)) if not math.isnan(step) else math.nan

    def state(self) -> dict[str, Any]:
        """Everything :meth:`restore` needs."""
        return {
            "psi": self.psi, "first": self.first, "second": self.second, "updates": self.updates, "share": self.share,
        }  # fmt: skip

    def restore(self, tree: Mapping[str, Any]) -> None:
        """Go back to a saved state."""
        self.psi, self.first, self.second = float(tree["psi"]), float(tree["first"]), float(tree["second"])
        self.updates, self.share = int(tree["updates"]), float(tree["share"])
