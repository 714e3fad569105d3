"""Planning: a model in, values, a greedy policy and a proven error out."""

from dynaboltz.planning.certificate import Certificate
from dynaboltz.planning.method import Method
from dynaboltz.planning.methods import METHODS
from dynaboltz.planning.outcome import Progress, Solution, Trace
from dynaboltz.planning.solve import solve

__all__ = ["METHODS", "Certificate", "Method", "Progress", "Solution", "Trace", "solve"]
