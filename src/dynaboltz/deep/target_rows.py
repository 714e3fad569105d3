"""The compiled half of :mod:`~dynaboltz.deep.targets`: one pass over a batch, all in float64."""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any

from numba import njit

Weighting = namedtuple("Weighting", "greedy uniform soft rate")
"""An operator's weights as a mixture: shares of the uniform over the maximisers, of that over all, of e^{rate·q}."""

Loss = namedtuple("Loss", "bound scale lowest munchausen printed")
"""Where errors are clipped (∞ for the squared loss), what multiplies each term, Munchausen's two numbers, and 1/B where
the meta-gradient is the paper's (0 where it is ours)."""

STATISTICS = ("loss", "q_mean", "td_error", "gap", "variance", "entropy", "saturated", "bootstrapped", "learning")
"""What a pass counts: sums over the batch; from ``gap`` on over the transitions that bootstrap, whose number is
``bootstrapped``; ``learning`` is the number of those whose target c moves."""

SATURATED = 0.999
"""A state is saturated where one action has at least this weight: there the operator is the maximum."""

NEGLIGIBLE = 1e-30
"""A weight w_j below this is 0: it changes nothing, and its subnormal products would make the pass backward slow."""

GRADIENT, CHANGE, REFERENCE = 0, 1, 2


def inlined(function: Any) -> Any:
    """The function compiled into every kernel that calls it."""
    return njit(nogil=True, error_model="numpy", forceinline=True)(function)


@inlined
def weigh(own: Any, j: Any, weighting: Any, out: Any) -> Any:
    """The operator's weights of row j into ``out``; returns the row's maximum."""
    m = own.shape[1]
    top = own[j, 0]
    for a in range(1, m):
        top = max(top, own[j, a])
    ties, mass = 0, 0.0
    for a in range(m):
        ties += own[j, a] == top
        out[a] = math.exp(weighting.rate * (own[j, a] - top)) if weighting.soft != 0.0 else 0.0
        mass += out[a]
    soft = weighting.soft / mass if weighting.soft != 0.0 else 0.0
    best, rest = weighting.greedy / ties, weighting.uniform / m
    for a in range(m):
        out[a] = soft * out[a] + (rest + best if own[j, a] == top else rest)
    return top


@inlined
def shift(weights: Any, own: Any, other: Any, j: Any) -> Any:
    """What the value gains when the action values are ``other`` and the weights still those of ``own``."""
    total = 0.0
    for a in range(own.shape[1]):
        total += weights[a] * (other[j, a] - own[j, a])
    return total


@inlined
def covariance(weights: Any, own: Any, other: Any, j: Any) -> Any:
    """Of two action values under the weights, in the two-pass form: ∂(Σ p·other)/∂β for p = softmax(β·own)."""
    first = second = total = 0.0
    for a in range(own.shape[1]):
        first += weights[a] * own[j, a]
        second += weights[a] * other[j, a]
    for a in range(own.shape[1]):
        total += weights[a] * (own[j, a] - first) * (other[j, a] - second)
    return total


@inlined
def describe(weights: Any, counts: Any, gap: Any, variance: Any) -> None:
    """Count one next state."""
    entropy, largest = 0.0, 0.0
    for a in range(weights.size):
        largest = max(largest, weights[a])
        if weights[a] > 0.0:
            entropy -= weights[a] * math.log(weights[a])
    counts[3] += gap
    counts[4] += variance
    counts[5] += entropy / math.log(weights.size) if weights.size > 1 else 0.0
    counts[6] += largest >= SATURATED
    counts[7] += 1.0


@njit(nogil=True, cache=True, error_model="numpy")
def backup(
    action: Any, reward: Any, discount: Any, importance: Any, q: Any, values: Any, own: Any, other: Any, double: Any,
    here: Any, here_values: Any, weighting: Any, loss: Any, slope: Any, weights: Any, target: Any, error: Any,
    cotangents: Any, counts: Any,
) -> None:  # fmt: skip
    """Targets, errors, statistics, and the first two rows of cotangents.

    ``own`` are the next action values that give the weights, ``other`` those that are weighed (``own`` itself unless
    ``double``); ``slope`` is dβ/dψ.
    """
    learns = cotangents.shape[0] > 1
    counts[:] = 0.0
    for j in range(q.shape[0]):
        value = derivative = 0.0
        if discount[j] != 0.0:
            top = weigh(own, j, weighting, weights)
            value = values[j]
            spread = covariance(weights, own, own, j)
            describe(weights, counts, top - value, spread)
            if double:
                value += shift(weights, own, other, j)
                spread = covariance(weights, own, other, j)
            derivative = discount[j] * slope * spread if slope != 0.0 else 0.0
        gained = reward[j]
        if loss.munchausen != 0.0:
            gained += loss.munchausen * max(here[j, action[j]] - here_values[j], loss.lowest)
        target[j] = gained + discount[j] * value
        delta = target[j] - q[j, action[j]]
        error[j] = delta
        scale = loss.scale * importance[j]
        inside = abs(delta) < loss.bound
        counts[0] += scale * (0.5 * delta * delta if inside else loss.bound * (abs(delta) - 0.5 * loss.bound))
        counts[1] += q[j, action[j]]
        counts[2] += abs(delta)
        cotangents[GRADIENT, j] = -scale * min(max(delta, -loss.bound), loss.bound)
        if learns:
            cotangents[CHANGE, j] = scale * derivative if inside and abs(derivative) >= NEGLIGIBLE else 0.0
            counts[8] += cotangents[CHANGE, j] != 0.0


