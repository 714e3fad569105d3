"""What an agent is: one frozen record, checked when it is made, every part of which has a text form."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from dynaboltz.errors import UnknownNameError, UserError
from dynaboltz.scalars import as_float
from dynaboltz.schedules import Constant, Schedule, parse_schedule
from dynaboltz.summaries import Dynamic, Fixed, Summary, parse_summary
from dynaboltz.tabular.forms import INITIALS, STEP_SIZES, Initial, StepSize, read_form
from dynaboltz.tabular.rules import RULES, Rule
from dynaboltz.text import literal, parse

CLOCKS = ("episode", "step", "visit", "episode_step")
"""What t may count in β_t: episodes (Algorithm 1), steps in all, updates of the pair, steps of the episode."""
EPSILON_CLOCKS = ("episode", "step")
"""What t may count in ε_t."""
TIES = ("random", "lowest")
"""Which of several greedy actions is taken: any with equal probability, or that of the lowest index."""


@dataclass(frozen=True, kw_only=True)
class Learning:
    """A tabular agent. Parts with a text form may be given as objects, and are kept as text.

    >>> Learning(summary="boltzmann(beta=power(2))", epsilon=0.05).parsed_summary.beta(3)
    9.0
    """

    rule: str = "q_learning"
    """What is learned towards: a name in ``RULES``."""
    summary: Summary | str | None = None
    """State value of the next state, with its β; by default the rule's own. Sarsa and expected_sarsa have none."""
    clock: str = "episode"
    """What t counts in β_t, from 1; a name in ``CLOCKS``."""
    discount: float = 0.9
    """γ, from 0 to 1."""
    episodes: int = 500
    """Episodes of each seed."""
    max_steps: int = 300
    """Steps after which an episode is cut off; the last update still looks ahead."""
    epsilon: Schedule | str | float = 0.1
    """ε of ε-greedy choices, a number or a schedule; an exploring choice takes every action equally often."""
    epsilon_clock: str = "episode"
    """What t counts in ε_t, from 1; a name in ``EPSILON_CLOCKS``."""
    step_size: StepSize | str | float = "constant(0.1)"
    """α: a number, or a form of ``STEP_SIZES``."""
    initial: Initial | str | float = "zeros"
    """Q_0: a number, or a form of ``INITIALS``."""
    ties: str = "random"
    """Which greedy action is taken; a name in ``TIES``."""
    mask_terminal: bool = True
    """Whether a terminal state is worth 0; else it is worth op(0, …, 0), which is log(m)/β for log_sum_exp."""
    prior: str | tuple[float, ...] = "uniform"
    """G-learning's prior over actions: uniform, or one number above 0 for each action."""

    def __post_init__(self) -> None:
        for name, names in (("rule", RULES), ("clock", CLOCKS), ("epsilon_clock", EPSILON_CLOCKS), ("ties", TIES)):
            if (value := getattr(self, name)) not in names:
                raise UnknownNameError(name, str(value), names)
        object.__setattr__(self, "discount", _number("discount", self.discount))
        for name in ("episodes", "max_steps"):
            object.__setattr__(self, name, _whole(name, getattr(self, name)))
        if not isinstance(self.mask_terminal, bool):
            raise UserError(f"mask_terminal must be True or False, got {self.mask_terminal!r}")
        for name, parsed in (
            ("summary", self._read_summary()),
            ("epsilon", self._read_epsilon()),
            ("step_size", read_form("step_size", STEP_SIZES, self.step_size, StepSize)),  # type: ignore[type-abstract]
            ("initial", read_form("initial", INITIALS, self.initial, Initial)),  # type: ignore[type-abstract]
        ):
            self.__dict__[f"parsed_{name}"] = parsed
            object.__setattr__(self, name, None if parsed is None else str(parsed))
        object.__setattr__(self, "prior", _prior(self.prior, self.parsed_rule))

    @property
    def parsed_rule(self) -> type[Rule]:
        """The rule's class."""
        return RULES[self.rule]

    @cached_property
    def parsed_summary(self) -> Summary | None:
        """The summary, if the rule has one."""
        return self._read_summary()

    @cached_property
    def parsed_epsilon(self) -> Schedule:
        """ε as a schedule."""
        return self._read_epsilon()

    @cached_property
    def parsed_step_size(self) -> StepSize:
        """α as a form."""
        return read_form("step_size", STEP_SIZES, self.step_size, StepSize)  # type: ignore[type-abstract]

    @cached_property
    def parsed_initial(self) -> Initial:
        """Q_0 as a form."""
        return read_form("initial", INITIALS, self.initial, Initial)  # type: ignore[type-abstract]

    @property
    def parsed_prior(self) -> tuple[float, ...] | None:
        """The prior, None if it is uniform."""
        if self.prior == "uniform":
            return None
        return tuple(parse(f"prior{self.prior}").args)

    def as_dict(self) -> dict[str, Any]:
        """All fields as plain numbers and texts; ``Learning(**fields)`` is equal to this one."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def _read_summary(self) -> Summary | None:
        rule, given = self.parsed_rule, self.summary
        if rule.summary is None:
            if given is not None:
                raise UserError(f"{rule.name} has no summary, got {given}; leave it out")
            return None
        if given is None:
            given = rule.summary
        if isinstance(given, str):
            given = parse_summary(given, "summary")
        if not isinstance(given, Fixed | Dynamic):
            raise UserError(f"summary must be a Fixed or Dynamic summary or its text, got {given!r}")
        rule.check(given.operator)
        return given

    def _read_epsilon(self) -> Schedule:
        given: Any = self.epsilon
        if isinstance(given, str):
            try:
                given = float(given)
            except ValueError:
                return parse_schedule(given, "epsilon")
        if isinstance(given, Schedule):
            return given
        number = as_float(given)
        if number is None or not 0.0 <= number <= 1.0:
            raise UserError(f"epsilon must be a number from 0 to 1 or a schedule, got {self.epsilon!r}")
        return Constant(number)


def _number(name: str, value: object) -> float:
    number = as_float(value)
    if number is None or not 0.0 <= number <= 1.0:
        raise UserError(f"{name} must be a number from 0 to 1, got {value!r}")
    return number


def _whole(name: str, value: object) -> int:
    number = as_float(value)
    if number is None or not number.is_integer() or not 1 <= number <= 1e12:
        raise UserError(f"{name} must be a whole number from 1 to 10^12, got {value!r}")
    return int(number)


def _prior(value: Any, rule: type[Rule]) -> str:
    if isinstance(value, str) and value.strip() == "uniform":
        return "uniform"
    if not rule.takes_prior:
        raise UserError(f"a prior is for g_learning, and the rule is {rule.name}; leave it out")
    if isinstance(value, str):
        value = parse(f"prior({value.strip().removeprefix('(').removesuffix(')')})", "prior").args
    if not isinstance(value, tuple | list) or not value:
        raise UserError(f"prior must be 'uniform' or one number an action, such as (0.7, 0.3), got {value!r}")
    numbers = [as_float(number) for number in value]
    if any(number is None or not 0 < number < math.inf for number in numbers):
        raise UserError(f"prior must hold finite numbers above 0, got {literal(tuple(value))}")
    return literal(tuple(numbers))
