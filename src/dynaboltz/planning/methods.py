"""The methods by name; a new one is a class with ``start`` and ``advance``, and a line here."""

from __future__ import annotations

from dynaboltz import text
from dynaboltz.errors import UserError
from dynaboltz.planning.in_place import GaussSeidel
from dynaboltz.planning.jacobi import Jacobi
from dynaboltz.planning.method import Method
from dynaboltz.planning.policy import Auto, ModifiedPolicyIteration
from dynaboltz.planning.target import is_optimal
from dynaboltz.summaries import Summary

METHODS: dict[str, type[Method]] = {entry.name: entry for entry in (Auto, ModifiedPolicyIteration, GaussSeidel, Jacobi)}
"""The classes by their name in text; a method's settings are the fields of its class."""


def parse_method(spec: str | Method, summary: Summary) -> Method:
    """The method that a spec describes; ``auto`` for a summary other than the maximum is ``jacobi``.

    >>> from dynaboltz import Fixed, hard_max
    >>> parse_method("mpi(evaluations=20)", Fixed(hard_max))
    mpi(20)
    """
    method: Method = spec if isinstance(spec, Method) else text.build("method", METHODS, text.parse(spec))
    if method.any_summary or is_optimal(summary):
        return method
    if isinstance(method, Auto):
        return Jacobi()
    raise UserError(
        f"method {method.name!r} computes the maximum only, not {summary}\n  use method 'jacobi', or summary 'hard_max'"
    )
