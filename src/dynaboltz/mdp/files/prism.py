"""PRISM's explicit files: ``model.tra`` with ``model.lab``, ``model.srew`` and ``model.trew`` beside it.

=========  =============================  ====================================================================
file       first line                     other lines
=========  =============================  ====================================================================
.tra       states choices transitions     state choice next-state probability [action]
.lab       0="init" 1="deadlock" …        state: label label …
.srew      states entries                 state reward, added to every choice of the state
.trew      states choices entries         state choice next-state reward
=========  =============================  ====================================================================

Lines that begin with # are comments. PRISM knows one reward a choice, so that is what is written; rewards that vary
over the next states are read as such.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dynaboltz.errors import UserError
from dynaboltz.files import replacing
from dynaboltz.mdp.files.choices import Choices, from_choices, to_choices
from dynaboltz.mdp.files.disk import bad_line, parse_float, parse_int, read_lines

if TYPE_CHECKING:
    from dynaboltz.mdp.model import MDP

LIMIT = 10**15
Branch = tuple[int, int, int]
"""State, choice and next state."""


def write(mdp: MDP, path: Path) -> None:
    """Write ``path`` with its ``.lab`` and ``.trew``; the transitions last, so that they never stand alone."""
    choices = to_choices(mdp, path)
    n_states, n_choices = choices.init.size, len(choices.names)
    counts = np.diff(choices.branch_ptr)
    state = np.repeat(np.arange(n_states), np.diff(choices.choice_ptr))
    position = np.arange(n_choices) - choices.choice_ptr[state]
    paid = np.repeat(choices.reward, counts)
    rows = np.repeat(np.arange(n_choices), counts)
    places = [f"{s} {c} {t}" for s, c, t in zip(state[rows], position[rows], choices.target, strict=True)]
    rewards = [f"{place} {r!r}" for place, r in zip(places, paid.tolist(), strict=True) if r]
    labels = [
        f"{s}:{' 0' if init else ''}{' 1' if dead else ''}"
        for s, (init, dead) in enumerate(zip(choices.init, choices.deadlock, strict=True))
        if init or dead
    ]
    _write_lines(path.with_suffix(".lab"), ['0="init" 1="deadlock"', *labels])
    _write_lines(path.with_suffix(".trew"), [f"{n_states} {n_choices} {len(rewards)}", *rewards])
    # State rewards of a model that stood here before must not be added to these.
    path.with_suffix(".srew").unlink(missing_ok=True)
    names = [f" {name}" if name else "" for name in choices.names]
    lines = (
        f"{place} {p!r}{names[row]}"
        for place, p, row in zip(places, choices.probability.tolist(), rows.tolist(), strict=True)
    )
    _write_lines(path, [f"{n_states} {n_choices} {len(places)}", *lines])


def _write_lines(path: Path, lines: list[str]) -> None:
    with replacing(path) as file:
        file.write("\n".join(lines).encode() + b"\n")


def read(path: Path, reward: str | None = None) -> MDP:
    """The MDP in ``path`` and the files beside it."""
    if reward is not None:
        raise UserError(f"{path}: the rewards are those of the .srew and .trew beside it; leave out reward={reward!r}")
    n_states, n_choices, branches, names = _transitions(path)
    rewards = _rewards(path, n_states, branches)
    init, deadlock = _labels(path.with_suffix(".lab"), n_states)
    order = sorted(branches)
    index = {choice: number for number, choice in enumerate(sorted(names))}
    if len(index) != n_choices:
        raise bad_line(path, 1, f"the header says {n_choices} choices, but the lines have {len(index)}")
    choice_state = np.array([state for state, _ in sorted(names)], np.int64)
    lengths = np.bincount([index[s, c] for s, c, _ in order], minlength=len(index))
    return from_choices(
        Choices(
            choice_ptr=np.concatenate([[0], np.cumsum(np.bincount(choice_state, minlength=n_states))]),
            names=[names[choice] for choice in sorted(names)],
            branch_ptr=np.concatenate([[0], np.cumsum(lengths)]),
            target=np.array([branch[2] for branch in order], np.int64),
            probability=np.array([branches[branch] for branch in order], np.float64),
            reward=np.array([rewards.get(branch, 0.0) for branch in order], np.float64),
            init=init,
            deadlock=deadlock,
        ),
        path,
    )


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The number and the words of each line that says something."""
    for number, line in enumerate(read_lines(path), 1):
        if (words := line.split()) and not words[0].startswith("#"):
            yield number, words


def _header(path: Path, lines: Iterator[tuple[int, list[str]]], what: tuple[str, ...]) -> list[int]:
    number, words = next(lines, (1, []))
    if len(words) != len(what):
        raise bad_line(path, number, f"the header must be the {len(what)} numbers: {', '.join(what)}")
    return [parse_int(path, number, name, word, LIMIT) for name, word in zip(what, words, strict=True)]


