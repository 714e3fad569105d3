"""Storm's ``.drn``: one text file, a block a state.

    state 0 [0] init
        action up [1]
            1 : 0.5
            2 : 0.5

The numbers in brackets are the rewards, one for each name under ``@reward_models``; those of a state are added to every
choice of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dynaboltz.errors import UnknownNameError, UserError
from dynaboltz.files import replacing
from dynaboltz.mdp.files.choices import Choices, from_choices, to_choices
from dynaboltz.mdp.files.disk import bad_line, parse_float, parse_int, read_lines

if TYPE_CHECKING:
    from dynaboltz.mdp.model import MDP

LIMIT = 10**15
UNNAMED = "__NOLABEL__"
HEADER = ("@type", "@value_type", "@parameters", "@reward_models", "@nr_states", "@nr_choices", "@model")


def write(mdp: MDP, path: Path) -> None:
    """Write ``mdp`` with one reward model, ``reward``."""
    choices = to_choices(mdp, path)
    with replacing(path) as file:
        for part in _text(choices):
            file.write(part.encode())


def _text(choices: Choices) -> Iterator[str]:
    n_states, n_choices = choices.init.size, len(choices.names)
    yield (
        "// Exported by dynaboltz\n// Original model type: MDP\n@type: MDP\n@value_type: double\n@parameters\n\n"
        f"@reward_models\nreward\n@nr_states\n{n_states}\n@nr_choices\n{n_choices}\n@model\n"
    )
    ends, rewards = choices.branch_ptr.tolist(), choices.reward.tolist()
    targets, probabilities = choices.target.tolist(), choices.probability.tolist()
    for state in range(n_states):
        labels = (" init" if choices.init[state] else "") + (" deadlock" if choices.deadlock[state] else "")
        lines = [f"state {state} [0]{labels}\n"]
        for choice in range(choices.choice_ptr[state], choices.choice_ptr[state + 1]):
            lines.append(f"\taction {choices.names[choice] or UNNAMED} [{rewards[choice]!r}]\n")
            branches = range(ends[choice], ends[choice + 1])
            lines.extend(f"\t\t{targets[branch]} : {probabilities[branch]!r}\n" for branch in branches)
        yield "".join(lines)


@dataclass(slots=True)
class _Reader:
    """What has been read so far; ``column`` is the reward taken from each bracket, None if there are none."""

    path: Path
    n_states: int
    column: int | None
    choice_ptr: list[int] = field(default_factory=lambda: [0])
    names: list[str | None] = field(default_factory=list)
    branch_ptr: list[int] = field(default_factory=lambda: [0])
    target: list[int] = field(default_factory=list)
    probability: list[float] = field(default_factory=list)
    reward: list[float] = field(default_factory=list)
    init: list[bool] = field(default_factory=list)
    deadlock: list[bool] = field(default_factory=list)
    of_state: float = 0.0
    of_choice: float = 0.0

    def state(self, number: int, words: list[str]) -> None:
        state = parse_int(self.path, number, "state", words[1] if len(words) > 1 else "", self.n_states)
        if state != len(self.init):
            raise bad_line(self.path, number, f"state {len(self.init)} was expected, got state {state}")
        self.of_state, labels = self._reward(number, words[2:])
        self.choice_ptr.append(self.choice_ptr[-1])
        self.init.append("init" in labels)
        self.deadlock.append("deadlock" in labels)

    def choice(self, number: int, words: list[str]) -> None:
        if not self.init or len(words) < 2:
            raise bad_line(self.path, number, "an action needs a name, and a state above it")
        self.of_choice, _ = self._reward(number, words[2:])
        self.choice_ptr[-1] += 1
        self.names.append(None if words[1] == UNNAMED else words[1])
        self.branch_ptr.append(self.branch_ptr[-1])

    def branch(self, number: int, words: list[str]) -> None:
        if not self.names or self.choice_ptr[-1] == (self.choice_ptr[-2] if len(self.choice_ptr) > 1 else 0):
            raise bad_line(self.path, number, "a transition needs an action above it")
        if len(words) != 3 or words[1] != ":":
            raise bad_line(self.path, number, "a transition is: next-state : probability")
        self.target.append(parse_int(self.path, number, "next state", words[0], self.n_states))
        value = parse_float(self.path, number, "probability", words[2])
        if not 0 <= value <= 1 + 1e-9:
            raise bad_line(self.path, number, f"state {len(self.init) - 1}: the probability {value} is not in [0, 1]")
        self.probability.append(value)
        self.reward.append(self.of_state + self.of_choice)
        self.branch_ptr[-1] += 1

    def _reward(self, number: int, words: list[str]) -> tuple[float, list[str]]:
        """The reward in the bracket that ``words`` begin with, and the words after it."""
        if not words or not words[0].startswith("["):
            return 0.0, words
        inner, closed, rest = " ".join(words)[1:].partition("]")
        values = [word.strip() for word in inner.split(",")]
        if not closed or (self.column is not None and len(values) <= self.column):
            raise bad_line(self.path, number, "the rewards in brackets do not match @reward_models")
        if self.column is None:
            return 0.0, rest.split()
        value = parse_float(self.path, number, "reward", values[self.column])
        if not np.isfinite(value):
            raise bad_line(self.path, number, f"the reward is {value}, not a finite number")
        return value, rest.split()


def read(path: Path, reward: str | None = None) -> MDP:
    """The MDP in ``path``, with the reward model ``reward``, which may be left out if there is but one."""
    lines = read_lines(path)
    header, body = _header(path, lines)
    number, kind = header.get("@type", (1, ""))
    if kind != "MDP":
        raise bad_line(path, number, f"the model must be of the @type MDP, got {kind or 'none'!r}")
    if header.get("@parameters", (0, ""))[1]:
        raise bad_line(path, header["@parameters"][0], "a model with parameters has no numbers yet; give them values")
    n_states, n_choices = (_size(path, header, key, len(lines)) for key in ("@nr_states", "@nr_choices"))
    reader = _Reader(path, n_states, _column(path, header.get("@reward_models", (0, ""))[1].split(), reward))
    kinds = {"state": reader.state, "action": reader.choice}
    for number, line in enumerate(lines[body:], body + 1):
        words = line.split()
        if words and not words[0].startswith("//"):
            kinds.get(words[0], reader.branch)(number, words)
    for what, said, found in (("states", n_states, len(reader.init)), ("choices", n_choices, len(reader.names))):
        if said != found:
            raise UserError(f"{path}: the header says {said} {what}, but the file has {found}")
    return from_choices(
        Choices(
            choice_ptr=np.array(reader.choice_ptr),
            names=reader.names,
            branch_ptr=np.array(reader.branch_ptr),
            target=np.array(reader.target, np.int64),
            probability=np.array(reader.probability),
            reward=np.array(reader.reward),
            init=np.array(reader.init),
            deadlock=np.array(reader.deadlock),
        ),
        path,
    )


def _header(path: Path, lines: list[str]) -> tuple[dict[str, tuple[int, str]], int]:
    """The line and the value of each key, and the number of the line ``@model``. A value may stand one line below."""
    found: dict[str, tuple[int, str]] = {}
    key = ""
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text.startswith("@"):
            key, _, value = (part.strip() for part in text.partition(":"))
            if key not in HEADER:
                raise bad_line(path, number, f"unknown key {key[:40]!r}; known: {', '.join(HEADER)}")
            found[key] = (number, value)
            if key == "@model":
                return found, number
        elif text and not text.startswith("//"):
            if not key or found[key][1]:
                raise bad_line(path, number, f"expected a key such as @model, got {text[:40]!r}")
            found[key] = (number, text)
    raise UserError(f"{path}: there is no @model; this is not a .drn file, or it is cut off")


def _size(path: Path, header: dict[str, tuple[int, str]], key: str, lines: int) -> int:
    number, text = header.get(key, (1, ""))
    value = parse_int(path, number, key, text, LIMIT)
    if value > lines:
        raise bad_line(path, number, f"{key} is {value}, more than the file has lines")
    return value


def _column(path: Path, names: list[str], wanted: str | None) -> int | None:
    if wanted is not None and wanted not in names:
        raise UnknownNameError("reward model", wanted, names, str(path))
    if wanted is None and len(names) > 1:
        raise UserError(f"{path} has the reward models {', '.join(names)}; say which: read(path, reward={names[0]!r})")
    return names.index(wanted) if wanted is not None else (0 if names else None)
