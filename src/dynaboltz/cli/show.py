"""Show a solution that solve wrote: the value map and the policy of a grid, or the first states.

For example:  dynaboltz solve paper_grid --discount 0.9 --out grid.npz
              dynaboltz show grid.npz --figure grid.svg
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from dynaboltz.errors import UserError

if TYPE_CHECKING:
    from dynaboltz.planning.files import Shown


@dataclass(frozen=True, kw_only=True)
class Options:
    """See the module."""

    solution: Annotated[Path, tyro.conf.Positional]
    """The .npz file that solve --out wrote."""
    figure: Path | None = None
    """Draw the map into this .svg file, and a .pdf beside it."""
    rows: int = 20
    """How many states to print where there is no map."""
    json: bool = False
    """Print JSON instead of text, with the values and the policy of every state."""


def main(arguments: Sequence[str]) -> int:
    """Parse, read, print, draw."""
    options = tyro.cli(Options, args=arguments, prog="dynaboltz show", description=__doc__)
    from dynaboltz.planning.files import load_solution

    shown = load_solution(options.solution)
    if options.figure is not None:
        _draw(shown, options.figure)
    if options.json:
        content = {**shown.meta, "values": shown.values.tolist(), "policy": shown.policy.tolist()}
        print(json.dumps(content))
        return 0
    meta = shown.meta
    print(
        f"{options.solution}: {shown.values.size:,} states; {meta['summary']} by {meta['method']}, "
        f"γ = {meta['discount']:g}; every value within {meta['error_bound']:.3g} of the optimal one\n"
    )
    if shown.grid is not None:
        from dynaboltz.reports.grids import value_map

        print(value_map(shown.grid, shown.values, shown.policy, meta["action_labels"]))
    else:
        labels = meta["action_labels"]
        for state in range(min(options.rows, shown.values.size)):
            action = int(shown.policy[state])
            name = "terminal" if action < 0 else f"action {action}" + (f" {labels[action]!r}" if labels else "")
            print(f"  state {state}: {shown.values[state]:.6g}  {name}")
    return 0


def _draw(shown: Shown, path: Path) -> None:
    from dynaboltz.reports.figures import Figure, save
    from dynaboltz.reports.grids import figure

    if shown.grid is None:
        raise UserError("there is no map to draw: the solution is not of a grid world")
    if path.suffix != ".svg":
        raise UserError(f"--figure takes a .svg file, got {str(path)!r}")
    if not path.absolute().parent.is_dir():
        raise UserError(f"cannot write {path}: its folder does not exist")
    grid, labels = shown.grid, shown.meta["action_labels"]
    title = f"{shown.meta['summary']}, γ = {shown.meta['discount']:g}"
    drawing = Figure(
        name=path.stem,
        caption=title,
        alt=title,
        draw=lambda: figure(grid, shown.values, shown.policy, labels, title=title),
    )
    save(drawing, path.absolute().parent)
