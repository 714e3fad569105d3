"""Protocols of Atari: what an agent is shown, when an episode ends, how scores are taken; named, frozen and hashed.

Scores of two protocols cannot be compared: the cap on an episode alone moves Atlantis by a factor of ten. So each is
data with a name, and with one field changed it has another name and another hash.

>>> str(protocol("nature2015", sticky_actions=0.25))
'nature2015(sticky_actions=0.25)'
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dynaboltz.envs.names import written
from dynaboltz.errors import UnknownNameError, UserError
from dynaboltz.mdp.calls import number, whole

LIFE_LOSS = ("terminal", "terminal_noops", "ignored")
POOLS = ("colour", "luminance", "none")
RESIZES = ("area", "bilinear")

Setting = str | int | float | bool


def _field(default: Any, unit: str, about: str) -> Any:
    return dataclasses.field(default=default, metadata={"unit": unit, "about": about})


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """How a game is played; the defaults are those of Mnih et al. (2015). ``run`` is what it asks of the run."""

    base: str
    """The named protocol that this is, or that it was changed from."""
    source: str
    """Where it is described."""

    frames_per_action: int = _field(
        4,
        "emulator frames",
        "an action is held for so many; 50 M agent steps are 200 M frames, and papers count either",
    )
    sticky_actions: float = _field(
        0.0, "probability a frame", "the emulator keeps its last action; Gymnasium's v5 ids have 0.25, vector ones 0"
    )
    all_actions: bool = _field(
        default=False, unit="", about="all 18 actions of the joystick instead of those that do something"
    )
    noops_least: int = _field(1, "emulator frames", "fewest no-ops before the first decision")
    noops_most: int = _field(30, "emulator frames", "most no-ops before the first decision; uniform between the two")
    life_loss: str = _field(
        "terminal",
        "",
        "in training: 'terminal' cuts the bootstrap and plays on, 'terminal_noops' plays no-ops as well, 'ignored'; "
        "evaluation plays whole games",
    )
    cap_frames: int = _field(
        18_000, "emulator frames", "an episode is truncated: 18,000 are 5 minutes at 60 Hz, 108,000 are 30; 0 is no cap"
    )
    pool: str = _field(
        "colour",
        "",
        "of each pixel of the last two frames: the largest red, green and blue ('colour'), the larger grey "
        "('luminance'), or the last frame alone ('none')",
    )
    resize: str = _field(
        "area",
        "",
        "'area' averages what a pixel covers; Torch's image.scale(…, 'bilinear') does that when it shrinks, so the Lua "
        "code does; 'bilinear' is Pillow's triangle, twice as wide",
    )
    stack: int = _field(4, "frames", "the agent sees so many; where an episode begins the missing ones are 0")

    run: tuple[tuple[str, Setting], ...] = ()
    """Settings of a run, by their key, that belong to the protocol but not to the world."""

    def __post_init__(self) -> None:
        whole("frames_per_action", self.frames_per_action, 1, 1000)
        object.__setattr__(self, "sticky_actions", number("sticky_actions", self.sticky_actions, 0.0, 1.0))
        if not isinstance(self.all_actions, bool):
            raise UserError(f"all_actions must be True or False, got {self.all_actions!r}")
        whole("noops_least", self.noops_least, 0, 10_000)
        whole("noops_most", self.noops_most, self.noops_least, 10_000)
        whole("cap_frames", self.cap_frames, 0)
        whole("stack", self.stack, 1, 64)
        for name, known in (("life_loss", LIFE_LOSS), ("pool", POOLS), ("resize", RESIZES)):
            if getattr(self, name) not in known:
                raise UnknownNameError(f"value of {name}:", str(getattr(self, name)), known)

    @property
    def fields(self) -> dict[str, Setting]:
        """What can be changed by keyword, and what it is."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.metadata}

    @property
    def hash(self) -> str:
        """SHA-256 of the fields and of what is asked of the run; the name is not part of it."""
        said = {"fields": self.fields, "run": dict(self.run)}
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()

    @property
    def changes(self) -> dict[str, Setting]:
        """What differs from the named protocol."""
        named = PROTOCOLS[self.base].fields
        return {key: value for key, value in self.fields.items() if value != named[key]}

    def __str__(self) -> str:
        """Its name, with what differs in brackets."""
        return written(self.base, self.changes)

    def describe(self) -> str:
        """Every field with its unit and what there is to know of it, for a person to read."""
        lines = [f"{self}  {self.hash[:12]}", f"  {self.source}"]
        for field in dataclasses.fields(self):
            if field.metadata:
                value = f"{getattr(self, field.name)} {field.metadata['unit']}".strip()
                lines.append(f"  {field.name:<18} {value:<26} {field.metadata['about']}")
        lines += [f"  {key:<34} {value!s:<30} {NOTES.get(key, '')}".rstrip() for key, value in self.run]
        return "\n".join(lines)


