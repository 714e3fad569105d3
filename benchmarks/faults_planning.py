"""Every certificate against exact rational arithmetic, every interruption against none, every malformed model refused.

    python benchmarks/faults_planning.py                    # 2,000 MDPs and 20 interruptions a question, some minutes
    python benchmarks/faults_planning.py --models 200 --seed 7 --json

A model has at most ten states and is random or adversarial: chains up to γ = 0.9999, ties, self loops, rewards from
1e-12 to 1e12 beside each other, near-deterministic rows, probabilities in single precision whose rows do not sum to 1.
Its V* is found by policy iteration in ``fractions.Fraction`` on the numbers exactly as they are stored. Each model is
solved by one method to one error, both drawn; then it must hold, exactly: lower ≤ V* ≤ upper in every state, ‖V − V*‖ ≤
error_bound, the greedy policy's exact value is at least V* − policy_loss_bound; and where the solution says that it
converged, error_bound ≤ the error asked for (so at most 2 of it). One model in five is at γ = 1 with every policy ending.

The malformed models are those of tests/mdp/test_mdp_malformed.py: arrays in Python; texts and files through the command
line, which must print one error that names the place, no traceback, and exit with 2.
Exit code 1 if anything does not hold.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from dynaboltz.cli import main as main_of_the_shell
from dynaboltz.errors import UserError
from dynaboltz.mdp import MDP, build_world
from dynaboltz.planning import METHODS, Progress, Solution, jacobi, solve

SUMMARIES = ("boltzmann(beta=power(2))", "boltzmann(3)", "mellowmax(beta=power(1))", "mean", "log_sum_exp(2)")
"""One solution in four is of one of these, by plain sweeps: the certificate holds for the values of any summary."""

INTERRUPTIONS = 20
RESUMED: dict[str, dict[str, Any]] = {
    "DBS, traced": {"method": "jacobi", "summary": "boltzmann(beta=power(2))", "trace": "values", "error": 1e-5},
    "mellowmax": {"method": "jacobi", "summary": "mellowmax(5)"},
    "gauss_seidel": {"method": "gauss_seidel"},
    "mpi": {"method": "mpi"},
    "auto": {"method": "auto"},
}


def policy_values(mdp: MDP, discount: float, rows: list[int | None]) -> list[Fraction]:
    """V of the policy with these rows, None at a terminal state, by exact elimination."""
    n, gamma = mdp.n_states, Fraction(discount)
    system = [{i: Fraction(1), n: Fraction(0)} for i in range(n)]
    for s, row in enumerate(rows):
        if row is None:
            continue
        system[s][n] = Fraction(float(mdp.reward[row]))
        for k in range(mdp.row_ptr[row], mdp.row_ptr[row + 1]):
            t = int(mdp.next_state[k])
            system[s][t] = system[s].get(t, Fraction(0)) - gamma * Fraction(float(mdp.probability[k]))
    for i in range(n):  # I − γP needs no pivoting: its rows are diagonally dominant, and stay so
        for j in range(n):
            if j != i and (factor := system[j].get(i)):
                factor /= system[i][i]
                for column, x in system[i].items():
                    system[j][column] = system[j].get(column, Fraction(0)) - factor * x
    return [system[i][n] / system[i][i] for i in range(n)]


def optimum(mdp: MDP, discount: float) -> list[Fraction]:
    """V* by policy iteration in rationals."""
    gamma = Fraction(discount)
    spans = [range(mdp.state_ptr[s], mdp.state_ptr[s + 1]) for s in range(mdp.n_states)]
    rows: list[int | None] = [span[0] if len(span) else None for span in spans]
    while True:
        values = policy_values(mdp, discount, rows)
        q = {}
        for row in range(mdp.n_rows):
            span = range(mdp.row_ptr[row], mdp.row_ptr[row + 1])
            total = sum((Fraction(float(mdp.probability[k])) * values[mdp.next_state[k]] for k in span), Fraction(0))
            q[row] = Fraction(float(mdp.reward[row])) + gamma * total
        better = [max(span, key=q.__getitem__) if len(span) else None for span in spans]
        improved = [
            b if b is not None and a is not None and q[b] > q[a] else a for a, b in zip(rows, better, strict=True)
        ]
        if improved == rows:
            return values
        rows = improved


def violations(mdp: MDP, discount: float, solution: Solution, exact: list[Fraction], error: float) -> list[str]:
    """What the solution claims that is not so."""
    certificate, found = solution.certificate, set()
    lower, upper = certificate.lower, certificate.upper
    rows: list[int | None] = []
    for s in range(mdp.n_states):
        if not Fraction(float(lower[s])) <= exact[s] <= Fraction(float(upper[s])):
            found.add("V* outside of lower and upper")
        if abs(Fraction(float(solution.values[s])) - exact[s]) > Fraction(certificate.error_bound):
            found.add("error above error_bound")
        span = range(mdp.state_ptr[s], mdp.state_ptr[s + 1])
        rows.append(next((row for row in span if mdp.action[row] == solution.policy[s]), None))
    achieved = policy_values(mdp, discount, rows)
    if any(best - own > Fraction(certificate.policy_loss_bound) for best, own in zip(exact, achieved, strict=True)):
        found.add("policy loses more than policy_loss_bound")
    to_optimum = solution.summary.operator.name == "hard_max"
    if solution.converged and to_optimum and certificate.error_bound > error:
        found.add("converged with a bound above the error asked for")
    return sorted(found)


def random_model(rng: np.random.Generator) -> tuple[str, MDP, float]:
    """Draw a kind, a model of that kind, and a discount."""
    kind = str(rng.choice(["random", "chain", "ties", "scales", "undiscounted"]))
    discount = float(rng.choice([0.0, 0.5, 0.9, 0.99, 0.999, 0.9999]))
    if kind == "chain":
        slip = float(rng.choice([0.0, 1e-9, 0.1, 0.5]))
        mdp = build_world(f"chain(states={rng.integers(2, 11)}, slip={slip!r})")
        discount = float(rng.choice([0.99, 0.999, 0.9999]))
    else:
        n = int(rng.integers(2, 7))
        ending = 1 if kind == "undiscounted" else int(rng.integers(0, 2))
        columns: list[tuple[int, int, int, float, float]] = []
        for s in range(n - ending):
            for a in range(int(rng.integers(1, 4))):
                targets = rng.choice(n, rng.integers(1, min(n, 4) + 1), replace=False)
                if kind == "undiscounted" and n - 1 not in targets:
                    targets[0] = n - 1
                if rng.random() < 0.2 and kind != "undiscounted":
                    targets = np.array([s])
                least = 1e-3 if kind == "undiscounted" else 1e-6  # below, counting the steps to the end is refused
                weights = rng.dirichlet(np.full(targets.size, float(rng.choice([0.05, 1.0, 20.0])))) + least
                reward = {
                    "ties": float(rng.integers(-1, 2)),
                    "scales": float(rng.normal() * 10.0 ** rng.integers(-12, 13)),
                }.get(kind, float(rng.normal()))
                columns += [
                    (s, a, int(t), float(w), reward) for t, w in zip(targets, weights / weights.sum(), strict=True)
                ]
        mdp = MDP.from_transitions(*zip(*columns, strict=True), n_states=n, terminal=np.arange(n) >= n - ending)
        if kind == "undiscounted":
            discount = 1.0
    if rng.random() < 0.4:
        mdp = mdp.with_precision(np.float32)
    return kind, mdp, discount


def check_model(rng: np.random.Generator) -> tuple[str, bool, float, list[str]]:
    """Draw, solve and check one model: its kind, whether it converged, error bound over true error, and violations."""
    kind, mdp, discount = random_model(rng)
    size = float(np.abs(mdp.reward).max()) or 1.0
    error = size * 10.0 ** -float(rng.integers(0, 10))
    plain = rng.random() < 0.25
    summary = str(rng.choice(SUMMARIES)) if plain else "hard_max"
    method = "jacobi" if plain else str(rng.choice(list(METHODS)))
    solution = solve(
        mdp, discount=discount, summary=summary, method=method, error=error, max_sweeps=300_000 if not plain else 3_000
    )
    exact = optimum(mdp, discount)
    true = max(abs(Fraction(float(v)) - x) for v, x in zip(solution.values, exact, strict=True))
    tightness = float(Fraction(solution.certificate.error_bound) / true) if true else float("nan")
    return kind, solution.converged, tightness, violations(mdp, discount, solution, exact, error)


def same(a: Solution, b: Solution) -> bool:
    """Whether two solutions agree in every bit but the seconds."""
    parts = [
        (
            x.values.tobytes(),
            x.policy.tobytes(),
            x.sweeps,
            x.reason,
            repr(x.certificate),
            x.certificate.backup.tobytes(),
        )
        + (
            ()
            if x.trace is None
            else tuple(getattr(x.trace, name).tobytes() for name in ("beta", "bound", "a_priori", "values"))
        )
        for x in (a, b)
    ]
    return parts[0] == parts[1]


def check_resume(name: str, rng: np.random.Generator, folder: Path) -> tuple[int, int]:
    """Interrupt one question at up to 20 random steps, resume each: how many were tried, how many were equal."""
    settings = {"discount": 0.99, "error": 1e-9} | RESUMED[name]
    mdp = build_world("garnet(states=120, actions=4, branching=5)" if "grid" not in name else "grid(slip=0.1)")
    if settings["method"] in ("mpi", "auto"):
        mdp = build_world("chain(states=400, slip=0.3)")  # mixing models are solved before they can be interrupted
    steps: list[int] = []
    whole = solve(mdp, **settings, progress=lambda update: steps.append(update.sweep))
    points = rng.choice(steps[:-1], min(INTERRUPTIONS, len(steps) - 1), replace=False)
    equal = 0
    for number, point in enumerate(points):

        def stop(update: Progress, point: int = int(point)) -> None:
            if update.sweep >= point:
                raise KeyboardInterrupt

        path = folder / str(number)
        try:
            solve(mdp, **settings, checkpoint=path, progress=stop)
        except KeyboardInterrupt:
            equal += same(solve(mdp, **settings, checkpoint=path, resume=True), whole)
    return len(points), equal


MALFORMED = Path(__file__).parents[1] / "tests" / "mdp" / "test_mdp_malformed.py"


def check_malformed(folder: Path) -> tuple[int, list[str]]:
    """How many malformed models there are, and which of them are not refused with the words that their test asks for."""
    spec = importlib.util.spec_from_file_location("malformed", MALFORMED)
    assert spec is not None
    assert spec.loader is not None
    cases = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(cases)
    bad = []
    for name, (build, says) in cases.ARRAYS.items():
        try:
            build()
        except UserError as error:
            clear = re.search(says, str(error)) is not None
        except Exception:  # what a user would see as a traceback
            clear = False
        else:
            clear = False
        bad += [] if clear else [name]
    sources = {name: (text, says) for name, (text, says) in cases.TEXTS.items()}
    for number, (name, (files, says)) in enumerate(cases.FILES.items()):
        place = folder / str(number)
        place.mkdir()
        for file, text in files.items():
            (place / file).write_bytes(text.encode("utf-8", "surrogateescape"))
        sources[name] = (str(place / next(iter(files))), says)
    for name, (source, says) in sources.items():
        out, err = io.StringIO(), io.StringIO()
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = main_of_the_shell(["mdp", "check", source])
        except Exception as error:
            code = repr(error)
        text = err.getvalue()
        clear = code == 2 and text.startswith("error: ") and re.search(says, text) is not None
        bad += [] if clear and "Traceback" not in text and not out.getvalue() else [name]
    return len(cases.ARRAYS) + len(sources), bad


@dataclass
class Tally:
    """What was seen so far."""

    kinds: Counter[str] = field(default_factory=Counter)
    converged: Counter[str] = field(default_factory=Counter)
    tightness: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def run(models: int, seed: int, report: Callable[[int, Tally], object]) -> Tally:
    """Check models one after the other."""
    tally = Tally()
    for number in range(models):
        kind, done, ratio, found = check_model(np.random.default_rng([seed, number]))
        tally.kinds[kind] += 1
        tally.converged[kind] += done
        tally.tightness.append(ratio)
        tally.failures += [f"model {number} (seed {seed}), {kind}: {text}" for text in found]
        report(number + 1, tally)
    return tally


def main() -> int:
    """Check and print; 1 if anything does not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    began = shown = time.monotonic()

    def report(number: int, tally: Tally) -> None:
        nonlocal shown
        if (now := time.monotonic()) - shown > 5:
            shown = now
            left = (now - began) / number * (options.models - number)
            print(
                f"  {number} of {options.models} models, {len(tally.failures)} failures, about {left:.0f} s left",
                file=sys.stderr,
            )

    tally = run(options.models, options.seed, report)
    jacobi.MOST_IN_A_CALL = 3  # so that small models stop often enough to be interrupted
    rng = np.random.default_rng(options.seed)
    resumed = {}
    for name in RESUMED:
        with tempfile.TemporaryDirectory() as folder:
            resumed[name] = check_resume(name, rng, Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        malformed, accepted = check_malformed(Path(folder))
    ratios = np.array([r for r in tally.tightness if np.isfinite(r)])
    result = {
        "models": dict(tally.kinds),
        "converged": dict(tally.converged),
        "failures": tally.failures,
        "bound over true error, median and 95 %": [float(np.median(ratios)), float(np.quantile(ratios, 0.95))],
        "resumed (tried, equal)": resumed,
        "malformed models": malformed,
        "malformed and not refused clearly": accepted,
        "seconds": round(time.monotonic() - began, 1),
    }
    bad = bool(tally.failures) or bool(accepted) or any(tried != equal for tried, equal in resumed.values())
    if options.json:
        print(json.dumps(result, indent=1))
        return int(bad)
    print(f"R15  {tally.kinds.total()} models against exact rationals, {len(tally.failures)} violations")
    for kind in sorted(tally.kinds):
        print(f"     {kind:13s} {tally.kinds[kind]:5d} models, {tally.converged[kind]:5d} converged")
    print(
        "     error bound over true error: median {:.3g}, 95 % below {:.3g}".format(
            *result["bound over true error, median and 95 %"]
        )
    )  # type: ignore[misc]
    for text in tally.failures[:20]:
        print(f"     {text}")
    for name, (tried, equal) in resumed.items():
        print(f"R7   {name:13s} {equal} of {tried} interruptions equal to never interrupted")
    print(f"R16  {malformed} malformed models, {malformed - len(accepted)} refused with a clear error")
    for text in accepted:
        print(f"     not so: {text}")
    print(f"     {result['seconds']} s")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
