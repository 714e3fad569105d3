"""How far operators, and what agents learn with them, are off: signed and absolute, against exact values.

    python benchmarks/overestimation.py                       # about a minute
    python benchmarks/overestimation.py --samples 1000000 --seeds 300 --json

*Bandits*: every operator on Gaussian estimates of 2, 10 and 50 arms whose true means are equal or stairs; the signed bias
is the one that Theorem 4 orders, the absolute error is what an agent suffers. *Roulette*: 38 even-money bets that lose
2/38 on average, and a way out that is worth 0; Q of the bets against its exact value after more and more episodes.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

import numpy as np

from dynaboltz.paper.claim import Table
from dynaboltz.paper.overestimation import (
    AGENTS,
    CASES,
    EPISODES,
    bandit_biases,
    bandit_table,
    roulette_biases,
    roulette_table,
)
from dynaboltz.reports.statistics import mean_interval


def printed(table: Table) -> str:
    """A table with columns as wide as they need to be."""
    rows = [[str(cell) for cell in row] for row in (table.header, *table.rows)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([table.caption, *lines])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=200_000, help="draws for each bandit")
    parser.add_argument("--seeds", type=int, default=60, help="runs of each agent at the roulette")
    parser.add_argument("--episodes", type=int, nargs="+", default=[*EPISODES], help="lengths of the runs")
    parser.add_argument("--seed", type=int, default=0, help="root of all random numbers")
    parser.add_argument("--json", action="store_true", help="print numbers instead of tables")
    options = parser.parse_args()
    began = time.perf_counter()
    bandits = bandit_biases(options.samples, np.random.default_rng(options.seed))
    roulette = {}
    for place, episodes in enumerate(sorted(options.episodes)):
        print(f"roulette: {len(AGENTS)} agents, {episodes:,} episodes", file=sys.stderr, flush=True)
        roulette[episodes] = roulette_biases(episodes, seeds=options.seeds, root=1000 * options.seed + 100 * place)
    if options.json:
        numbers = {
            "bandits": {
                case: {
                    name: [(i.value, i.low, i.high) for i in pair] for (at, name), pair in bandits.items() if at == case
                }
                for case in CASES
            },
            "roulette": {
                episodes: {
                    name: [(i.value, i.low, i.high) for i in map(mean_interval, pair)] for name, pair in of.items()
                }
                for episodes, of in roulette.items()
            },
        }
        print(json.dumps(numbers, indent=1))
        return 0
    print(printed(bandit_table(bandits, options.samples)), printed(roulette_table(roulette)), sep="\n\n")
    print(f"\n{time.perf_counter() - began:.1f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
