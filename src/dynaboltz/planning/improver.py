"""Max backups that read only the rows that can be greedy, and are the same to the bit as if they read all.

An action value that was computed once bounds the row from then on: it rises by no more than the values did. A row whose
bound is not above the value of another row is left out: the temporary elimination of actions of MacQueen (1967) and
Hastings and van Nunen (1977). No bound on V* is needed, and nothing is left out of the certificate.

From V to V' let no entry of V' − V be above h. Then Σ p (V' − V) ≤ σh, σ the largest sum of a row if h ≥ 0, or else the
smallest. A computed action value is off by at most the ε of :mod:`~dynaboltz.planning.certificate`, then and now.
``rise`` adds up γσh and both ε over the improvements, and a bound is kept as its value less the rise at the time. Each
improvement also adds eight units of the numbers that it adds up, at least twice what their sums can lose. The first
bounds are the rewards, which the rows are worth where every value is 0.
"""

from __future__ import annotations

import numpy as np

from dynaboltz.planning.certificate import backup_rounding
from dynaboltz.planning.horizon import UNIT
from dynaboltz.planning.problem import Change, Choice, Floats, Problem

LEFT_OUT = 0.5
"""The share of the rows from which on leaving them out is faster than reading them all."""


class Improver:
    """Improves and evaluates the policy of one solve.

    It remembers what makes that fast, the policy's chain and the bounds of the rows, and nothing that changes a result.
    """

    def __init__(self, problem: Problem, choice: Choice) -> None:
        from dynaboltz.planning import chains

        mdp, self.problem, self.kernels = problem.mdp, problem, chains
        room = np.empty(mdp.n_states + 1, mdp.row_ptr.dtype)
        chains.rooms_of(problem.model, room)
        size = int(room[-1])
        self.chain = chains.Chain(
            room, np.zeros(mdp.n_states, mdp.row_ptr.dtype),
            np.empty(size, mdp.next_state.dtype), np.empty(size, mdp.probability.dtype), np.zeros(mdp.n_states),
        )  # fmt: skip
        problem.each(lambda first, last: chains.follow(problem.model, self.chain, first, last, choice))
        self.values, self.rise = np.zeros(mdp.n_states), 0.0  # where a row is worth its reward
        self.sparse = False
        self.bound = mdp.reward.astype(np.float64)
        self.most = np.where(np.diff(mdp.state_ptr) > 0, np.inf, -np.inf)  # a terminal state has no row to look at

    def improve(self, values: Floats, backup: Floats, choice: Choice) -> Change:
        """T_m values into ``backup``; ``choice``, the policy so far, becomes greedy."""
        problem, horizon = self.problem, self.problem.horizon
        moved = problem.each(lambda first, last: self.kernels.moved(first, last, values, self.values))
        high, size = (max(column) for column in zip(*moved, strict=True))
        step = high * (horizon.largest_row_sum if high >= 0.0 else horizon.smallest_row_sum)
        error = 0.0  # as long as every value is 0, a row is worth its reward, which nothing rounds
        if size > 0.0 or self.rise != 0.0:
            error = backup_rounding(horizon, problem.reward_bound, size)
            error += 8 * UNIT * (problem.reward_bound + horizon.largest_row_sum * size + abs(self.rise) + abs(step))
        self.rise += step + error
        kernel = self.kernels.improve if size == 0.0 or self.sparse else self.kernels.improve_all
        found = problem.each(
            lambda first, last: kernel(
                problem.model, self.chain, first, last, problem.most_actions, problem.discount, values, backup, choice,
                self.bound, self.most, self.rise,
            )
        )  # fmt: skip
        self.rise += error
        self.sparse = size > 0.0 and sum(row[3] for row in found) > LEFT_OUT * problem.mdp.n_rows
        return Change.of([row[:3] for row in found])

    def evaluate(self, old: Floats, new: Floats) -> float:
        """T_μ old into ``new``; returns the span of ``new − old``."""
        kernel, discount = self.kernels.evaluate, self.problem.discount
        low, high = zip(
            *self.problem.each(lambda first, last: kernel(self.chain, first, last, discount, old, new)), strict=True
        )
        return float(max(high) - min(low))

    def evaluate_in_place(self, values: Floats, old: Floats, *, forward: bool) -> None:
        """T_μ state by state within each block, other blocks read from ``old``."""
        np.copyto(old, values)
        discount = self.problem.discount
        self.problem.each(
            lambda first, last: self.kernels.evaluate_in_place(self.chain, first, last, forward, discount, old, values),
            self.problem.blocks,
        )


def first_choice(problem: Problem, choice: Choice) -> Choice:
    """The row with the largest reward of each state into ``choice``: the greedy one where every value is 0."""
    from dynaboltz.planning import chains

    problem.each(lambda first, last: chains.best_rewards(problem.model, first, last, choice))
    return choice
