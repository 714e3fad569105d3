"""dynaboltz: dynamic Boltzmann softmax Bellman updates, from the operator to the paper's claims.

An operator turns action values into a state value, a schedule turns time into β, and a summary is an operator whose β
follows a schedule:

>>> from dynaboltz import Dynamic, boltzmann, power
>>> Dynamic(boltzmann, power(2))([0.0, 1.0], t=2).item()  # boltzmann at β = 4
0.9820137900379085
"""

from dynaboltz.errors import DynaboltzError, MissingExtraError, UnknownNameError, UserError
from dynaboltz.operators import (
    Operator,
    boltzmann,
    epsilon_mixture,
    hard_max,
    log_sum_exp,
    mean,
    mellowmax,
    soft_mellowmax,
)
from dynaboltz.schedules import (
    Schedule,
    capped,
    constant,
    exponential,
    linear,
    logarithmic,
    parse_schedule,
    piecewise,
    power,
)
from dynaboltz.summaries import Dynamic, Fixed, Summary, parse_summary

__version__ = "0.1.0"

__all__ = [
    "DynaboltzError",
    "Dynamic",
    "Fixed",
    "MissingExtraError",
    "Operator",
    "Schedule",
    "Summary",
    "UnknownNameError",
    "UserError",
    "boltzmann",
    "capped",
    "constant",
    "epsilon_mixture",
    "exponential",
    "hard_max",
    "linear",
    "log_sum_exp",
    "logarithmic",
    "mean",
    "mellowmax",
    "parse_schedule",
    "parse_summary",
    "piecewise",
    "power",
    "soft_mellowmax",
]
