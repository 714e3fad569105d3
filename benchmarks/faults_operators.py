"""Every operator on hostile rows, against exact references: NaN, out of bounds, and errors above the stated bound.

    python benchmarks/faults_operators.py                  # 10⁵ rows per operator, under 2 minutes on two cores
    python benchmarks/faults_operators.py --cases 2000 --seed 7 --json

Rows have 1 to 10⁴ actions, magnitudes to 10³⁰ (float64) or 10¹⁵ (float32), ties, near ties, −inf for illegal actions,
and β from 0 over subnormal numbers to 10³⁰⁰ and ∞. Each row goes through the array body and through the compiled rows.
The reference is mpmath with 60 digits for every row of at most ``MPMATH_ACTIONS`` legal actions and for one row of each
larger block. For the others it is ``np.longdouble``, pairwise sums of at most 10⁴ terms: its error is below
100·2⁻⁶⁴ = 5·10⁻¹⁸ of the magnitudes, where the bound, 4·(m + 8)·eps, is at least 10⁻¹³ for such rows.
A β beyond the type's largest number stands for that number, in the operators and here. Exit code 1 if anything does
not hold.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from typing import Any

import mpmath
import numpy as np

from dynaboltz import boltzmann, epsilon_mixture, hard_max, log_sum_exp, mean, mellowmax, soft_mellowmax
from dynaboltz.errors import UserError
from dynaboltz.operators import Operator
from dynaboltz.operators.compiled import summarise

ALPHA, EPSILON = 2.0, 0.1
OPERATORS: tuple[Operator, ...] = (
    hard_max, mean, boltzmann, log_sum_exp, mellowmax, soft_mellowmax(ALPHA), epsilon_mixture(EPSILON),
)  # fmt: skip
ROWS = 40
"""Rows in a block, which share m, β and type: two and a half registers of float32, five of float64."""
MPMATH_ACTIONS = 150
LARGEST = {np.float64: 1e30, np.float32: 1e15}
SMALLEST_BETA_OF_LOG_SUM_EXP = {np.float64: 1e-300, np.float32: 1e-35}
"""Below, log(m)/β leaves the type's range."""

mp = mpmath.mp.clone()
mp.dps = 60


