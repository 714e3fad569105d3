"""Operator throughput beside its limit: what this machine's exp allows, measured in the same run.

For each operator, batch width and dtype: values per second of the compiled rows (one thread) and their share of a bare
polynomial exp loop in cache; and the cost of a plain call on a NumPy array and a torch tensor as a multiple of the
library's own exp on the same array. Rounds are interleaved and the best of each is taken, because shared machines drift.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from dynaboltz import boltzmann, epsilon_mixture, hard_max, log_sum_exp, mean, mellowmax, soft_mellowmax
from dynaboltz.operators import compiled, elementary, lanes
from dynaboltz.operators.operator import Operator

ENTRIES: tuple[tuple[Operator, float | None], ...] = (
    (boltzmann, 5.0),
    (log_sum_exp, 5.0),
    (mellowmax, 5.0),
    (soft_mellowmax(alpha=2.0), 5.0),
    (hard_max, None),
    (mean, None),
    (epsilon_mixture(epsilon=0.1), None),
)
IN_CACHE = 4096
TARGET_SHARE, TARGET_MULTIPLE = 0.6, 1.5


@njit(nogil=True)
def _exp_loop(x: Any, out: Any) -> None:
    like = lanes.wide(x)
    for i in range(0, x.size, lanes.width(like)):
        j = np.uintp(i)
        lanes.store(out, j, elementary.exp(lanes.load(x, j, like)))


def best_of(rounds: int, timed: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Seconds of each function: the best of interleaved rounds, after one call to warm up."""
    for function in timed.values():
        function()
    best = dict.fromkeys(timed, float("inf"))
    for _ in range(rounds):
        for name, function in timed.items():
            began = time.perf_counter()
            function()
            best[name] = min(best[name], time.perf_counter() - began)
    return best


def measure(rows: int, rounds: int, report: Callable[[dict[str, Any]], None]) -> list[dict[str, Any]]:
    """One record for each dtype, width and operator; ``report`` sees each as it is done."""
    import torch

    rng = np.random.default_rng(0)
    records = []
    for dtype in (np.float64, np.float32):
        small = -np.abs(rng.normal(size=IN_CACHE) * 5).astype(dtype)
        small_out = np.empty_like(small)
        repeats = max(1, rows * 4 // IN_CACHE // 8)
        for m in (4, 18):
            q = rng.normal(size=(rows, m)).astype(dtype)
            tensor, flat, out = torch.from_numpy(q), q.reshape(-1), np.empty(rows, dtype)
            for operator, beta in ENTRIES:
                p, sharpness = compiled.parameters(operator), beta or 0.0
                arguments = () if beta is None else (beta,)
                timed: dict[str, Callable[[], object]] = {
                    "exp loop": lambda: [_exp_loop(small, small_out) for _ in range(repeats)],
                    "rows": lambda p=p, b=sharpness: compiled.batch(p, flat, m, b, out),
                    "numpy exp": lambda: np.exp(q),
                    "numpy": lambda f=operator, a=arguments: f(q, *a),
                    "torch exp": lambda: torch.exp(tensor),
                    "torch": lambda f=operator, a=arguments: f(tensor, *a),
                }
                if operator is boltzmann:
                    timed["array body"] = lambda f=operator, b=beta: f._summarise(f._value, q, b, -1, None)
                seconds = best_of(rounds, timed)
                exp_rate = IN_CACHE * repeats / seconds["exp loop"]
                rate = {name: q.size / s for name, s in seconds.items() if name != "exp loop"}
                records.append(
                    {
                        "operator": str(operator),
                        "dtype": np.dtype(dtype).name,
                        "m": m,
                        "exp rate": exp_rate,
                        "rows": rate["rows"],
                        "share of exp": rate["rows"] / exp_rate,
                        "numpy": rate["numpy"],
                        "times numpy exp": seconds["numpy"] / seconds["numpy exp"],
                        "torch": rate["torch"],
                        "times torch exp": seconds["torch"] / seconds["torch exp"],
                        "array body": rate.get("array body"),
                    }
                )
                report(records[-1])
    return records


def print_line(r: dict[str, Any]) -> None:
    """Print one record as a line of the table."""
    print(
        f"{r['operator']:30s} {r['dtype']:8s} {r['m']:3d}   {r['rows'] / 1e9:6.2f} {r['exp rate'] / 1e9:6.2f} {r['share of exp']:6.0%}"
        f"   {r['numpy'] / 1e9:6.2f} {r['times numpy exp']:6.2f}   {r['torch'] / 1e9:6.2f} {r['times torch exp']:6.2f}",
        flush=True,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of a batch")
    parser.add_argument("--rounds", type=int, default=15, help="interleaved rounds; the best counts")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    import torch

    machine = f"{platform.machine()}, {os.cpu_count()} cores, NumPy {np.__version__}, torch {torch.__version__} on {torch.get_num_threads()} threads"
    if not options.json:
        print(f"operators: batches of {options.rows:,} rows; G values/s; {machine}")
        print(f"{'':43s}   {'compiled rows, 1 thread':^20s}   {'NumPy call':^13s}   {'torch call':^13s}")
        print(
            f"{'operator':30s} {'dtype':8s} {'m':>3s}   {'rate':>6s} {'exp':>6s} {'share':>6s}   {'rate':>6s} {'× exp':>6s}   {'rate':>6s} {'× exp':>6s}"
        )
    records = measure(options.rows, options.rounds, (lambda _: None) if options.json else print_line)
    if options.json:
        print(json.dumps({"machine": machine, "records": records}, indent=1))
        return
    print("\nboltzmann against its targets")
    for r in (r for r in records if r["operator"] == "boltzmann"):
        print(
            f"  {r['dtype']} × {r['m']:<2d}  rows {r['share of exp']:.0%} of the exp rate (target {TARGET_SHARE:.0%}); "
            f"NumPy call {r['times numpy exp']:.2f} × exp, torch call {r['times torch exp']:.2f} × exp (target {TARGET_MULTIPLE} ×); "
            f"array body (traced or with gradients) {r['array body'] / 1e9:.2f} G/s"
        )


if __name__ == "__main__":
    main()
