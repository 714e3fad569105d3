"""The exception tree: every mistake a user can make has a message that says what, where and what next.

``DynaboltzError`` is caught once, in the command line; ``exit_code`` is what a shell sees.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import ClassVar


class DynaboltzError(Exception):
    """Anything dynaboltz raises on purpose."""

    exit_code: ClassVar[int] = 1


class UserError(DynaboltzError, ValueError):
    """The input is wrong; the message says what was found, what is allowed and what to do."""

    exit_code: ClassVar[int] = 2


class StorageError(DynaboltzError):
    """A checkpoint could not be saved, or none of those that are there is whole."""


class UnknownNameError(UserError):
    """A name that is in no table: an operator, a schedule, a claim, a command."""

    def __init__(self, kind: str, name: str, known: Iterable[str], where: str = "") -> None:
        self.kind, self.name, self.known = kind, name, sorted(known)
        near = difflib.get_close_matches(name, self.known, n=1)
        if not near and len(name) > 2:  # max is hard_max
            near = [entry for entry in self.known if name in entry.split("_")][:1]
        hint = f"did you mean {near[0]!r}?  " if near else ""
        super().__init__(f"unknown {kind} {name!r}{where and ' in '}{where}\n  {hint}known: {', '.join(self.known)}")


class MissingExtraError(DynaboltzError, ImportError):
    """An optional dependency is not installed; the message holds the command that installs it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed\n"
            f"  install it with: pip install 'dynaboltz[{extra}]'"
        )