def _transitions(path: Path) -> tuple[int, int, dict[Branch, float], dict[tuple[int, int], str | None]]:
    lines = _lines(path)
    n_states, n_choices, n_branches = _header(path, lines, ("states", "choices", "transitions"))
    body = list(lines)
    if len(body) != n_branches:
        raise bad_line(path, 1, f"the header says {n_branches} transitions, but {len(body)} lines follow")
    if not 0 < n_states <= 2 * n_branches:
        # Every state begins or ends some transition: a larger number is a mistake, or an attack on memory.
        raise bad_line(path, 1, f"{n_states} states cannot all occur in {n_branches} transitions")
    branches: dict[Branch, float] = {}
    names: dict[tuple[int, int], str | None] = {}
    for number, words in body:
        if len(words) not in (4, 5):
            raise bad_line(path, number, "a transition is: state choice next-state probability [action]")
        state = parse_int(path, number, "state", words[0], n_states)
        choice = parse_int(path, number, "choice", words[1], LIMIT)
        target = parse_int(path, number, "next state", words[2], n_states)
        if (state, choice, target) in branches:
            raise bad_line(path, number, f"state {state}, choice {choice} leads to {target} a second time")
        probability = parse_float(path, number, "probability", words[3])
        if not 0 <= probability <= 1 + 1e-9:
            raise bad_line(
                path, number, f"state {state}, choice {choice}: the probability is {probability}, not in [0, 1]"
            )
        name = words[4] if len(words) == 5 else None
        if names.setdefault((state, choice), name) != name:
            raise bad_line(
                path, number, f"state {state}, choice {choice} is called {names[state, choice]!r} and {name!r}"
            )
        branches[state, choice, target] = probability
    return n_states, n_choices, branches, names


def _rewards(path: Path, n_states: int, branches: dict[Branch, float]) -> dict[Branch, float]:
    rewards: dict[Branch, float] = {}
    if (beside := path.with_suffix(".trew")).exists():
        lines = _lines(beside)
        *_, entries = _header(beside, lines, ("states", "choices", "entries"))
        for number, words in lines:
            if len(words) != 4:
                raise bad_line(beside, number, "a transition reward is: state choice next-state reward")
            s, c, t = (parse_int(beside, number, "index", word, LIMIT) for word in words[:3])
            if (s, c, t) not in branches or (s, c, t) in rewards:
                fault = "is given twice" if (s, c, t) in rewards else f"is not in {path.name}"
                raise bad_line(beside, number, f"the transition {s} {c} {t} {fault}")
            rewards[s, c, t] = _finite(beside, number, words[3])
        _check_count(beside, entries, len(rewards))
    if (beside := path.with_suffix(".srew")).exists():
        lines = _lines(beside)
        _, entries = _header(beside, lines, ("states", "entries"))
        of_state: dict[int, float] = {}
        for number, words in lines:
            if len(words) != 2:
                raise bad_line(beside, number, "a state reward is: state reward")
            state = parse_int(beside, number, "state", words[0], n_states)
            if state in of_state:
                raise bad_line(beside, number, f"state {state} is given twice")
            of_state[state] = _finite(beside, number, words[1])
        _check_count(beside, entries, len(of_state))
        for branch in branches if of_state else ():
            rewards[branch] = rewards.get(branch, 0.0) + of_state.get(branch[0], 0.0)
    return rewards


def _finite(path: Path, number: int, word: str) -> float:
    value = parse_float(path, number, "reward", word)
    if not np.isfinite(value):
        raise bad_line(path, number, f"the reward is {value}, not a finite number")
    return value


def _check_count(path: Path, said: int, found: int) -> None:
    if said != found:
        raise bad_line(path, 1, f"the header says {said} entries, but {found} lines follow")


def _labels(path: Path, n_states: int) -> tuple[np.ndarray[tuple[int], np.dtype[np.bool_]], ...]:
    """Which states are ``init``, and which are ``deadlock``; other labels are not kept."""
    masks = {name: np.zeros(n_states, np.bool_) for name in ("init", "deadlock")}
    if not path.exists():
        return tuple(masks.values())
    lines = _lines(path)
    number, words = next(lines, (1, []))
    labels: dict[str, str] = {}
    for word in words:
        key, _, name = word.partition("=")
        if not key.isdigit() or len(name) < 2 or name[0] + name[-1] != '""':
            raise bad_line(path, number, f'labels are declared as 0="init", got {word[:40]!r}')
        labels[key] = name[1:-1]
    for number, words in lines:
        if not words[0].endswith(":"):
            raise bad_line(path, number, "a state's labels are: state: label label …")
        state = parse_int(path, number, "state", words[0][:-1], n_states)
        for word in words[1:]:
            if word not in labels:
                raise bad_line(path, number, f"label {word[:40]!r} is not declared in the first line")
            if labels[word] in masks:
                masks[labels[word]][state] = True
    return tuple(masks.values())
