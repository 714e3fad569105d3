"""Action-value summary operators: q ↦ v for NumPy, torch, JAX and any other array library.

Each is a callable with ``weights``, ``gradient``, ``beta_derivative`` and ``traits``; see
:class:`~dynaboltz.operators.operator.Operator`.
"""

from dynaboltz.operators.averages import boltzmann, epsilon_mixture, hard_max, mean
from dynaboltz.operators.constants import gap_constant, lipschitz_constant
from dynaboltz.operators.library import OPERATORS
from dynaboltz.operators.logarithms import log_sum_exp, mellowmax, soft_mellowmax
from dynaboltz.operators.operator import Operator, Traits

__all__ = [
    "OPERATORS",
    "Operator",
    "Traits",
    "boltzmann",
    "epsilon_mixture",
    "gap_constant",
    "hard_max",
    "lipschitz_constant",
    "log_sum_exp",
    "mean",
    "mellowmax",
    "soft_mellowmax",
]
