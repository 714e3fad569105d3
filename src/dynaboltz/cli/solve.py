"""Solve a finite MDP: values, a policy, and a proven bound on their error.

For example:  dynaboltz solve FrozenLake-v1 --discount 0.999 --error 1e-6
              dynaboltz solve model.tra --discount 0.95 --out solution.npz
              dynaboltz solve paper_grid --discount 0.9 --summary "boltzmann(beta=power(2))" --method jacobi
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from dynaboltz.errors import UserError

if TYPE_CHECKING:
    from dynaboltz.mdp import MDP
    from dynaboltz.planning import Solution


@dataclass(frozen=True, kw_only=True)
class Options:
    """See the module."""

    source: Annotated[str, tyro.conf.Positional]
    """A file (.npz, .tra, .drn, .umb, .txt), a world such as 'garnet(states=100)', or a Gymnasium id."""
    discount: float
    """γ in [0, 1); 1 where every policy ends."""
    summary: str = "hard_max"
    """Operator of the backup, such as 'boltzmann(beta=power(2))'; t counts sweeps from 1."""
    method: str = "auto"
    """How: auto, mpi, gauss_seidel, or jacobi, which is plain sweeps and takes any summary."""
    error: float = 1e-6
    """Stop when the proven bound on the largest error is at most this."""
    max_sweeps: int = 1_000_000
    """Give up after this many sweeps, with the bound reached and exit code 1."""
    out: Path | None = None
    """Write values, policy and bounds to this .npz or .csv file."""
    checkpoint: Path | None = None
    """Keep the state of the computation in this folder, every minute and when interrupted."""
    resume: bool = False
    """Go on from the checkpoint, to the same bits as without the interruption."""
    rows: int = 20
    """How many states to print where there is no map."""
    json: bool = False
    """Print JSON, without the values."""


def main(arguments: Sequence[str]) -> int:
    """Parse, solve, print; 1 if the error asked for was not reached."""
    options = tyro.cli(Options, args=arguments, prog="dynaboltz solve", description=__doc__)
    from dynaboltz.mdp import load
    from dynaboltz.planning import Progress, solve
    from dynaboltz.planning.files import check_target, save

    if options.resume and options.checkpoint is None:
        raise UserError("--resume goes on from a folder: name it with --checkpoint FOLDER")
    if options.out is not None:
        check_target(options.out)
    model = load(options.source)
    line = StatusLine(enabled=sys.stderr.isatty() and not options.json)
    line.say("compiling, if this is the first time; loading the compiled sweeps if not")

    def show(now: Progress) -> None:
        if now.seconds > 1:
            left = f", about {now.remaining_seconds:.0f} s left" if math.isfinite(now.remaining_seconds) else ""
            line.say(
                f"sweep {now.sweep:,}: error at most {now.bound:.2g} of {now.target:.2g}; {now.seconds:.0f} s{left}"
            )

    try:
        solution = solve(
            model,
            discount=options.discount,
            summary=options.summary,
            method=options.method,
            error=options.error,
            max_sweeps=options.max_sweeps,
            checkpoint=options.checkpoint,
            resume=options.resume,
            progress=show,
        )
    except KeyboardInterrupt:
        line.clear()
        kept = f"is in {options.checkpoint}; --resume goes on from there"
        lost = "is lost; --checkpoint FOLDER keeps it"
        print(f"what was computed {lost if options.checkpoint is None else kept}", file=sys.stderr)
        raise
    line.clear()
    if options.out is not None:
        save(solution, model, options.out)
    if options.json:
        print(json.dumps(_as_json(options, model, solution), indent=2))
    else:
        print("\n".join(_report(options, model, solution)))
    return 0 if solution.converged else 1


class StatusLine:
    """One line on the terminal that is written over; nothing where there is no terminal."""

    def __init__(self, *, enabled: bool) -> None:
        self.enabled = enabled

    def say(self, text: str) -> None:
        """Show ``text`` in place of what was there."""
        if self.enabled:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Leave a clean line."""
        self.say("")


def _as_json(options: Options, model: MDP, solution: Solution) -> dict[str, Any]:
    certificate = solution.certificate
    return {
        "source": options.source,
        "states": model.n_states,
        "discount": options.discount,
        "summary": str(solution.summary),
        "method": str(solution.method),
        "converged": solution.converged,
        "reason": solution.reason,
        "error bound": certificate.error_bound,
        "policy loss bound": certificate.policy_loss_bound,
        "sweeps": solution.sweeps,
        "seconds": solution.seconds,
        "out": None if options.out is None else str(options.out),
    }


def _report(options: Options, model: MDP, solution: Solution) -> list[str]:
    certificate = solution.certificate
    state = "converged" if solution.converged else "not converged"
    lines = [
        f"{options.source}: {model.n_states:,} states, {model.n_actions} actions, {model.n_transitions:,} transitions",
        f"{state}: {solution.summary} by {solution.method}, γ = {options.discount:g}, "
        f"{solution.sweeps:,} sweeps in {solution.seconds:.2f} s",
        f"every value is within {certificate.error_bound:.3g} of the optimal one (proven, rounding included); "
        f"the policy loses at most {certificate.policy_loss_bound:.3g}",
    ]
    if math.isfinite(certificate.fixed_point_bound) and str(solution.summary) != "hard_max":
        lines.append(f"and within {certificate.fixed_point_bound:.3g} of the fixed point of {solution.summary}")
    if not solution.converged:
        lines.append(solution.reason)
    lines.append("")
    if model.grid is not None and model.grid.cols <= 60 and model.grid.rows <= 60:
        from dynaboltz.reports.grids import value_map

        lines.append(value_map(model.grid, solution.values, solution.policy, model.action_labels))
    else:
        for index in range(min(options.rows, model.n_states)):
            choice = int(solution.policy[index])
            action = "terminal" if choice < 0 else model.action_name(choice)
            lines.append(f"  {model.state_name(index)}: {solution.values[index]:.6g}  {action}")
        if model.n_states > options.rows:
            lines.append(f"  … {model.n_states - options.rows:,} more states (--out keeps them all, --rows shows more)")
    if options.out is not None:
        lines += ["", f"written to {options.out}"]
    return lines
