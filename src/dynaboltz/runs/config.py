"""What a run is: every setting of it, from defaults, a preset, a file and the command line, in that order.

>>> config = resolve("dqn", None, {"env": Given("CartPole-v1", "the command line")})
>>> config.env, config.steps
('CartPole-v1', 100000)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from dynaboltz.deep.config import AgentConfig
from dynaboltz.deep.presets import PRESETS, SCALES
from dynaboltz.errors import UnknownNameError, UserError
from dynaboltz.runs import toml
from dynaboltz.runs.protocols import DEFAULT, by_protocol
from dynaboltz.runs.settings import Given, build, check, flat, settings_of, unknown_key

SINKS = ("console", "tensorboard", "wandb")
"""Where rows can go besides the run's own file."""

MADE_WITH = "made_with"
"""The table of versions in a resolved file; no settings."""

OUTSIDE_IDENTITY = ("saving.", "sinks", "device", "memory_limit_gb", "agent.threads")
"""How and where a run is done; all else is what it is."""

LATER = {
    "agent.duelling": False,
    "agent.noisy": 0.0,
    "agent.atoms": 1,
    "agent.value_range": (-10.0, 10.0),
    "agent.c_period_updates": 1,
}
"""Settings that came after runs had been made, each with the value that does what was done before it came. At that
value a setting is no part of the identity, so that no run loses its own; whoever adds a setting adds it here."""

WORLDS_OF_A_SCALE = {"minatar/": "minatar", "ALE/": "nature", "atari/": "nature"}
"""How the name of an environment begins, and the scale that a preset named without one then takes."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Episodes that are only looked at: nothing of the training knows of them."""

    period_steps: int = 10_000
    """Agent steps between evaluations; 0 for one at the end only."""

    episodes: int = 10
    """Episodes of each; 0 for none at all."""

    epsilon: float = 0.0
    """Share of random actions."""

    max_steps: int = 27_000
    """Agent steps after which an episode is cut and counts as it stands."""

    def __post_init__(self) -> None:
        check(self, "evaluation.")
        _at_least("evaluation.period_steps", self.period_steps, 0)
        _at_least("evaluation.episodes", self.episodes, 0, most=100_000)
        _at_least("evaluation.max_steps", self.max_steps, 1)
        if not 0 <= self.epsilon <= 1:
            raise UserError(f"evaluation.epsilon must be from 0 to 1, got {self.epsilon:g}")


@dataclass(frozen=True, kw_only=True)
class Saving:
    """When the whole state goes to disk."""

    period_seconds: float = 60.0
    """Seconds between checkpoints; 0 to leave it to period_steps."""

    period_steps: int = 0
    """Agent steps between checkpoints; 0 to leave it to period_seconds."""

    keep: int = 2
    """How many of the newest checkpoints stay."""

    def __post_init__(self) -> None:
        check(self, "saving.")
        _at_least("saving.period_seconds", self.period_seconds, 0)
        _at_least("saving.period_steps", self.period_steps, 0)
        _at_least("saving.keep", self.keep, 1)


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """One run."""

    env: str
    """A Gymnasium id, 'minatar/breakout', 'probe/beta', 'package.module:factory'; keywords in brackets after it."""

    name: str = "agent"
    """What the agent is called in paths and reports; a preset brings its own name."""

    steps: int = 100_000
    """Agent steps of the run, all its environments together."""

    n_envs: int = 1
    """Environments that are stepped side by side."""

    seed: int = 0
    """Root of every random number."""

    log_period_steps: int = 1_000
    """Agent steps between rows of the learner's state (loss, β, c, gaps)."""

    sinks: tuple[str, ...] = ()
    """Where rows go besides the run's own file: console, tensorboard, wandb."""

    device: str = "cpu"
    """Where the network lives: cpu, cuda, cuda:1, mps. Only cpu is tested."""

    memory_limit_gb: float | None = None
    """Refuse to start above so many gigabytes; none takes what the machine has free."""

    agent: AgentConfig = field(default_factory=AgentConfig)
    """The learner; see there."""

    evaluation: Evaluation = field(default_factory=Evaluation)
    """See there."""

    saving: Saving = field(default_factory=Saving)
    """See there."""

    def __post_init__(self) -> None:
        check(self)
        if not self.env.strip():
            raise UserError("env must name an environment, such as CartPole-v1, got ''")
        _at_least("steps", self.steps, 1)
        _at_least("n_envs", self.n_envs, 1, most=4096)
        _at_least("seed", self.seed, 0, most=2**63 - 1)
        _at_least("log_period_steps", self.log_period_steps, 1)
        for sink in self.sinks:
            if sink not in SINKS:
                raise UnknownNameError("sink", sink, SINKS, "sinks")
        if self.memory_limit_gb is not None and not self.memory_limit_gb > 0:
            raise UserError(f"memory_limit_gb must be above 0, got {self.memory_limit_gb:g}")

    @property
    def identity(self) -> str:
        """The SHA-256 of every setting that says what the run is; not when, where or how it is done."""
        settings = {
            key: value
            for key, value in flat(self).items()
            if not key.startswith(OUTSIDE_IDENTITY) and not (key in LATER and value == LATER[key])
        }
        settings["agent.summary"] = str(self.agent.parsed_summary)
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def _at_least(name: str, value: float, least: float, *, most: float = 2**53) -> None:
    if not least <= value <= most:
        above = f" and at most {most:,}" if value > most else ""
        raise UserError(f"{name} must be at least {least:,}{above}, got {value:,}")


