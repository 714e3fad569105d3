"""Every operator by name.

A new one is a class in ``averages.py``, ``logarithms.py`` or a file beside them, and a line here.
"""

from __future__ import annotations

from dynaboltz.operators.averages import Boltzmann, EpsilonMixture, HardMax, Mean
from dynaboltz.operators.logarithms import LogSumExp, Mellowmax, SoftMellowmax
from dynaboltz.operators.operator import Operator

OPERATORS: dict[str, type[Operator]] = {
    entry.name: entry for entry in (HardMax, Mean, Boltzmann, LogSumExp, Mellowmax, SoftMellowmax, EpsilonMixture)
}
"""The classes by their name in text; an operator's parameters are the fields of its class."""