NOTES: Mapping[str, str] = {
    "steps": "agent steps; four times as many frames",
    "evaluation.period_steps": "agent steps",
    "evaluation.max_steps": "agent steps; a quarter of the cap in frames",
    "agent.target_period": (
        "the table of Mnih et al. says parameter updates, one every 4 steps; their released code, DQN Zoo and Dopamine "
        "count agent steps, so that their target network is four times as fresh"
    ),
    "agent.epsilon": "over agent steps; the released code begins the decay when learning begins, after 50,000",
    "agent.optimiser": (
        "centred, ε inside the root, no heavy-ball term; torch's RMSprop has ε outside. 0.01 goes with the sum over "
        "a batch of 32, 0.01/32² with its mean"
    ),
    "agent.reward_clip": "in the learner alone; scores are raw",
}
"""The traps behind the settings of a run."""

_EVALUATION_2015 = (
    ("steps", 50_000_000),
    ("evaluation.period_steps", 250_000),
    ("evaluation.episodes", 30),
    ("evaluation.epsilon", 0.05),
)
_AFTER_START = "piecewise(((50000, 1), (1050000, 0.1)))"

PROTOCOLS: dict[str, Protocol] = {
    entry.base: entry
    for entry in (
        Protocol(
            base="nature2015",
            source="Mnih et al. (2015), Nature 518: Methods and Extended Data Table 1",
            run=(
                *_EVALUATION_2015,
                ("evaluation.max_steps", 4_500),
                ("agent.target_period", "10000 updates"),
                ("agent.epsilon", "piecewise(((0, 1), (1000000, 0.1)))"),
                ("agent.optimiser", "deepmind_rmsprop(decay=0.95, epsilon=0.01)"),
                ("agent.loss_reduction", "sum"),
                ("agent.reward_clip", 1.0),
            ),
        ),
        Protocol(
            base="dqn3_lua",
            source="the code released with Mnih et al. (2015): k + 1 no-ops, k from 1 to 30, also after a lost life",
            noops_least=2,
            noops_most=31,
            life_loss="terminal_noops",
            cap_frames=0,
            run=(
                *_EVALUATION_2015,
                ("evaluation.max_steps", 125_000),
                ("agent.target_period", "10000 steps"),
                ("agent.epsilon", _AFTER_START),
                ("agent.optimiser", "deepmind_rmsprop(decay=0.95, epsilon=0.01)"),
                ("agent.loss_reduction", "sum"),
                ("agent.reward_clip", 1.0),
            ),
        ),
        Protocol(
            base="dqn_zoo",
            source="Quan & Ostrovski (2020), DQN Zoo, dqn/run_atari.py",
            cap_frames=108_000,
            resize="bilinear",
            run=(
                *_EVALUATION_2015,
                ("evaluation.max_steps", 27_000),
                ("agent.target_period", "10000 steps"),
                ("agent.epsilon", _AFTER_START),
                ("agent.optimiser", "deepmind_rmsprop(decay=0.95, epsilon=0.000009765625)"),
                ("agent.loss_reduction", "mean"),
                ("agent.reward_clip", 1.0),
            ),
        ),
        Protocol(
            base="dopamine",
            source="Castro et al. (2018), Dopamine, dqn.gin",
            sticky_actions=0.25,
            noops_least=0,
            noops_most=0,
            life_loss="ignored",
            cap_frames=108_000,
            pool="luminance",
            run=(
                ("steps", 50_000_000),
                ("evaluation.period_steps", 250_000),
                ("evaluation.epsilon", 0.001),
                ("evaluation.max_steps", 27_000),
                ("agent.replay_start_steps", 20_000),
                ("agent.target_period", "8000 steps"),
                ("agent.epsilon", "piecewise(((20000, 1), (270000, 0.01)))"),
                ("agent.optimiser", "deepmind_rmsprop(decay=0.95, epsilon=0.00001)"),
                ("agent.loss_reduction", "mean"),
                ("agent.reward_clip", 1.0),
            ),
        ),
        Protocol(
            base="machado2018",
            source="Machado et al. (2018), JAIR 61; others who name it use a cap of 108,000 frames, or minimal actions",
            sticky_actions=0.25,
            all_actions=True,
            noops_least=0,
            noops_most=0,
            life_loss="ignored",
            run=(("steps", 50_000_000), ("evaluation.episodes", 0), ("agent.reward_clip", 1.0)),
        ),
        Protocol(
            base="atari100k",
            source="Kaiser et al. (2020), as played by van Hasselt et al. (2019): 400,000 frames",
            cap_frames=108_000,
            pool="luminance",
            run=(
                ("steps", 100_000),
                ("evaluation.period_steps", 0),
                ("evaluation.episodes", 100),
                ("evaluation.epsilon", 0.001),
                ("evaluation.max_steps", 27_000),
                ("agent.reward_clip", 1.0),
            ),
        ),
    )
}
"""Every named protocol."""


def protocol(name: str = "nature2015", **changes: Any) -> Protocol:
    """The protocol of that name, with some of its fields changed.

    >>> protocol("machado2018", cap_frames=108_000).changes
    {'cap_frames': 108000}
    """
    if not isinstance(name, str) or name not in PROTOCOLS:
        raise UnknownNameError("protocol", str(name), PROTOCOLS)
    named = PROTOCOLS[name]
    for key in changes:
        if key not in named.fields:
            raise UnknownNameError(f"field of the protocol {name}:", key, named.fields)
    try:
        return dataclasses.replace(named, **changes)
    except UnknownNameError:
        raise
    except UserError as fault:
        raise UserError(f"protocol {name}: {fault}") from fault
