"""Rows of action values as every operator sees them: centred at their maximum, with illegal actions set aside.

Subtracting the maximum *before* multiplying by β is what keeps every operator exact at any β and any scale; it is
done here and nowhere else. Where the caller allows it, an illegal action is a value of −inf or a False in the mask.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dynaboltz.errors import UserError
from dynaboltz.operators.arrays import Values, as_beta, as_mask, as_values, readable, to_numpy, truth


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Centred rows, actions on the last axis, and β; ``top``, sums and a β by row keep a last axis of length 1."""

    xp: Any
    q: Values
    """The values themselves, −inf where illegal."""
    top: Values
    """The largest legal value of each row."""
    below: Values
    """``q − top``, at most 0; 0 where illegal."""
    legal: Values
    beta: Any

    @classmethod
    def of(cls, q: Any, beta: Any, *, axis: int, mask: Any) -> Rows:
        """Check everything a caller can get wrong and centre the rows."""
        xp, q = as_values(q, axis)
        if mask is not None:
            q = xp.where(as_mask(xp, q, mask), q, xp.asarray(-float("inf"), dtype=q.dtype))
        if axis not in (-1, q.ndim - 1):
            q = xp.moveaxis(q, axis, -1)
        if beta is not None:
            beta = as_beta(xp, q, beta, rows=tuple(q.shape[:-1]))
        top = xp.max(q, axis=-1, keepdims=True)
        if readable(q) and not truth(xp.all(xp.isfinite(top))):
            raise UserError(_why_not_finite(to_numpy(q)))
        legal = q != -float("inf")
        below = xp.where(legal, q - top, xp.zeros_like(q))
        return cls(xp, q, top, below, legal, beta)

    def sum(self, x: Values) -> Values:
        """The sum over actions."""
        return self.xp.sum(x, axis=-1, keepdims=True)

    def only_legal(self, x: Values) -> Values:
        """``x`` where the action is legal, else 0."""
        return self.xp.where(self.legal, x, self.xp.zeros_like(x))

    def exp(self, rate: Any) -> Values:
        """``e^{rate·(q − top)}``, 0 where illegal; every row has an entry that is 1."""
        return self.only_legal(self.xp.exp(rate * self.below))

    def softmax(self, rate: Any) -> Values:
        """The distribution ∝ e^{rate·q} over the legal actions; uniform at rate 0."""
        e = self.exp(rate)
        return e / self.sum(e)

    def uniform(self) -> Values:
        """The uniform distribution over the legal actions."""
        legal = self.xp.astype(self.legal, self.below.dtype)
        return legal / self.sum(legal)

    def best(self) -> Values:
        """The uniform distribution over the maximisers."""
        tied = self.xp.astype(self.legal & (self.below == 0), self.below.dtype)
        return tied / self.sum(tied)

    def bottom(self) -> Values:
        """The smallest legal value of each row."""
        return self.xp.min(self.xp.where(self.legal, self.q, self.top), axis=-1, keepdims=True)

    def zeros(self) -> Values:
        """Zeros, one a row."""
        return self.xp.zeros_like(self.top)


def _why_not_finite(q: Any) -> str:
    import numpy as np

    top = q.max(axis=-1)
    row = np.argwhere(~np.isfinite(top))[0]
    where = f"in row {tuple(int(i) for i in row)}" if q.ndim > 1 else "in the row"
    values = q[tuple(row)]
    if np.isneginf(top[tuple(row)]):
        return (
            f"no legal action {where}: all {len(values)} values are masked or -inf\n"
            "  a terminal state has no value to summarise; give it the value 0 instead of calling an operator"
        )
    action = int(np.argwhere(~np.isfinite(values) & ~np.isneginf(values))[0, 0])
    return (
        f"action values must be finite (or -inf for an illegal action), got {values[action]} {where}, action {action}"
    )
