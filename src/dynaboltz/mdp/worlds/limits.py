"""What cannot fit in memory is refused before it is begun."""

from __future__ import annotations

import os

from dynaboltz.errors import UserError

BYTES_A_TRANSITION = 20
"""Next state, probability and reward of a transition; what rows and states add is smaller."""


def check_size(world: str, transitions: int) -> None:
    """Raise a ``UserError`` if a model of so many transitions exceeds the machine's memory."""
    needed, limit = BYTES_A_TRANSITION * transitions, _memory()
    if needed > limit:
        raise UserError(
            f"world {world!r} would need about {needed / 2**30:,.1f} GiB for {transitions:,} transitions, "
            f"and this machine has {limit / 2**30:,.1f} GiB; make it smaller"
        )


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not a POSIX system
        return 1 << 36
