"""The two numbers that bound the Boltzmann operator on m actions, and what is derived from them.

``W((m−1)/e)`` is the largest distance to the maximum in units of 1/β; ``L(m)`` is the Lipschitz constant in
the sup norm, the same for every β. Neither is in the paper, which uses log m and no Lipschitz constant.
SciPy's special functions are imported on first use, so that ``import dynaboltz`` stays light.
"""

from __future__ import annotations

import math
from functools import lru_cache

from dynaboltz.errors import UserError


def check_actions(m: int) -> int:
    """``m`` itself if it is a number of actions: an integer of at least 1."""
    if isinstance(m, bool) or not isinstance(m, int) or m < 1:
        raise UserError(f"the number of actions m must be an integer of at least 1, got {m!r}")
    return m


@lru_cache(maxsize=1024)
def gap_constant(m: int) -> float:
    """``W((m−1)/e)``: the supremum of β·(max x − boltz_β(x)) over x in R^m, attained.

    W is the principal branch of Lambert's function. The maximiser has one entry on top and m − 1 entries lower by
    (1 + W((m−1)/e))/β. Smaller than log m, the paper's constant (Pan et al. 2020, Ineq. 11): by 2.5 times for m = 2,
    and by less than 2 from m = 18 on.

    >>> round(gap_constant(18), 6)
    1.456901
    """
    from scipy.special import lambertw

    return float(lambertw((check_actions(m) - 1) / math.e).real)


@lru_cache(maxsize=1024)
def lipschitz_constant(m: int) -> float:
    """``L(m)``, the sup-norm Lipschitz constant of boltz_β on R^m, the same for every β > 0.

    The root of tanh(L − ½ log(m−1)) = 1/L; L(2) = 1.19968 solves coth x = x. So T_β is a γ·L(m)-contraction for
    every β when γ < 1/L(m). For m = 1 the operator is the identity and L = 1.

    >>> round(lipschitz_constant(2), 5)
    1.19968
    """
    if check_actions(m) == 1:
        return 1.0
    from scipy.optimize import brentq

    half_log = 0.5 * math.log(m - 1)
    low, high = max(1.0, half_log), 2.0 + half_log
    return float(brentq(lambda x: math.tanh(x - half_log) - 1.0 / x, low, high, xtol=1e-15, rtol=1e-15))
