"""Sweeps beside the memory's bandwidth, and the time to a certified answer beside other libraries.

    python benchmarks/planning.py --quick                        # small models, about a minute
    python benchmarks/planning.py --peers /path/to/venv/python   # with quantecon, mdpsolver and pymdptoolbox from there
    python benchmarks/planning.py --json

Models: a 1000 × 1000 grid with slip (12 M transitions) and GARNET 100k × 8 × 10 (8 M), or small ones of the same kinds.

Sweeps. For each operator and thread count: nanoseconds a transition, and GB/s of the bytes that must move (every array
of the model once, the old values once, the new values once), as a share of a triad a[i] = b[i] + s·c[i] over arrays
beyond any cache, which is measured in the same rounds. Rounds are interleaved and the best of each counts, because shared
machines drift.

Answers. Time to a proven sup-norm error of 1e-8 from V = 0, model in memory. The peers get the same model (terminal states
as free self loops), built before the clock starts, after a small one to warm up; each is asked for the same error by its
own stopping rule, and one that does not finish in its time box counts as its time box. They prove nothing; the column
"true error" is the distance to our certified values.

Size. A grid of ten million states with slip (120 M transitions), built and solved to the same proven error in a process of
its own, whose peak memory is printed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from dynaboltz.mdp import MDP, build_world
from dynaboltz.planning import solve
from dynaboltz.planning.problem import Problem
from dynaboltz.summaries import parse_summary

FULL = {
    "grid 1000 x 1000": "grid(rows=1000, cols=1000, slip=0.2)",
    "garnet 100k x 8 x 10": "garnet(states=100000, actions=8, branching=10)",
}
QUICK = {
    "grid 200 x 200": "grid(rows=200, cols=200, slip=0.2)",
    "garnet 10k x 8 x 10": "garnet(states=10000, actions=8, branching=10)",
}
SIZE = "grid(rows=3163, cols=3163, slip=0.2)"
QUICK_SIZE = "grid(rows=500, cols=500, slip=0.2)"
SUMMARIES = (
    "hard_max",
    "mean",
    "boltzmann(5)",
    "log_sum_exp(5)",
    "mellowmax(5)",
    "soft_mellowmax(2, 5)",
    "epsilon_mixture(0.1)",
)
DISCOUNTS = (0.9, 0.99)
ERROR = 1e-8
TRIAD = 20_000_000
MOST_GB = 6
"""What ten million states may take."""


@njit(nogil=True)
def _triad(a: Any, b: Any, c: Any, first: Any, last: Any) -> None:
    x, y, z = a[first:last], b[first:last], c[first:last]  # views: an offset index would keep it from vectorising
    for i in range(x.size):
        x[i] = y[i] + 3.0 * z[i]


def bytes_moved(mdp: MDP) -> int:
    arrays = (mdp.state_ptr, mdp.row_ptr, mdp.next_state, mdp.probability, mdp.reward)
    return sum(array.nbytes for array in arrays) + 2 * 8 * mdp.n_states


def best_of(rounds: int, timed: dict[Any, Callable[[], object]]) -> dict[Any, float]:
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


def measure_sweeps(name: str, mdp: MDP, rounds: int, triad: int) -> list[dict[str, Any]]:
    """One record for each operator and number of threads."""
    threads = sorted({1, os.cpu_count() or 1})
    rng = np.random.default_rng(0)
    old, new = rng.random(mdp.n_states), np.empty(mdp.n_states)
    a, b, c = (np.ones(triad) for _ in range(3))
    problems = {n: Problem(mdp, 0.9, threads=n) for n in threads}
    spans = np.linspace(0, triad, 65).astype(int).tolist()
    pieces = list(itertools.pairwise(spans))
    timed: dict[Any, Callable[[], object]] = {}
    for n, problem in problems.items():
        if n > 1 and problem.threads == 1:
            continue
        timed["triad", n] = lambda problem=problem: problem.each(lambda i, j: _triad(a, b, c, i, j), pieces)
        for text in SUMMARIES:
            summary = parse_summary(text)
            p, beta = problem.parameters(summary.operator), float(summary.beta(1) or 0.0)
            timed[text, n] = lambda problem=problem, p=p, beta=beta: problem.sweep(p, beta, old, new)
    seconds = best_of(rounds, timed)
    records = []
    for (text, n), found in seconds.items():
        if text == "triad":
            continue
        rate, limit = bytes_moved(mdp) / found, 24 * triad / seconds["triad", n]
        records.append(
            {
                "model": name,
                "operator": text,
                "threads": n,
                "ms": found * 1e3,
                "ns a transition": found / mdp.n_transitions * 1e9,
                "GB/s": rate / 1e9,
                "triad GB/s": limit / 1e9,
                "share of triad": rate / limit,
                "times max": found / seconds["hard_max", n],
                "speed-up": seconds[text, threads[0]] / found,
            }
        )
    for problem in problems.values():
        problem.__exit__()
    return records


def measure_answers(name: str, mdp: MDP, discount: float, methods: list[str], rounds: int) -> list[dict[str, Any]]:
    """One record for each method."""
    records = []
    for method in methods:
        solve(mdp, discount=discount, method=method, error=ERROR, max_sweeps=1)
        found = [solve(mdp, discount=discount, method=method, error=ERROR) for _ in range(rounds)]
        best = min(found, key=lambda solution: solution.seconds)
        records.append(
            {
                "model": name,
                "discount": discount,
                "solver": f"dynaboltz {method}",
                "seconds": best.seconds,
                "sweeps": best.sweeps,
                "proven error": best.certificate.error_bound,
                "finished": best.converged,
            }
        )
    return records


PEERS = {
    "quantecon MPI": "quantecon",
    "quantecon VI": "quantecon",
    "mdpsolver MPI": "mdpsolver",
    "pymdptoolbox MPI": "mdptoolbox",
}
PEER = r'''
import sys, time
import numpy as np
import scipy.sparse as sp
solver, path, discount, error, out = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]), sys.argv[5]

def prepare(n):
    """A function that solves, built from the first n states' worth of the file, or a chain of n states to warm up."""
    if n is None:
        f = np.load(path)
        s, a, ptr, nxt, p, r = (f[k] for k in ("state", "action", "row_ptr", "next_state", "probability", "reward"))
        n = int(f["n"])
    else:
        s, a, ptr = np.arange(n), np.zeros(n, int), np.arange(n + 1)
        nxt, p, r = np.minimum(s + 1, n - 1), np.ones(n), np.ones(n)
    Q = sp.csr_matrix((p, nxt, ptr), shape=(len(s), n))
    if solver.startswith("quantecon"):
        from quantecon.markov import DiscreteDP
        ddp = DiscreteDP(r, Q, discount, s, a)
        if solver.endswith("VI"):
            return lambda: ddp.solve("value_iteration", epsilon=2 * error, max_iter=10**7).v
        return lambda: ddp.solve("modified_policy_iteration", epsilon=2 * error, max_iter=10**6).v
    if solver.startswith("mdpsolver"):
        import mdpsolver
        model = mdpsolver.model()
        starts = np.searchsorted(s, np.arange(n + 1))
        groups = [range(starts[i], starts[i + 1]) for i in range(n)]
        P, N, R = p.tolist(), nxt.tolist(), r.tolist()
        model.mdp(discount=discount, rewards=[[R[j] for j in g] for g in groups],
                  tranMatProbs=[[P[ptr[j]:ptr[j + 1]] for j in g] for g in groups],
                  tranMatColumns=[[N[ptr[j]:ptr[j + 1]] for j in g] for g in groups])
        def run():
            model.solve(algorithm="mpi", tolerance=error)
            return np.array(model.getValueVector())
        return run
    import mdptoolbox.mdp as toolbox
    actions = int(a.max()) + 1
    matrices, rewards = [], np.full((n, actions), -1e6)
    rewards[s, a] = r
    for k in range(actions):
        rows = np.full(n, -1)
        rows[s[a == k]] = np.flatnonzero(a == k)
        missing = rows < 0
        M = Q[np.where(missing, 0, rows)]
        keep = sp.diags((~missing).astype(float))
        matrices.append(sp.csr_matrix(keep @ M + sp.diags(missing.astype(float))))
    model = toolbox.PolicyIterationModified(matrices, rewards, discount, epsilon=2 * error, max_iter=10**6)
    def run():
        model.run()
        return np.array(model.V)
    return run

