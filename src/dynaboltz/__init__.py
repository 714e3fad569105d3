"""dynaboltz: dynamic Boltzmann softmax Bellman updates, from the operator to the paper's claims.

An operator turns action values into a state value, a schedule turns time into β, and a summary is an operator whose β
follows a schedule:

>>> from dynaboltz import Dynamic, boltzmann, power
>>> Dynamic(boltzmann, power(2))([0.0, 1.0], t=2).item()  # boltzmann at β = 4
0.9820137900379085
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

_HOME = {
    **dict.fromkeys(("DynaboltzError", "MissingExtraError", "UnknownNameError", "UserError"), "errors"),
    **dict.fromkeys(("Operator", "boltzmann", "epsilon_mixture", "hard_max", "log_sum_exp", "mean"), "operators"),
    **dict.fromkeys(("mellowmax", "soft_mellowmax"), "operators"),
    **dict.fromkeys(("Dynamic", "Fixed", "Summary", "parse_summary"), "summaries"),
}
"""The module of each name that is not a schedule's. Names are imported on first use, so that the command line starts
without NumPy."""


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'dynaboltz' has no attribute {name!r}")
    value = getattr(import_module(f"dynaboltz.{_HOME.get(name, 'schedules')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
