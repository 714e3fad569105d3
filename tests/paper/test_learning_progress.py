"""Whoever waits for a claim sees that its test moves."""

from __future__ import annotations

import sys
from threading import Event

import numpy as np
import pytest

from dynaboltz.cli import main
from dynaboltz.cli.reproduce import Pulse
from dynaboltz.paper import CLAIMS
from dynaboltz.paper.progress import each, listening

LONG = [name for name, claim in CLAIMS.items() if claim.section == "learning"]


def test_share_is_told_after_each_item_and_to_nobody_afterwards() -> None:
    told: list[float] = []
    with listening(told.append):
        assert list(each("abcd")) == list("abcd")
    assert told == [0.25, 0.5, 0.75, 1.0]
    assert list(each([1])) == [1]
    assert told[-1] == 1.0
    assert len(told) == 4


@pytest.mark.parametrize("name", LONG)
def test_every_learning_claim_tells_how_far_it_is(name: str) -> None:
    class Enough(Exception):  # noqa: N818
        pass

    def stop(share: float) -> None:
        assert 0 < share <= 1
        raise Enough

    small = CLAIMS[name].small
    assert small is not None
    with listening(stop), pytest.raises(Enough):
        small(np.random.default_rng(0))


class Screen:
    """A standard output that lets one wait for a text."""

    def __init__(self, awaited: str, *, terminal: bool) -> None:
        self.text, self.awaited, self.terminal, self.seen = "", awaited, terminal, Event()

    def write(self, text: str) -> int:
        self.text += text
        if self.awaited in self.text:
            self.seen.set()
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize(("terminal", "awaited", "last"), [
    (True, "1/1  title: 50% in ", "\r\x1b[K1/1  title: "),
    (False, "1/1  title: ..", ". "),
])  # fmt: skip
def test_line_of_a_claim_moves_and_leaves_room_for_the_verdict(
    terminal: bool, awaited: str, last: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Screen(awaited, terminal=terminal)
    monkeypatch.setattr(sys, "stdout", screen)
    with Pulse("1/1  title: ", enabled=True, seconds=0.01):
        work = each([1, 2])
        assert [next(work), next(work)] == [1, 2]  # the first is done
        assert screen.seen.wait(60)
    assert screen.text.endswith(last)


def test_nothing_is_shown_of_a_claim_whose_verdicts_are_asked_for_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    with Pulse("1/1  title: ", enabled=False, seconds=0.0):
        pass
    assert capsys.readouterr().out == ""


def test_claims_are_named_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--list", "--only", "theorem-3", "--only", "algorithm-1"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "learning",
        "algorithm-1",
        "theorem-3",
    ]