SETTINGS = settings_of(RunConfig)
"""Every key of a run's settings."""

STANDING_FOR = ("preset", "protocol")
"""Keys that stand for settings."""


def resolve(preset: str | None, file: Path | None, given: Mapping[str, Given]) -> RunConfig:
    """The settings of a run: defaults, under a preset, under a TOML file, under what is given one by one.

    The file may name the preset itself (``preset = "dqn"``); one named here comes before it. ``protocol`` stands, like
    ``preset``, for settings: those of a named protocol of Atari, over the preset's.
    """
    values = ({} if file is None else toml.read(file)) | dict(given)
    values = {key: value for key, value in values.items() if not key.startswith(f"{MADE_WITH}.")}
    named, protocol = values.pop("preset", None), values.pop("protocol", None)
    place = named.place if named is not None and preset is None else ""
    preset = named.value if named is not None and preset is None else preset
    for key, value in values.items():
        if key not in SETTINGS:
            raise unknown_key(key, SETTINGS, value.place, also=STANDING_FOR)
    base: dict[str, object] = {}
    if preset is not None:
        name = _at_scale(preset, values.get("env"), place)
        base = flat(PRESETS[name](), "agent.") | {"name": name}
    if protocol is not None:
        values["env"], asked = _by_protocol(values.get("env"), protocol)
        base = base | asked
    return build(RunConfig, values, base)


def _by_protocol(env: Given | None, protocol: Given) -> tuple[Given, dict[str, object]]:
    """The game by that protocol, and the settings that go with it."""
    if env is None:
        raise UserError(f"protocol in {protocol.place} needs a game: set env, such as atari/Breakout")
    if "(" in str(env.value):
        raise UserError(
            f"protocol: {env.value!r} in {env.place} has settings of its own or names a protocol itself\n"
            "  write the game alone, such as atari/Breakout, and protocol beside it"
        )
    world, asked = by_protocol(str(env.value), str(protocol.value))
    return (env if protocol.value == DEFAULT else replace(env, value=world)), asked


def _at_scale(preset: object, env: Given | None, place: str) -> str:
    """The preset's name with the scale of the environment, where it has none."""
    if not isinstance(preset, str) or preset not in PRESETS:
        raise UnknownNameError("preset", str(preset), PRESETS, place)
    begins = [scale for start, scale in WORLDS_OF_A_SCALE.items() if env and str(env.value).startswith(start)]
    bare = not any(preset.endswith(f"-{scale}") for scale in SCALES)
    return f"{preset}-{begins[0]}" if begins and bare else preset
