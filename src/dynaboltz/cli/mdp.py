"""Check, convert and show finite MDPs: files, worlds and Gymnasium ids.

For example:  dynaboltz mdp check model.tra
              dynaboltz mdp convert "grid(rows=20, cols=20, slip=0.1)" grid.npz
              dynaboltz mdp show FrozenLake-v1
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from dynaboltz.errors import UserError

if TYPE_CHECKING:
    from dynaboltz.mdp import MDP


@dataclass(frozen=True, kw_only=True)
class Options:
    """See the module."""

    action: Annotated[Literal["check", "convert", "show"], tyro.conf.Positional]
    """check: read it and say what it holds; convert: write it as the target's suffix says; show: print map or rows."""
    source: Annotated[str, tyro.conf.Positional]
    """A file (.npz, .tra, .drn, .umb, .txt), a world such as 'garnet(states=100)', or a Gymnasium id."""
    target: Annotated[Path | None, tyro.conf.Positional] = None
    """Where to write, for convert."""
    rows: int = 20
    """How many state-action rows to show."""
    json: bool = False
    """Print JSON instead of text."""


def facts(model: MDP) -> dict[str, Any]:
    """What a reader wants to know of a model before solving it."""
    import numpy as np

    lengths = np.diff(model.row_ptr)
    sums = np.add.reduceat(model.probability, model.row_ptr[:-1], dtype=np.float64) if lengths.size else np.ones(1)
    return {
        "states": model.n_states,
        "actions": model.n_actions,
        "state-action rows": model.n_rows,
        "transitions": model.n_transitions,
        "terminal states": int(np.count_nonzero(model.terminal)),
        "transitions in a row": f"{lengths.min()} to {lengths.max()}" if lengths.size else "none",
        "rewards": f"{model.reward.min():g} to {model.reward.max():g}" if lengths.size else "none",
        "probabilities": f"{model.probability.dtype}, rows sum to 1 within {np.abs(sums - 1).max():.1e}",
        "first states": "not given" if model.start is None else int(np.count_nonzero(model.start)),
        "map": "none" if model.grid is None else f"{model.grid.rows} × {model.grid.cols}",
        "memory": f"{model.nbytes / 2**20:.1f} MiB" if model.nbytes >= 2**20 else f"{model.nbytes / 2**10:.1f} KiB",
    }


def main(arguments: Sequence[str]) -> int:
    """Parse, do one of the three, print."""
    options = tyro.cli(Options, args=arguments, prog="dynaboltz mdp", description=__doc__)
    from dynaboltz.mdp import load, write

    if (options.target is not None) != (options.action == "convert"):
        raise UserError("convert takes a source and a target, check and show a source only")
    model = load(options.source)
    if options.action == "convert" and options.target is not None:
        write(model, options.target)
    if options.json:
        print(json.dumps({"source": options.source, **facts(model)}, indent=2, ensure_ascii=False))
    elif options.action == "show":
        print("\n".join(_shown(model, options.rows)))
    else:
        width = max(map(len, facts(model)))
        print("\n".join(f"{name:<{width}}  {value}" for name, value in facts(model).items()))
        print(f"written to {options.target}" if options.target else "no fault found")
    return 0


def _shown(model: MDP, rows: int) -> list[str]:
    if model.grid is not None:
        return [model.grid.text]
    states, lines = model.row_states(), [repr(model)]
    for row in range(min(rows, model.n_rows)):
        span = slice(model.row_ptr[row], model.row_ptr[row + 1])
        outcomes = ", ".join(
            f"{p:.4g} → {s}" for p, s in zip(model.probability[span][:6], model.next_state[span][:6], strict=True)
        )
        more = ", …" if model.row_ptr[row + 1] - model.row_ptr[row] > 6 else ""
        place = f"{model.state_name(int(states[row]))}, {model.action_name(int(model.action[row]))}"
        lines.append(f"  {place}: reward {model.reward[row]:g}; {outcomes}{more}")
    if model.n_rows > rows:
        lines.append(f"  … {model.n_rows - rows} more rows (--rows shows more)")
    return lines