@dataclass
class Tally:
    """What was seen of one operator in one form."""

    operator: str
    form: str
    cases: int = 0
    mpmath: int = 0
    nan: int = 0
    out_of_bounds: int = 0
    above_bound: int = 0
    not_refused: int = 0
    worst: float = 0.0
    worst_case: str = ""

    @property
    def failed(self) -> bool:
        return bool(self.nan or self.out_of_bounds or self.above_bound or self.not_refused)

    def add(self, other: Tally) -> None:
        if other.worst > self.worst:
            self.worst, self.worst_case = other.worst, other.worst_case
        for name in ("cases", "mpmath", "nan", "out_of_bounds", "above_bound", "not_refused"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


def block(rng: np.random.Generator) -> tuple[Any, float]:
    """Draw ``ROWS`` rows, −inf for illegal actions, and one β for them."""
    dtype = (np.float64, np.float32)[rng.integers(2)]
    largest = LARGEST[dtype]
    m = int(10 ** rng.uniform(0, 4.0001)) if rng.random() < 0.9 else int(rng.integers(1, 12))
    scale = largest ** rng.uniform(-1, 1, (ROWS, 1))
    spread = scale * 10 ** rng.uniform(-17, 0, (ROWS, 1))
    normal = rng.normal(size=(ROWS, m)) / 6
    kinds = [
        normal * scale,
        scale * rng.choice([-0.5, 0.5, 0.9], (ROWS, 1)) + normal * spread,
        np.round(normal * 4) * scale / 4,
        np.broadcast_to(scale, (ROWS, m)),
        np.sign(normal) * scale ** rng.uniform(-1, 1, (ROWS, m)),
        -spread * (np.arange(m) != rng.integers(m)),
    ]
    q = np.choose(rng.integers(len(kinds), size=(ROWS, 1)), [np.broadcast_to(k, (ROWS, m)) for k in kinds])
    q = np.clip(q, -largest, largest).astype(dtype)
    beta = _beta(rng, q, dtype)
    if rng.random() < 0.4:
        keep = rng.integers(m, size=ROWS)
        illegal = rng.random((ROWS, m)) < rng.uniform(0, 1, (ROWS, 1))
        illegal[np.arange(ROWS), keep] = False
        q[illegal] = -np.inf
    return q, beta


def _beta(rng: np.random.Generator, q: Any, dtype: Any) -> float:
    special = (0.0, 5e-324, 1e-300, 1e-45, 1.2e-38, 1e-17, 1.0, 1e6, 1e300, math.inf)
    if rng.random() < 0.3:
        return float(rng.choice(special))
    if rng.random() < 0.3:
        return float(10 ** rng.uniform(-300, 300))
    row = q[rng.integers(ROWS)].astype(float)
    spread = float(row.max() - row.min()) or 1.0
    switch = float(np.finfo(dtype).eps) ** (1 / 3)  # where the series for small β takes over
    product = switch * rng.uniform(0.5, 2) if rng.random() < 0.25 else 10 ** rng.uniform(-9, 5)
    return min(float(product / spread), 1e300)


def references(row: list[float], beta: float) -> dict[str, Any]:
    """Return the values of all operators on the legal actions of one row, with 60 digits."""
    q = [mp.mpf(x) for x in row]
    m, top = len(q), max(q)
    d = [x - top for x in q]
    average = sum(d) / m
    found = {"hard_max": top, "mean": top + average, "epsilon_mixture": top + mp.mpf(EPSILON) * average}
    b = mp.mpf(beta)
    e = [mp.exp(b * x) for x in d]
    g = [mp.exp(mp.mpf(ALPHA) * x) for x in d]
    mass = sum(e)
    found["boltzmann"] = top + sum(w * x for w, x in zip(e, d, strict=True)) / mass
    if beta == 0:
        soft = sum(w * x for w, x in zip(g, d, strict=True)) / sum(g)
        return found | {"mellowmax": top + average, "soft_mellowmax": top + soft}
    excess = [mp.expm1(b * x) for x in d]
    found["log_sum_exp"] = top + mp.log(mass) / b
    found["mellowmax"] = top + mp.log1p(sum(excess) / m) / b
    tilted = sum(w * x for w, x in zip(g, excess, strict=True)) / sum(g)
    return found | {"soft_mellowmax": top + mp.log1p(tilted) / b}


def long_references(q: Any, beta: float) -> dict[str, Any]:
    """Return the same for all rows at once, in ``np.longdouble``."""
    legal = np.isfinite(q)
    m = np.sum(legal, axis=-1)
    q = q.astype(np.longdouble)
    top = np.max(q, axis=-1)
    d = np.where(legal, q - top[:, None], 0)
    average = np.sum(d, axis=-1) / m
    found = {"hard_max": top, "mean": top + average, "epsilon_mixture": top + np.longdouble(EPSILON) * average}
    b = np.longdouble(beta)
    e, g = (np.where(legal, np.exp(rate * d), 0) for rate in (b, np.longdouble(ALPHA)))
    mass = np.sum(e, axis=-1)
    found["boltzmann"] = top + np.sum(e * d, axis=-1) / mass
    if beta == 0:
        soft = np.sum(g * d, axis=-1) / np.sum(g, axis=-1)
        return found | {"mellowmax": top + average, "soft_mellowmax": top + soft}
    excess = np.expm1(b * d)  # 0 where illegal
    found["log_sum_exp"] = top + np.log(mass) / b
    found["mellowmax"] = top + np.log1p(np.sum(excess, axis=-1) / m) / b
    tilted = np.sum(g * excess, axis=-1) / np.sum(g, axis=-1)
    return found | {"soft_mellowmax": top + np.log1p(tilted) / b}


def measure_block(seed: int, index: int) -> list[Tally]:
    """Draw block ``index`` and put all operators through it, in both forms."""
    q, beta = block(np.random.default_rng([seed, index]))
    dtype, legal = q.dtype.type, np.isfinite(q)
    finite_beta = min(beta, float(np.finfo(dtype).max))
    with np.errstate(all="ignore"):
        known = long_references(q, finite_beta)
    exact = np.flatnonzero((legal.sum(axis=-1) <= MPMATH_ACTIONS) | (np.arange(ROWS) == 0))
    by_mpmath = {int(i): references(q[i][legal[i]].tolist(), finite_beta) for i in exact}
    tallies = []
    for operator in OPERATORS:
        takes_beta = operator.traits.takes_beta
        if not operator.traits.finite_at_zero and beta < SMALLEST_BETA_OF_LOG_SUM_EXP[dtype]:
            tallies.append(_refused(operator, q, beta))
            continue
        arguments = (beta,) if takes_beta else ()
        forms = {"array": operator(q, *arguments), "compiled": summarise(operator, q, *arguments)}
        for form, values in forms.items():
            tally = Tally(operator.name, form, cases=ROWS, mpmath=len(exact))
            if values is None:  # how the compiled form reports NaN
                tally.nan = ROWS
            else:
                errors = _errors(values, known[operator.name], by_mpmath, operator.name)
                _judge(tally, operator, q, legal, finite_beta, values, errors)
            tallies.append(tally)
    return tallies


def _refused(operator: Operator, q: Any, beta: float) -> Tally:
    tally = Tally(operator.name, "array", cases=ROWS)
    if beta < float(np.finfo(q.dtype).smallest_normal):
        try:
            operator(q, beta)
            tally.not_refused = ROWS
        except UserError:
            pass
    else:  # log(m)/β may be beyond the type, and is then ∞
        tally.nan = int(np.isnan(operator(q, beta)).sum())
    return tally


def _errors(values: Any, reference: Any, by_mpmath: dict[int, dict[str, Any]], name: str) -> Any:
    errors = np.abs(values.astype(np.longdouble) - reference).astype(float)
    for i, exact in by_mpmath.items():
        if math.isfinite(values[i]):
            errors[i] = float(abs(mp.mpf(float(values[i])) - exact[name]))
    return errors


def _judge(tally: Tally, operator: Operator, q: Any, legal: Any, beta: float, values: Any, errors: Any) -> None:
    q64, counts = q.astype(float), legal.sum(axis=-1)
    low, high = np.min(np.where(legal, q64, np.inf), axis=-1), np.max(q64, axis=-1)
    size = np.max(np.where(legal, np.abs(q64), 0.0), axis=-1)
    overshoot = np.array([operator.traits.overshoot(beta, int(m)) for m in counts])
    bound = 4.0 * (counts + 8) * float(np.finfo(q.dtype).eps) * (size + overshoot)
    ratio = errors / np.maximum(bound, np.finfo(float).tiny)
    tally.nan = int(np.isnan(values).sum())
    outside = (values < low) | (operator.traits.bounded_by_max & (values > high))
    tally.out_of_bounds = int(outside.sum())
    tally.above_bound = int((~(ratio <= 1)).sum())
    worst = int(np.argmax(np.where(outside, np.inf, ratio)))
    tally.worst = float(np.nanmax(ratio))
    tally.worst_case = (
        f"{q.dtype} m={counts[worst]} beta={beta:g} size={size[worst]:g} spread={high[worst] - low[worst]:g} "
        f"value={values[worst]!r} min={low[worst]!r} max={high[worst]!r}"
    )


def measure(cases: int, seed: int, workers: int = 1) -> Iterator[tuple[int, int, list[Tally]]]:
    """Yield (blocks done, blocks in all, their tallies) until every operator has seen ``cases`` rows."""
    blocks = math.ceil(cases / ROWS)
    task = functools.partial(measure_block, seed)
    if workers == 1:
        for i in range(blocks):
            yield i + 1, blocks, task(i)
        return
    with ProcessPoolExecutor(workers) as pool:
        futures = [pool.submit(task, i) for i in range(blocks)]
        for done, future in enumerate(as_completed(futures), 1):
            yield done, blocks, future.result()


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=100_000, help="rows per operator (default 100000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    options = parser.parse_args(argv)
    for operator in OPERATORS:  # compile once, before there are workers
        for dtype in LARGEST:
            summarise(operator, np.ones((ROWS, 2), dtype), 1.0)
    totals: dict[tuple[str, str], Tally] = {}
    began = time.perf_counter()
    for done, blocks, tallies in measure(options.cases, options.seed, options.workers):
        for tally in tallies:
            totals.setdefault((tally.operator, tally.form), Tally(tally.operator, tally.form)).add(tally)
        if done % 50 == 0 or done == blocks:
            spent = time.perf_counter() - began
            left = spent / done * (blocks - done)
            print(f"\r{done}/{blocks} blocks, {spent:.0f} s, {left:.0f} s left ", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    rows = sorted(totals.values(), key=lambda t: (t.operator, t.form))
    if options.json:
        print(json.dumps({"seed": options.seed, "rows": [asdict(row) for row in rows]}))
    else:
        _print_table(rows)
    return int(any(row.failed for row in rows))


def _print_table(rows: list[Tally]) -> None:
    columns = ("operator", "form", "rows", "by mpmath", "NaN", "outside", "> bound", "not refused", "worst error/bound")
    table = [columns] + [
        tuple(map(str, (
            row.operator, row.form, row.cases, row.mpmath, row.nan, row.out_of_bounds, row.above_bound,
            row.not_refused, f"{row.worst:.3g}",
        )))
        for row in rows
    ]  # fmt: skip
    widths = [max(len(line[i]) for line in table) for i in range(len(columns))]
    for line in table:
        cells = [cell.ljust(width) for cell, width in zip(line[:2], widths, strict=False)]
        cells += [cell.rjust(width) for cell, width in zip(line[2:], widths[2:], strict=True)]
        print("  ".join(cells))
    for row in rows:
        if row.failed:
            print(f"{row.operator} ({row.form}) fails, for instance: {row.worst_case}")


if __name__ == "__main__":
    sys.exit(main())
