"""One string → one MDP: a file, a world or a Gymnasium id."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from dynaboltz.errors import UserError
from dynaboltz.mdp.calls import parse_call
from dynaboltz.mdp.files import FORMATS, read
from dynaboltz.mdp.gym import from_gymnasium
from dynaboltz.mdp.worlds import WORLDS, build_world

if TYPE_CHECKING:
    from dynaboltz.mdp.model import MDP

GYMNASIUM_ID = re.compile(r"(?P<id>[\w./:-]+-v\d+)(?P<arguments>\(.*\))?", re.DOTALL)


def load(source: str | os.PathLike[str]) -> MDP:
    """The MDP that ``source`` names.

    Args:
        source: a path whose suffix is one of ``FORMATS`` (``model.npz``), a world (``chain(states=5)``), or the id of a
            Gymnasium environment with a transition table, with its keywords (``FrozenLake-v1(is_slippery=False)``).

    >>> load("two_cycle")
    MDP(states=2, actions=2, rows=4, transitions=4, terminal=0)
    """
    if isinstance(source, os.PathLike):
        return read(source)
    if not isinstance(source, str):
        raise UserError(f"expected the name of a model, such as 'FrozenLake-v1' or a file, got {source!r:.80}")
    text = source.strip()
    if match := GYMNASIUM_ID.fullmatch(text):
        keywords = parse_call(f"env{match['arguments']}").kwargs if match["arguments"] else {}
        return from_gymnasium(match["id"], **keywords)
    # A suffix decides before the disk does: a missing file must not be taken for a misspelt world.
    if "(" not in text and (Path(text).suffix.lower() in FORMATS or os.sep in text or Path(text).is_file()):
        return read(text)
    if not re.match(r"\s*[A-Za-z_]\w*\s*(\(|$)", text):
        raise UserError(
            f"cannot tell what {text[:80]!r} is: give a file ({', '.join(FORMATS)}), "
            f"a world ({', '.join(WORLDS)}) or a Gymnasium id such as FrozenLake-v1"
        )
    return build_world(text)
