"""Optimisers as elementwise rules: a gradient entry and two moments ↦ a step, new moments and the step's slope.

Each rule is written once, with arithmetic that means the same for a number in a compiled loop and for a whole tensor
on any device. θ′ = θ − α·step. The slope D = ∂step/∂g is what the meta-gradient needs (Pan et al. 2020 leave it out);
it is returned in two parts, D = direct − through, where ``direct`` holds the preconditioner constant.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar, final

from dynaboltz import text
from dynaboltz.errors import UserError
from dynaboltz.scalars import as_float

TINY = 1e-30
"""Keeps g/√v finite where both are 0; far below any gradient that float32 can square."""


@dataclass(frozen=True)
class Rule(ABC):
    """An optimiser without its state."""

    name: ClassVar[str]
    moments: ClassVar[int]
    """How many of the two moments it uses."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = as_float(getattr(self, field.name))
            largest = float("inf") if field.name == "epsilon" else 1.0
            if value is None or not 0 <= value < largest or (field.name == "epsilon" and value == 0):
                allowed = "a finite number above 0" if field.name == "epsilon" else "from 0 to below 1"
                raise UserError(f"{self.name}: {field.name} must be {allowed}, got {getattr(self, field.name)!r}")
            object.__setattr__(self, field.name, value)

    @abstractmethod
    def constants(self, k: int) -> tuple[float, ...]:
        """What :meth:`entry` needs at the k-th update, counted from 1."""

    @staticmethod
    @abstractmethod
    def entry(g: Any, m: Any, n: Any, p: Any) -> tuple[Any, Any, Any, Any, Any]:
        """(step, first moment, second moment, direct, through) of one entry; ``p`` are the constants."""

    def __str__(self) -> str:
        """The spec that parses back to this rule."""
        return text.write(self.name, self)


@final
@dataclass(frozen=True)
class SGD(Rule):
    """``θ ← θ − α g``."""

    name: ClassVar[str] = "sgd"
    moments: ClassVar[int] = 0

    def constants(self, k: int) -> tuple[float, ...]:  # noqa: ARG002
        """Nothing but the one."""
        return (1.0,)

    @staticmethod
    def entry(g: Any, m: Any, n: Any, p: Any) -> tuple[Any, Any, Any, Any, Any]:
        """The step is the gradient."""
        return g, m, n, p[0] + 0.0 * g, 0.0 * g


@final
@dataclass(frozen=True)
class RMSProp(Rule):
    """``n ← ρ n + (1−ρ) g²;  θ ← θ − α g/(√n + ε)``: as in torch, with ε outside the root."""

    decay: float = 0.99
    epsilon: float = 1e-8
    name: ClassVar[str] = "rmsprop"
    moments: ClassVar[int] = 2

    def constants(self, k: int) -> tuple[float, ...]:  # noqa: ARG002
        """ρ, 1 − ρ and ε."""
        return self.decay, 1.0 - self.decay, self.epsilon

    @staticmethod
    def entry(g: Any, m: Any, n: Any, p: Any) -> tuple[Any, Any, Any, Any, Any]:
        """D = 1/(s+ε) − (1−ρ) g²/(s (s+ε)²), s = √n."""
        rho, rest, epsilon = p
        n = rho * n + rest * g * g
        s = n**0.5
        direct = 1.0 / (s + epsilon)
        return g * direct, m, n, direct, rest * g * (g / (s + TINY)) * direct * direct


@final
@dataclass(frozen=True)
class DeepMindRMSProp(Rule):
    """``m ← ρ m + (1−ρ) g;  n ← ρ n + (1−ρ) g²;  θ ← θ − α g/√(n − m² + ε)`` (Mnih et al. 2015, released code).

    Centred, with ε *inside* the root and no heavy-ball term: "gradient momentum" is the average m. With a mean loss
    over 32 transitions instead of their sum, ε = 0.01/32² is the same optimiser.
    """

    decay: float = 0.95
    epsilon: float = 0.01
    name: ClassVar[str] = "deepmind_rmsprop"
    moments: ClassVar[int] = 2

    def constants(self, k: int) -> tuple[float, ...]:  # noqa: ARG002
        """ρ, 1 − ρ and ε."""
        return self.decay, 1.0 - self.decay, self.epsilon

    @staticmethod
    def entry(g: Any, m: Any, n: Any, p: Any) -> tuple[Any, Any, Any, Any, Any]:
        """D = E^(−1/2) − (1−ρ) g (g − m) E^(−3/2), E = n − m² + ε."""
        rho, rest, epsilon = p
        m = rho * m + rest * g
        n = rho * n + rest * g * g
        variance = n - m * m
        direct = 1.0 / (0.5 * (variance + abs(variance)) + epsilon) ** 0.5  # rounding must not make it negative
        return g * direct, m, n, direct, rest * g * (g - m) * direct * direct * direct


@final
@dataclass(frozen=True)
class Adam(Rule):
    """``m ← β₁ m + (1−β₁) g;  n ← β₂ n + (1−β₂) g²;  θ ← θ − α m̂/(√n̂ + ε)`` (Kingma & Ba 2015)."""

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    name: ClassVar[str] = "adam"
    moments: ClassVar[int] = 2

    def constants(self, k: int) -> tuple[float, ...]:
        """β₁, 1 − β₁, β₂, 1 − β₂, ε and the corrections of the bias after k updates."""
        b1, b2 = self.beta1, self.beta2
        return b1, 1.0 - b1, b2, 1.0 - b2, self.epsilon, 1.0 / (1.0 - b1**k), 1.0 / (1.0 - b2**k)

    @staticmethod
    def entry(g: Any, m: Any, n: Any, p: Any) -> tuple[Any, Any, Any, Any, Any]:
        """D = (1−β₁)/(1−β₁ᵏ)/(s+ε) − m̂ (1−β₂) g/((1−β₂ᵏ) s (s+ε)²), s = √n̂."""
        b1, rest1, b2, rest2, epsilon, correct1, correct2 = p
        m = b1 * m + rest1 * g
        n = b2 * n + rest2 * g * g
        s = (n * correct2) ** 0.5
        inverse = 1.0 / (s + epsilon)
        step = m * correct1 * inverse
        return step, m, n, rest1 * correct1 * inverse, step * (rest2 * correct2) * (g / (s + TINY)) * inverse


RULES: dict[str, type[Rule]] = {entry.name: entry for entry in (SGD, RMSProp, DeepMindRMSProp, Adam)}
"""Every optimiser by its name in text."""


def parse_rule(spec: str, where: str = "") -> Rule:
    """The optimiser that a spec describes.

    >>> str(parse_rule("deepmind_rmsprop(epsilon=1e-5)"))
    'deepmind_rmsprop(epsilon=1e-05)'
    """
    call = text.parse(spec, where, example="adam(epsilon=1e-8)")
    rule: Rule = text.build("optimiser", RULES, call, where)
    return rule
