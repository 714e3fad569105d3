"""Two classics of operations research, small enough to read and with action sets that differ by state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynaboltz.mdp.calls import number, whole
from dynaboltz.mdp.canonical import from_transitions
from dynaboltz.mdp.worlds.limits import check_size

if TYPE_CHECKING:
    from dynaboltz.mdp.model import MDP


def maintenance(
    *, levels: int = 10, wear: float = 0.3, profit: float = 1.0, replacement: float = 4.0, failure: float = 10.0
) -> MDP:
    """A machine that wears: run it or replace it, before it fails or after, when replacing costs more.

    Level 0 is new, the last level has failed and can only be replaced. Running earns ``profit`` at level 0 and linearly
    less at worse levels, and with probability ``wear`` the machine drops a level.

    Args:
        levels: at least 2.
        wear: probability of losing a level while running.
        profit: of one step of running a new machine.
        replacement: cost of a new machine.
        failure: what a failure costs on top.
    """
    whole("levels", levels, 2)
    number("wear", wear, 0.0, 1.0)
    number("profit", profit)
    number("replacement", replacement)
    number("failure", failure)
    check_size("maintenance", 3 * levels)
    last = levels - 1
    level = np.arange(last)
    state = np.concatenate([level, level, level, [last]])
    action = np.repeat([0, 0, 1], [last, last, levels])
    targets = np.concatenate([level, level + 1, np.zeros(levels, np.int64)])
    probability = np.repeat([1.0 - wear, wear, 1.0], [last, last, levels])
    running = profit * (1.0 - level / last)
    replacing = np.full(levels, -replacement)
    replacing[last] -= failure
    return from_transitions(
        state,
        action,
        targets,
        probability,
        np.concatenate([running, running, replacing]),
        start=0,
        state_labels=[f"level_{number}" for number in range(last)] + ["failed"],
        action_labels=["run", "replace"],
    )


def inventory(
    *,
    capacity: int = 20,
    demand: float = 5.0,
    price: float = 4.0,
    cost: float = 2.0,
    order_cost: float = 3.0,
    holding: float = 0.1,
) -> MDP:
    """A shop that orders up to its capacity before a Poisson demand; what is not in stock is not sold.

    From stock s, ordering a ≤ capacity − s, the next stock is max(s + a − D, 0), and the expected reward is
    price · E[min(D, s + a)] − cost · a − order_cost · [a > 0] − holding · (s + a).

    Args:
        capacity: the largest stock.
        demand: mean of the demand in one step.
        price: income from one unit sold.
        cost: of one unit ordered.
        order_cost: of an order, whatever its size.
        holding: cost of one unit in stock for one step.
    """
    whole("capacity", capacity, 1)
    number("demand", demand, 1e-6, 1e6)
    for name, value in (("price", price), ("cost", cost), ("order_cost", order_cost), ("holding", holding)):
        number(name, value)
    check_size("inventory", (capacity + 1) ** 3)
    levels = np.arange(capacity + 1)
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(levels[1:]))])
    mass = np.exp(levels * np.log(demand) - demand - log_factorial)
    # All of the demand that empties the shop has the same effect: it is what is left of 1.
    stock_after = np.zeros((capacity + 1, capacity + 1))
    for stock in levels:
        stock_after[stock, 1 : stock + 1] = mass[:stock][::-1]
        stock_after[stock, 0] = max(0.0, 1.0 - float(mass[:stock].sum()))
    s, a = (index.ravel() for index in np.indices((capacity + 1, capacity + 1)))
    s, a = s[s + a <= capacity], a[s + a <= capacity]
    after = stock_after[s + a]
    sold = (s + a) - after @ levels
    reward = price * sold - cost * a - order_cost * (a > 0) - holding * (s + a)
    row, target = after.nonzero()
    return from_transitions(
        s[row],
        a[row],
        target,
        after[row, target],
        reward[row],
        n_states=capacity + 1,
        n_actions=capacity + 1,
        start=0,
        state_labels=[f"stock_{stock}" for stock in levels],
        action_labels=[f"order_{amount}" for amount in levels],
    )
