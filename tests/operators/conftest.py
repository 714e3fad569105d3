"""The contract's two axes: every operator with its naive formula, and every array library in both precisions."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import settings

from dynaboltz import boltzmann, epsilon_mixture, hard_max, log_sum_exp, mean, mellowmax, soft_mellowmax
from dynaboltz.operators import OPERATORS, Operator

Row = list[float]

settings.register_profile("steady", deadline=None)  # the first example may compile or import
settings.load_profile("steady")


def naive_boltzmann(q: Row, beta: float) -> float:
    e = [math.exp(beta * x) for x in q]
    return sum(w * x for w, x in zip(e, q, strict=True)) / sum(e)


def naive_log_sum_exp(q: Row, beta: float) -> float:
    return math.log(sum(math.exp(beta * x) for x in q)) / beta


def naive_mellowmax(q: Row, beta: float) -> float:
    return math.log(sum(math.exp(beta * x) for x in q) / len(q)) / beta if beta else sum(q) / len(q)


def naive_soft_mellowmax(q: Row, beta: float) -> float:
    e = [math.exp(2.0 * x) for x in q]
    if beta == 0:
        return naive_boltzmann(q, 2.0)
    return math.log(sum(w * math.exp(beta * x) for w, x in zip(e, q, strict=True)) / sum(e)) / beta


@dataclass(frozen=True)
class Case:
    """An operator, and what the contract's tests need to know of it."""

    operator: Operator
    naive: Callable[[Row, float], float]

    def arguments(self, beta: Any) -> tuple[Any, ...]:
        """Return what the call takes beside q: nothing for an operator without a β."""
        return (beta,) if self.operator.traits.takes_beta else ()

    def allows(self, beta: float) -> bool:
        return beta > 0 or self.operator.traits.finite_at_zero

    def reference(self, q: Any, beta: float) -> Any:
        """Return the naive value of each row, −inf and NaN left out."""
        return np.apply_along_axis(
            lambda row: self.naive(row[np.isfinite(row)].tolist(), beta), -1, np.asarray(q, float)
        )


CASES = (
    Case(hard_max, lambda q, _: max(q)),
    Case(mean, lambda q, _: sum(q) / len(q)),
    Case(boltzmann, naive_boltzmann),
    Case(log_sum_exp, naive_log_sum_exp),
    Case(mellowmax, naive_mellowmax),
    Case(soft_mellowmax(2.0), naive_soft_mellowmax),
    Case(epsilon_mixture(0.1), lambda q, _: 0.9 * max(q) + 0.1 * sum(q) / len(q)),
)
assert {type(case.operator) for case in CASES} == set(OPERATORS.values()), "the contract must cover every operator"


@dataclass(frozen=True)
class Library:
    """One array library at one precision, behind the few calls that differ."""

    name: str
    dtype: str

    @property
    def eps(self) -> float:
        return float(np.finfo(self.dtype).eps)

    def array(self, x: Any) -> Any:
        with np.errstate(over="ignore"):  # 1e300 in single precision is ∞
            x = np.array(x, self.dtype)
        return self._asarray(x)

    def flags(self, x: Any) -> Any:
        """Return a boolean array."""
        return self._asarray(np.array(x, bool))

    def _asarray(self, x: Any) -> Any:
        asarray: dict[str, Any] = {"numpy": np.asarray, "torch": torch.as_tensor, "jax": jnp.asarray}
        return asarray[self.name](x)

    def owns(self, x: Any) -> bool:
        """Whether ``x`` is of this library and precision."""
        kind: Any = {"numpy": (np.ndarray, np.generic), "torch": torch.Tensor, "jax": jax.Array}[self.name]
        return isinstance(x, kind) and str(x.dtype).removeprefix("torch.") == self.dtype

    def numpy(self, x: Any) -> Any:
        return np.asarray(x.detach() if self.name == "torch" else x, np.float64)

    def gradient(self, function: Callable[..., Any], *arguments: Any, of: int = 0) -> Any:
        """Return the library's own derivative of the sum of ``function``'s values, as a NumPy array; jitted in JAX."""
        return self.numpy(self._jit(self._gradient(lambda *a: function(*a).sum(), of))(*arguments))

    def second_gradients(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return the derivatives, by both arguments, of a function of all first derivatives."""
        first = self._gradient(lambda *a: function(*a).sum(), (0, 1))
        second = self._gradient(lambda *a: sum((g**2).sum() + g.sum() for g in first(*a)), (0, 1))
        return [self.numpy(g) for g in self._jit(second)(*arguments)]

    def _jit(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function if self.name == "torch" else jax.jit(function)

    def _gradient(self, function: Callable[..., Any], of: int | tuple[int, int]) -> Callable[..., Any]:
        differentiate: Any = torch.func.grad if self.name == "torch" else jax.grad
        gradient: Callable[..., Any] = differentiate(function, argnums=of)
        return gradient


def _libraries(names: tuple[str, ...]) -> list[Library]:
    return [Library(name, dtype) for name in names for dtype in ("float64", "float32")]


def _precision(library: Library) -> contextlib.AbstractContextManager[Any]:
    return jax.enable_x64(new_val=library.dtype == "float64") if library.name == "jax" else contextlib.nullcontext()


@pytest.fixture(scope="session", params=CASES, ids=lambda case: case.operator.name)
def case(request: pytest.FixtureRequest) -> Any:
    """Every operator."""
    return request.param


@pytest.fixture(
    scope="session", params=[c for c in CASES if c.operator.traits.takes_beta], ids=lambda case: case.operator.name
)
def sharp_case(request: pytest.FixtureRequest) -> Any:
    """Every operator that has a β."""
    return request.param


@pytest.fixture(params=_libraries(("numpy", "torch", "jax")), ids=lambda lib: f"{lib.name}-{lib.dtype}")
def library(request: pytest.FixtureRequest) -> Iterator[Any]:
    """NumPy, torch and JAX, in double and single precision."""
    with _precision(request.param):
        yield request.param


@pytest.fixture(params=_libraries(("torch", "jax")), ids=lambda lib: f"{lib.name}-{lib.dtype}")
def autograd(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The libraries that differentiate, in double and single precision."""
    with _precision(request.param):
        yield request.param
