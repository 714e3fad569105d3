"""What each hyper-parameter may be: a table of checks that give the value back in its own type or say what is wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from dynaboltz.deep.rules import parse_rule
from dynaboltz.errors import UnknownNameError, UserError
from dynaboltz.scalars import as_float

Check = Callable[[str, Any], Any]

FACTORY = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def whole(least: int, largest: int = 10**12) -> Check:
    """A check for whole numbers."""

    def check(name: str, value: Any) -> int:
        number = as_float(value)
        if number is None or not number.is_integer() or not least <= number <= largest:
            raise UserError(f"{name}: must be a whole number from {least} to {largest:,}, got {value!r}")
        return int(number)

    return check


def real(least: float, largest: float = math.inf, *, above: bool = False, infinite: bool = False) -> Check:
    """A check for numbers; ``above`` excludes ``least`` itself, ``infinite`` allows ∞."""

    def check(name: str, value: Any) -> float:
        number = as_float(value)
        right = number is not None and least <= number <= largest and not (above and number == least)
        if number is None or not right or (math.isinf(number) and not infinite):
            low = f"above {least:g}" if above else f"of at least {least:g}" if math.isfinite(least) else ""
            high = f" and at most {largest:g}" if math.isfinite(largest) else ""
            off = " (inf is off)" if infinite else ""
            raise UserError(f"{name}: must be a number {low}{high}{off}, got {value!r}")
        return number

    return check


def one_of(*names: str) -> Check:
    """A check for words."""

    def check(name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in names:
            raise UnknownNameError(name, str(value), names)
        return value

    return check


def yes_or_no(name: str, value: Any) -> bool:
    """A check for switches."""
    if not isinstance(value, bool):
        raise UserError(f"{name}: must be true or false, got {value!r}")
    return value


def written(name: str, value: Any) -> str:
    """A check for text that is read elsewhere; a plain number is text too."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise UserError(f"{name}: must be text, got {value!r}")
    return value.strip()


def rule(name: str, value: Any) -> str:
    """A check for the text form of an optimiser."""
    spec = written(name, value)
    parse_rule(spec, name)
    return spec


def sizes(name: str, value: Any) -> tuple[int, ...]:
    """A check for the hidden layers."""
    if not isinstance(value, (tuple, list)) or not 1 <= len(value) <= 16:
        raise UserError(f"{name}: must be from 1 to 16 layer sizes, for instance (64, 64), got {value!r}")
    return tuple(whole(1, 1 << 16)(f"{name}[{i}]", size) for i, size in enumerate(value))


def span(name: str, value: Any) -> tuple[float, float]:
    """A check for an interval: its ends, the lower one first."""
    ends = [as_float(end) for end in value] if isinstance(value, (tuple, list)) else []
    low, high = ends if len(ends) == 2 else (None, None)
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise UserError(f"{name}: must be two numbers, the lower one first, for instance (-10, 10), got {value!r}")
    return low, high


def network(name: str, value: Any) -> str:
    """A check for the network's name."""
    known = ("mlp", "minatar", "nature")
    if isinstance(value, str) and (value in known or FACTORY.fullmatch(value)):
        return value
    if isinstance(value, str) and ":" in value:
        raise UserError(f"{name}: a network of your own reads 'package.module:factory', got {value!r}")
    raise UnknownNameError(name, str(value), (*known, "package.module:factory"))


def period(name: str, value: Any) -> tuple[int, str] | None:
    """``"2500 updates"`` as (2500, "updates"); None for ``"none"``."""
    if value == "none":
        return None
    match = re.fullmatch(r"([\d_]+) (steps|updates)", value) if isinstance(value, str) else None
    count = int(match[1].replace("_", "") or 0) if match else 0
    if match is None or not 1 <= count <= 10**12:
        raise UserError(
            f"{name}: must be a count from 1 with its unit, '10000 steps' or '2500 updates', or 'none', got {value!r}"
        )
    return count, match[2]


def _period_text(name: str, value: Any) -> str:
    period(name, value)
    return str(value)


CHECKS: dict[str, Check] = {
    "summary": written,
    "beta_clock": one_of("target_sync", "update", "step", "episode"),
    "double": yes_or_no,
    "munchausen": real(0, 1),
    "munchausen_lowest": real(-math.inf, 0),
    "discount": real(0, 1),
    "n_step": whole(1, 1000),
    "reward_clip": real(0, above=True, infinite=True),
    "network": network,
    "hidden": sizes,
    "initialisation": one_of("torch", "he"),
    "duelling": yes_or_no,
    "noisy": real(0, 10),
    "atoms": whole(1, 1 << 12),
    "value_range": span,
    "dtype": one_of("float32", "float64"),
    "autocast": one_of("off", "bfloat16"),
    "engine": one_of("auto", "torch", "compiled"),
    "threads": whole(1, 1024),
    "overlap": yes_or_no,
    "optimiser": rule,
    "learning_rate": real(0, 1e3, above=True),
    "loss": one_of("huber", "squared"),
    "huber_bound": real(0, above=True),
    "loss_reduction": one_of("mean", "sum"),
    "gradient_clip": real(0, above=True, infinite=True),
    "batch_size": whole(1, 1 << 16),
    "replay_capacity_steps": whole(1, 1 << 31),
    "replay_start_steps": whole(1),
    "prioritised": yes_or_no,
    "priority_exponent": real(0, 10),
    "importance": written,
    "train_period_steps": whole(1),
    "train_updates": whole(1, 1 << 20),
    "target_period": _period_text,
    "epsilon": written,
    "c_learning": one_of("off", "as_printed", "corrected"),
    "c_bar": one_of("fixed", "current", "infinity"),
    "c_reference": real(0),
    "c_learning_rate": real(0, above=True),
    "c_optimiser": rule,
    "c_largest_step": real(0, 10, above=True),
    "c_derivative": one_of("exact", "frozen"),
    "c_trace": real(0, 1),
    "c_period_updates": whole(1),
}
"""One check for each field of AgentConfig."""
