"""Rows read along while they are written: every row once, whatever is torn, cut off, huge or no row at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dynaboltz.watch import follow as following
from dynaboltz.watch.follow import LARGEST, follow, number, tail

Append = Callable[..., None]


def episode(step: int, value: Any = 1.0) -> dict[str, Any]:
    return {"kind": "episode", "step": step, "return": value}


class Reader:
    """Follows a file as the page does."""

    def __init__(self, path: Path) -> None:
        self.path, self.place, self.mark = path, 0, ""
        self.steps: list[float] = []
        self.again = 0

    def read(self) -> list[float]:
        more = True
        while more:
            found = follow(self.path, self.place, self.mark)
            if found["again"]:
                self.steps, self.again = [], self.again + 1
            self.place, self.mark, more = found["next"], found["mark"], found["more"]
            self.steps += found["episodes"][0]
        return self.steps


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return tmp_path / "rows.jsonl"


def test_follow_hands_on_every_row_once(rows: Path, append: Append) -> None:
    reader = Reader(rows)
    assert reader.read() == []
    for step in range(1, 5):
        append(rows, episode(step))
        assert reader.read() == reader.read() == list(range(1, step + 1))
    assert reader.again == 0


def test_follow_puts_each_kind_in_columns_of_its_own(rows: Path, append: Append) -> None:
    append(
        rows, {"kind": "start", "step": 0}, episode(3, 7), {"kind": "evaluation", "step": 5, "mean": 2.5, "return": 9}
    )
    append(rows, {"kind": "learning", "step": 4, "beta": 2.0, "loss": 0.5, "c": "none"})
    found = follow(rows, 0, "")
    assert (found["episodes"], found["evaluations"]) == ([[3], [7.0]], [[5], [2.5]])
    assert (found["learning"]["step"], found["learning"]["beta"], found["learning"]["c"]) == ([4], [2.0], [None])
    assert {len(column) for column in found["learning"].values()} == {1}
    assert found["unread"] == 0


def test_follow_waits_for_the_end_of_a_torn_line(rows: Path) -> None:
    text, reader = json.dumps(episode(1)).encode() + b"\n", Reader(rows)
    for end in range(len(text)):
        rows.write_bytes(text[:end])
        assert reader.read() == []
    rows.write_bytes(text)
    assert reader.read() == [1]


def test_follow_goes_on_where_a_resumed_run_writes_the_same_rows_again(rows: Path, append: Append) -> None:
    append(rows, *map(episode, range(1, 6)))
    reader, all_of_it = Reader(rows), rows.read_bytes()
    reader.read()
    rows.write_bytes(all_of_it)
    append(rows, episode(6))
    assert reader.read() == [1, 2, 3, 4, 5, 6]
    assert reader.again == 0


def test_follow_starts_again_while_rows_are_cut_off(rows: Path, append: Append) -> None:
    append(rows, *map(episode, range(1, 6)))
    reader = Reader(rows)
    reader.read()
    rows.write_bytes(b"".join(rows.read_bytes().splitlines(keepends=True)[:2]))
    assert reader.read() == [1, 2]
    append(rows, *map(episode, (3, 4)))
    assert reader.read() == [1, 2, 3, 4]


def test_follow_starts_again_where_another_file_of_at_least_that_length_stands(rows: Path, append: Append) -> None:
    append(rows, *map(episode, range(1, 6)))
    reader = Reader(rows)
    reader.read()
    rows.unlink()
    append(rows, *map(episode, range(11, 30)))
    assert reader.read() == list(range(11, 30))


def test_follow_starts_again_where_the_file_is_gone(rows: Path, append: Append) -> None:
    append(rows, episode(1))
    reader = Reader(rows)
    reader.read()
    rows.unlink()
    assert (reader.read(), reader.place, reader.mark) == ([], 0, "")


def test_follow_hands_on_a_long_file_in_parts(rows: Path, append: Append, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "CHUNK", 1000)
    append(rows, *map(episode, range(500)))
    first = follow(rows, 0, "")
    assert first["more"]
    assert len(first["episodes"][0]) < 30
    assert Reader(rows).read() == list(range(500))


def test_follow_passes_over_a_line_that_is_too_long(
    rows: Path, append: Append, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "LONGEST", 1000)
    for length in (999, 1000, 1001, 5000):
        rows.unlink(missing_ok=True)
        append(rows, episode(1))
        with rows.open("ab") as file:
            file.write(b"9" * length + b"\n")
        append(rows, episode(2))
        assert (Reader(rows).read(), follow(rows, 0, "")["unread"]) == ([1, 2], 1)


def test_follow_waits_for_the_end_of_a_long_line(rows: Path, append: Append, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "LONGEST", 1000)
    append(rows, episode(1))
    reader = Reader(rows)
    with rows.open("ab") as file:
        file.write(b"9" * 3000)
    assert [(reader.read(), reader.place) for _ in range(2)] == [([1], len(json.dumps(episode(1))) + 1)] * 2
    append(rows, {}, episode(2))
    assert reader.read() == [1, 2]


@pytest.mark.parametrize(
    "text",
    [
        b"", b"{", b"[]", b"null", b"\xff\xfe", b"{}", b'{"kind": "episode"}', b'{"kind": 3, "step": 1}', b"[" * 5000,
        b'{"kind": "episode", "step": 1.5, "return": 1}', b'{"kind": "episode", "step": true, "return": 1}',
        b'{"kind": "episode", "step": -1, "return": 1}',
        b'{"kind": "episode", "step": 1' + b"0" * 400 + b', "return": 1}',
        b'{"kind": "episode", "step": ' + b"9" * 5000 + b"}",
    ],
)  # fmt: skip
def test_follow_counts_what_is_no_row(text: bytes, rows: Path) -> None:
    rows.write_bytes(text + b"\n" + json.dumps(episode(2)).encode() + b"\n")
    found = follow(rows, 0, "")
    assert (found["episodes"][0], found["unread"]) == ([2], 1)


@pytest.mark.parametrize("value", [None, "1", True, [], float("nan"), float("inf"), 10**400])
def test_number_is_finite_or_none(value: object, rows: Path, append: Append) -> None:
    assert number(value) is None
    append(rows, episode(1, value), {"kind": "learning", "step": 1, "loss": value})
    found = follow(rows, 0, "")
    assert (found["episodes"], found["learning"]["loss"], found["unread"]) == ([[], []], [None], 0)


def test_follow_takes_the_largest_step_that_a_page_holds_exactly(rows: Path, append: Append) -> None:
    append(rows, episode(LARGEST), episode(LARGEST + 1))
    assert Reader(rows).read() == [LARGEST]


def test_follow_reads_no_pipe_and_no_folder(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    if hasattr(os, "mkfifo"):
        os.mkfifo(pipe)
    for path in (pipe, tmp_path):
        assert follow(path, 5, "ab")["again"]
        assert follow(path, 0, "")["next"] == 0
        assert tail(path) == []


def test_tail_is_the_last_rows_that_are_whole(rows: Path, append: Append) -> None:
    assert tail(rows) == []
    append(rows, *map(episode, range(20_000)))
    with rows.open("ab") as file:
        file.write(b'{"kind": "episode", "step": 99}')  # without its end it may still be cut off
    found = [row["step"] for row in tail(rows)]
    assert found == list(range(found[0], 20_000))
    assert 100 < len(found) < 5000


def test_tail_looks_further_back_behind_a_long_line(rows: Path, append: Append) -> None:
    append(rows, episode(1), {"kind": "note", "text": "a" * 200_000})
    assert [row.get("kind") for row in tail(rows)] == ["episode", "note"]