@njit(nogil=True, cache=True, error_model="numpy")
def reference(
    discount: Any, importance: Any, bars: Any, values: Any, own: Any, other: Any, double: Any, weighting: Any,
    bar_weighting: Any, loss: Any, slope: Any, weights: Any, error: Any, cotangents: Any,
) -> None:  # fmt: skip
    """The third row of cotangents, of the meta-objective; ``bars`` are the next values under c̄, ``values`` under c.

    As the paper prints it, the second row too: the change is taken at c̄, ``slope`` is dβ/dc, and no error is clipped.
    """
    for j in range(discount.size):
        delta, derivative = error[j], 0.0
        if discount[j] != 0.0:
            change = bars[j] - values[j]
            if double:
                weigh(own, j, weighting, weights)
                change -= shift(weights, own, other, j)
            weigh(own, j, bar_weighting, weights)
            if double:
                change += shift(weights, own, other, j)
            delta += discount[j] * change
            derivative = discount[j] * slope * covariance(weights, own, other, j) if slope != 0.0 else 0.0
        if loss.printed != 0.0:
            cotangents[CHANGE, j] = loss.printed * derivative
            cotangents[REFERENCE, j] = -loss.printed * delta
        else:
            cotangents[REFERENCE, j] = -loss.scale * importance[j] * min(max(delta, -loss.bound), loss.bound)


@inlined
def place(mass: Any, value: Any, low: Any, step: Any, into: Any) -> None:
    """Add a mass at ``value`` to the two atoms around it, so that the mean stays; beyond the ends to the end."""
    at = min(max((value - low) / step, 0.0), into.size - 1.0)
    below = int(at)
    above = at - below
    into[below] += mass * (1.0 - above)
    if above > 0.0:
        into[below + 1] += mass * above


@inlined
def mix(weights: Any, ahead: Any, j: Any, reward: Any, discount: Any, low: Any, step: Any, into: Any) -> None:
    """Σ_a weights_a·Φ(r + γ Z(s′_j, a)), the projection Φ onto the atoms being linear."""
    into[:] = 0.0
    for k in range(into.size):
        mass = 0.0
        for a in range(weights.size):
            mass += weights[a] * ahead[j, a, k]
        place(mass, reward + discount * (low + step * k), low, step, into)


@njit(nogil=True, cache=True, error_model="numpy")
def categorical_backup(
    action: Any, reward: Any, discount: Any, importance: Any, logits: Any, own: Any, ahead: Any, weighting: Any,
    loss: Any, low: Any, step: Any, slope: Any, weights: Any, change: Any, target: Any, error: Any, cotangents: Any,
    counts: Any,
) -> None:  # fmt: skip
    """Projected mixtures, their divergences, statistics, and the first two rows of cotangents, of logits here.

    ``own`` are the next action values that give the weights, ``ahead`` the distributions that are mixed.
    """
    learns = cotangents.shape[0] > 1
    atoms = logits.shape[2]
    counts[:] = 0.0
    for j in range(discount.size):
        if discount[j] != 0.0:
            top = weigh(own, j, weighting, weights)
            mean = 0.0
            for a in range(weights.size):
                mean += weights[a] * own[j, a]
            describe(weights, counts, top - mean, covariance(weights, own, own, j))
            mix(weights, ahead, j, reward[j], discount[j], low, step, target[j])
            if slope != 0.0:  # ∂p/∂β = p (x − b)
                for a in range(weights.size):
                    weights[a] *= slope * (own[j, a] - mean)
                mix(weights, ahead, j, reward[j], discount[j], low, step, change)
        else:
            target[j, :] = 0.0
            place(1.0, reward[j], low, step, target[j])
        highest = logits[j, action[j], 0]
        for k in range(atoms):
            highest = max(highest, logits[j, action[j], k])
        total = 0.0
        for k in range(atoms):
            total += math.exp(logits[j, action[j], k] - highest)
        scale, log_total = loss.scale * importance[j], math.log(total)
        divergence = predicted = expected = 0.0
        for k in range(atoms):
            log_p = logits[j, action[j], k] - highest - log_total
            p, m = math.exp(log_p), target[j, k]
            divergence += m * (math.log(m) - log_p) if m > 0.0 else 0.0
            predicted += p * (low + step * k)
            expected += m * (low + step * k)
            found = scale * (p - m)
            cotangents[GRADIENT, j, k] = found if abs(found) >= NEGLIGIBLE else 0.0
        error[j] = 0.0 if divergence < 0.0 else divergence
        counts[0] += scale * error[j]
        counts[1] += predicted
        counts[2] += abs(expected - predicted)
        if learns:
            moves = False
            for k in range(atoms):
                found = scale * change[k] if discount[j] != 0.0 and slope != 0.0 else 0.0
                cotangents[CHANGE, j, k] = found if abs(found) >= NEGLIGIBLE else 0.0
                moves = moves or abs(found) >= NEGLIGIBLE
            counts[8] += moves


@njit(nogil=True, cache=True, error_model="numpy")
def categorical_reference(
    reward: Any, discount: Any, importance: Any, own: Any, ahead: Any, bar_weighting: Any, loss: Any, low: Any,
    step: Any, weights: Any, bar: Any, target: Any, cotangents: Any,
) -> None:  # fmt: skip
    """The third row of cotangents, of the meta-objective: the divergence from the mixture under c̄."""
    for j in range(discount.size):
        scale = loss.scale * importance[j]
        if discount[j] != 0.0:
            weigh(own, j, bar_weighting, weights)
            mix(weights, ahead, j, reward[j], discount[j], low, step, bar)
        for k in range(bar.size):
            moved = scale * (target[j, k] - bar[k]) if discount[j] != 0.0 else 0.0
            cotangents[REFERENCE, j, k] = cotangents[GRADIENT, j, k] + moved
