"""What a named protocol of Atari asks of a run: the world as it has it, and the settings that go with it.

>>> world, settings = by_protocol("atari/Pong", "dqn_zoo")
>>> world, settings["evaluation.max_steps"]
("atari/Pong(protocol='dqn_zoo')", 27000)
"""

from __future__ import annotations

from typing import Any

from dynaboltz.envs.names import split, written
from dynaboltz.envs.protocols import PROTOCOLS
from dynaboltz.errors import UnknownNameError, UserError
from dynaboltz.text import short

DEFAULT = "nature2015"
"""The protocol of a game that names none."""


def by_protocol(env: str, name: str) -> tuple[str, dict[str, Any]]:
    """The game that ``env`` names, under the protocol ``name``, and the settings of a run that belong to it.

    What ``env`` itself changes of another protocol does not outlive it.
    """
    head, _ = split(env)
    if not head.startswith("atari/"):
        raise UserError(f"protocols are of Atari games, such as atari/Breakout; {short(env)} is none")
    if name not in PROTOCOLS:
        raise UnknownNameError("protocol", str(name), PROTOCOLS)
    return written(head, {"protocol": name}), dict(PROTOCOLS[name].run)
