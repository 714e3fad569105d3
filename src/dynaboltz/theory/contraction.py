"""When value iteration with a fixed β does contract, although boltz_β is no non-expansion.

Ours: boltz_β has a sup-norm Lipschitz constant L(m) > 1 that does not depend on β, so T_β is a contraction
for every β as soon as γ·L(m) < 1, and its fixed point is then unique.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dynaboltz.operators.constants import check_actions, lipschitz_constant
from dynaboltz.theory.checks import check_beta_or_zero, check_discount, check_not_negative


@dataclass(frozen=True, slots=True)
class ContractionCertificate:
    """What γ·L(m) proves about a value function with a known residual ``‖T_β V − V‖_∞``."""

    factor: float
    """γ·L(m), the Lipschitz constant of T_β that holds for every β."""

    contracts: bool
    """Whether the factor is below 1, so that T_β has one fixed point and iteration reaches it."""

    error_bound: float
    """A bound on the distance to the fixed point in the sup norm; ∞ without a contraction."""


def contraction_factor(discount: float, m: int) -> float:
    """``γ·L(m)``, a Lipschitz constant of T_β in the sup norm for every β.

    Ours: |T_β V − T_β U| ≤ L(m)·max_a |Q_V − Q_U| ≤ γ L(m) ‖V − U‖.

    >>> round(contraction_factor(0.8, 2), 4)
    0.9597
    """
    return check_discount(discount) * lipschitz_constant(check_actions(m))


def largest_contracting_discount(m: int) -> float:
    """``1/L(m)``: T_β contracts for every β if the discount is below it.

    Ours.

    >>> round(largest_contracting_discount(4), 4)
    0.703
    """
    return 1.0 / lipschitz_constant(check_actions(m))


def contraction_certificate(residual: float, discount: float, m: int) -> ContractionCertificate:
    """Whether T_β contracts, and the bound ``‖T_β V − V‖/(1 − γL(m))`` on the distance to its fixed point.

    Ours, from Banach's theorem. The fixed point is that of T_β, within ``corollary_sharp`` of V*.

    Args:
        residual: ‖T_β V − V‖_∞.
        discount: γ in [0, 1).
        m: Number of actions.

    >>> contraction_certificate(0.1, 0.5, 1)
    ContractionCertificate(factor=0.5, contracts=True, error_bound=0.2)
    """
    residual, factor = check_not_negative("the residual", residual), contraction_factor(discount, m)
    contracts = factor < 1.0
    return ContractionCertificate(factor, contracts, residual / (1.0 - factor) if contracts else math.inf)


def is_non_expansion(beta: float, spread: float) -> bool:
    """Whether ``β·D ≤ 1``, so that boltz_β is a non-expansion between any rows with ``max q − min q ≤ D``.

    Ours: ∂boltz_β/∂q_a = p_a(1 + β(q_a − boltz_β)) is then at least 0 and sums to 1 over the actions, and the
    set of such rows is convex.

    >>> is_non_expansion(2.0, 0.5), is_non_expansion(2.0, 0.6)
    (True, False)
    """
    beta, spread = check_beta_or_zero(beta), check_not_negative("the spread of a row", spread)
    return spread == 0.0 or beta * spread <= 1.0
