"""A checkpoint that is whole but somebody else's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dynaboltz.errors import UserError
from dynaboltz.storage.tree import printable


class ForeignError(UserError):
    """Every whole checkpoint in the folder belongs to another run; the message names what differs."""

    def __init__(self, path: Path, found: Mapping[str, str], wanted: Mapping[str, str], noun: str = "run") -> None:
        self.path, self.found, self.wanted = path, dict(found), dict(wanted)
        differing = [name for name in wanted if found.get(name) != wanted[name]]
        what = "; ".join(f"its {name} is {_short(found.get(name))}, not {_short(wanted[name])}" for name in differing)
        super().__init__(
            f"checkpoint {path} belongs to another {noun}{': ' if what else ''}{what}\n"
            f"  resume with the same settings, or start again without resume, in another folder"
        )


def _short(value: object) -> str:
    text = printable(str(value))
    return text if len(text) <= 60 else f"{text[:12]}…"