prepare(20)()
run = prepare(None)
print("built", flush=True)
began = time.perf_counter()
v = run()
print(time.perf_counter() - began, flush=True)
np.save(out, v)
'''


def measure_peer(python: str, solver: str, path: Path, discount: float, box: float, reference: Any) -> dict[str, Any]:
    """Seconds of one library in a process of its own, building not counted; its time box if it does not finish."""
    record: dict[str, Any] = {"discount": discount, "solver": solver, "seconds": box, "finished": False}
    out = path.with_name("answer.npy")
    out.unlink(missing_ok=True)
    script = path.with_name("peer.py")
    script.write_text(PEER, encoding="utf-8")
    command = [python, str(script), solver, str(path), str(discount), str(ERROR), str(out)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=2 * box, check=False)
    except subprocess.TimeoutExpired as late:
        built = b"built" in (late.stdout or b"")
        return record | {"note": f"over {2 * box:.0f} s, {'building included' if built else 'not even built'}"}
    if done.returncode != 0:
        return record | {"note": (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:80]}
    seconds = float(done.stdout.split()[-1])
    true = float(np.abs(np.load(out)[: reference.size] - reference).max())
    return record | {"seconds": min(seconds, box), "finished": seconds <= box, "true error": true}


CHILD = r"""
import json, resource, sys, time
from dynaboltz.mdp import build_world
from dynaboltz.planning import solve
world, discount, error = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
solve(build_world("grid(rows=9, cols=9, slip=0.2)"), discount=discount, error=error)  # compiled forms are loaded
began = time.perf_counter()
mdp = build_world(world)
built = time.perf_counter() - began
found = solve(mdp, discount=discount, error=error)
print(json.dumps({
    "model": world, "discount": discount, "states": mdp.n_states, "transitions": mdp.n_transitions,
    "model GB": mdp.nbytes / 1e9, "seconds to build": built, "seconds": found.seconds, "sweeps": found.sweeps,
    "proven error": found.certificate.error_bound, "finished": found.converged,
    "peak GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
}))
"""


def measure_size(world: str, discount: float) -> dict[str, Any]:
    """What building and solving a model takes of time and memory, in a process of its own."""
    command = [sys.executable, "-c", CHILD, world, str(discount), str(ERROR)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    record: dict[str, Any] = json.loads(done.stdout)
    return record


def show_size(r: dict[str, Any]) -> None:
    print(
        f"\n{r['model']}: {r['states']:,} states, {r['transitions']:,} transitions, {r['model GB']:.2f} GB\n"
        f"  γ = {r['discount']:g}: built in {r['seconds to build']:.1f} s, solved in {r['seconds']:.1f} s ({r['sweeps']} sweeps, "
        f"proven {r['proven error']:.1e}{'' if r['finished'] else ', did not finish'}), peak memory {r['peak GB']:.2f} GB"
        f" (target {MOST_GB} GB)"
    )


def write_for_peers(mdp: MDP, path: Path) -> None:
    """The rows as arrays, a free self loop for each terminal state."""
    ends = np.flatnonzero(mdp.terminal)
    state = np.concatenate([mdp.row_states(), ends])
    order = np.argsort(state, kind="stable")
    rows = np.concatenate([np.arange(mdp.n_rows), np.full(ends.size, -1)])[order]
    lengths = np.where(rows >= 0, np.diff(mdp.row_ptr)[rows], 1)
    ptr = np.concatenate([[0], np.cumsum(lengths)])
    next_state, probability = np.empty(ptr[-1], np.int64), np.ones(ptr[-1])
    own = np.repeat(rows >= 0, lengths)
    next_state[own], probability[own] = mdp.next_state, mdp.probability  # states and rows are in order in both
    next_state[~own] = ends
    np.savez(
        path, n=mdp.n_states, state=state[order], row_ptr=ptr, next_state=next_state, probability=probability,
        action=np.where(rows >= 0, mdp.action[rows], 0), reward=np.where(rows >= 0, mdp.reward[rows], 0.0),
    )  # fmt: skip


def show_sweeps(records: list[dict[str, Any]]) -> None:
    print(f"  {'operator':22s} threads     ms  ns/trans.   GB/s  of triad  × max  speed-up")
    for r in records:
        print(
            f"  {r['operator']:22s} {r['threads']:7d} {r['ms']:6.2f} {r['ns a transition']:10.3f} {r['GB/s']:6.1f}"
            f" {r['share of triad']:8.0%} {r['times max']:6.2f} {r['speed-up']:9.2f}"
        )


def show_answer(r: dict[str, Any]) -> None:
    proven = f"proven {r['proven error']:.1e}" if "proven error" in r else ""
    true = f"true error {r['true error']:.1e}" if "true error" in r else r.get("note", "")
    done = "" if r["finished"] else "  did not finish"
    print(
        f"  γ = {r['discount']:<5g} {r['solver']:26s} {r['seconds']:9.3f} s  {r.get('sweeps', ''):>6}  {proven}{true}{done}",
        flush=True,
    )


def peers_of(python: str | None) -> list[str]:
    """The solvers that this Python can import."""
    found = []
    for solver, module in PEERS.items() if python else ():
        if subprocess.run([str(python), "-c", f"import {module}"], capture_output=True, check=False).returncode == 0:
            found.append(solver)
    return found


def compare(name: str, mdp: MDP, options: argparse.Namespace, report: Callable[[dict[str, Any]], None]) -> None:
    """Time every method and every peer at both discounts; ``report`` sees each record as it is done."""
    solvers = peers_of(options.peers)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        if solvers:
            write_for_peers(mdp, path)
        for discount in DISCOUNTS:
            for record in measure_answers(name, mdp, discount, options.methods.split(","), 3):
                report(record)
            reference = solve(mdp, discount=discount, error=ERROR).values
            for solver in solvers:
                found = measure_peer(options.peers, solver, path, discount, options.peer_seconds, reference)
                report({"model": name} | found)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small models")
    parser.add_argument("--rounds", type=int, default=15, help="of the sweeps, interleaved; the best counts")
    parser.add_argument("--methods", default="auto,mpi,gauss_seidel,jacobi", help="to time to the certified answer")
    parser.add_argument("--no-sweeps", action="store_true")
    parser.add_argument("--no-answers", action="store_true")
    parser.add_argument("--no-size", action="store_true")
    parser.add_argument("--peers", help="the Python of an environment with quantecon, mdpsolver or pymdptoolbox")
    parser.add_argument("--peer-seconds", type=float, default=120.0, help="time box of a peer")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    machine = (
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, NumPy {np.__version__}"
    )
    sweeps: list[dict[str, Any]] = []
    answers: list[dict[str, Any]] = []

    def report(record: dict[str, Any]) -> None:
        answers.append(record)
        if not options.json:
            show_answer(record)

    for name, world in (QUICK if options.quick else FULL).items():
        mdp = build_world(world)
        if not options.json:
            print(
                f"\n{name}: {mdp.n_states:,} states, {mdp.n_transitions:,} transitions, {mdp.nbytes / 1e6:.0f} MB; {machine}"
            )
        if not options.no_sweeps:
            sweeps += (records := measure_sweeps(name, mdp, options.rounds, TRIAD))
            if not options.json:
                show_sweeps(records)
        if not options.no_answers:
            compare(name, mdp, options, report)
        del mdp
    size = None if options.no_size else measure_size(QUICK_SIZE if options.quick else SIZE, DISCOUNTS[0])
    if options.json:
        print(json.dumps({"machine": machine, "sweeps": sweeps, "answers": answers, "size": size}, indent=1))
    elif size is not None:
        show_size(size)


if __name__ == "__main__":
    sys.exit(main())
