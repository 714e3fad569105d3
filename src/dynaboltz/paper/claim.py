"""What a claim of the paper is here, and what a test of it brings to light."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from dynaboltz.reports.figures import Figure


class Verdict(StrEnum):
    """What the evidence says of a claim."""

    HOLDS = "holds"
    CORRECTED = "holds with a correction"
    DOES_NOT_FOLLOW = "does not follow from the text"
    OUT_OF_REACH = "out of reach here, runs on a cluster with this command"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One fact that was tested, and whether it was found true."""

    fact: str
    """A sentence that is true or false; written so that True is what the claim, or our correction, says."""
    true: bool | None
    """None where it takes more than this machine has: the evidence then names the command that would tell."""
    of: str = "paper"
    """Whose statement it is: "paper", "ours", or "aside" for a fact of ours that replaces none of the paper's."""
    detail: str = ""
    """The number behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A small table for the page; numbers are formatted by the page."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a claim's test found. The verdict follows from the checks and from nothing else."""

    finding: str
    """Two or three sentences for the reader."""
    settings: Mapping[str, Any]
    checks: Sequence[Check]
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)
    """Everything that was computed, for the JSON file."""
    command: str = ""
    """What a cluster runs to decide the checks that are open here."""

    def __post_init__(self) -> None:
        untold = [check.fact for check in self.checks if check.true is None]
        if bool(untold) != bool(self.command):
            raise ValueError(f"open checks {untold} and the command that decides them {self.command!r} go together")
        if any(check.of == "ours" for check in self.checks if check.true is None):
            raise ValueError(f"a statement of ours is measured or not made, got open {untold}")

    @property
    def verdict(self) -> Verdict:
        """Holds if all of the paper's statements do; with a correction if ours replace those that do not.

        Out of reach if none of those that were tested fails and some were not.
        """
        paper = [check.true for check in self.checks if check.of == "paper"]
        if False not in paper:
            return Verdict.OUT_OF_REACH if None in paper else Verdict.HOLDS
        ours = [check.true for check in self.checks if check.of == "ours"]
        return Verdict.CORRECTED if ours and all(ours) else Verdict.DOES_NOT_FOLLOW


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One statement, figure or table of the paper, with the function that puts it to the test."""

    name: str
    """Its id: file names, ``--only``."""
    title: str
    section: str
    """The part of the ledger it belongs to: theory, planning, learning, deep."""
    where: str
    """Where the paper makes it."""
    says: str
    """What the paper says."""
    equations: Mapping[str, str]
    """Equation of the paper → function of ours, as importable path."""
    test: Callable[[np.random.Generator], Evidence]
    """Runs the test with its own stream of random numbers."""
    full: Callable[[np.random.Generator], Evidence] | None = None
    """The same test at a larger size, for a claim that has one: ``--full``."""
    small: Callable[[np.random.Generator], Evidence] | None = None
    """The same test in seconds and to the same verdict, for a claim that needs minutes: what the tests run."""

    @property
    def quick(self) -> Callable[[np.random.Generator], Evidence]:
        """The smallest test there is."""
        return self.small or self.test
