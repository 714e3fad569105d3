"""What operators make of one row of action values, as β changes.

For example:  dynaboltz lens 0 1 3 --summary "boltzmann(beta=power(2))" --t 1 2 3
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import tyro

from dynaboltz.errors import UserError
from dynaboltz.summaries import Summary, parse_summary


@dataclass(frozen=True, kw_only=True)
class Options:
    """See the module."""

    values: Annotated[tuple[float, ...], tyro.conf.Positional]
    """The action values of one state."""
    summary: tuple[str, ...] = (
        "hard_max", "boltzmann(beta=power(2))", "mellowmax(beta=power(2))", "log_sum_exp(beta=power(2))", "mean",
    )  # fmt: skip
    """Operators with their sharpness, such as 'boltzmann(beta=5)' or 'boltzmann(beta=power(2))'."""
    t: tuple[float, ...] = (1, 2, 5, 10)
    """Times at which a schedule is read."""
    json: bool = False
    """Print JSON instead of a table."""


@dataclass(frozen=True, slots=True)
class Row:
    """One operator at one time."""

    summary: str
    t: float | None
    beta: float | None
    value: float
    below_max: float
    """max q − value."""
    at_most: float
    """The proven bound on it, for as many actions as are legal."""
    slope: float
    """Derivative by β."""
    weights: tuple[float, ...]


def rows_of(summary: Summary, values: Sequence[float], times: Sequence[float]) -> list[Row]:
    """One row for each different β of the summary."""
    betas: dict[float | None, float | None] = {}
    for t in times:
        betas.setdefault(summary.beta(t), t)
    if len(betas) == 1:
        betas = dict.fromkeys(betas)
    operator, top, legal = summary.operator, float(max(values)), sum(value > -math.inf for value in values)
    rows = []
    for beta, at in betas.items():
        value = operator(list(values), beta).item()  # refuses a row without a legal action
        rows.append(
            Row(
                summary=str(summary),
                t=at,
                beta=beta,
                value=value,
                below_max=top - value,
                at_most=operator.traits.gap(beta if beta is not None else math.inf, legal),
                slope=operator.beta_derivative(list(values), beta).item(),
                weights=tuple(operator.weights(list(values), beta).tolist()),
            )
        )
    return rows


def main(arguments: Sequence[str]) -> int:
    """Parse, look through the lens, print."""
    options = tyro.cli(Options, args=arguments, prog="dynaboltz lens", description=__doc__)
    if not options.values:
        raise UserError("lens needs at least one action value\n  for instance: dynaboltz lens 0 1 3")
    summaries = [parse_summary(spec, "--summary") for spec in options.summary]
    rows = [row for summary in summaries for row in rows_of(summary, options.values, options.t)]
    if options.json:
        print(json.dumps([{k: _finite(v) for k, v in asdict(row).items()} for row in rows], indent=2))
    else:
        _print(rows)
    return 0


def _finite(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _print(rows: Sequence[Row]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("operator", "t", "β", "value", "max − value", "at most", "d/dβ", "weights"):
        table.add_column(heading, justify="left" if heading in ("operator", "weights") else "right", no_wrap=True)
    for row in rows:
        numbers = (row.t, row.beta, row.value, row.below_max, row.at_most, row.slope)
        cells = ["" if number is None else f"{number:.6g}" for number in numbers]
        table.add_row(row.summary, *cells, " ".join(f"{weight:.3f}" for weight in row.weights))
    console = Console()
    if not console.is_terminal:
        console.width = 200
    console.print(table)
