"""The ledger holds every event that was written, whatever happens to its last line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dynaboltz.errors import DynaboltzError
from dynaboltz.studies import Ledger, read_ledger


def runs(path: Path) -> list[str]:
    return [entry["run"] for entry in read_ledger(path)]


def test_ledger_reads_what_was_written_in_its_order(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger:
        ledger.write("submitted", "a", job="1")
    with Ledger(path) as ledger:
        ledger.write("done", "a", seconds=2.5)
    assert [(entry["event"], entry["run"]) for entry in read_ledger(path)] == [("submitted", "a"), ("done", "a")]
    assert [entry.get("seconds") for entry in read_ledger(path)] == [None, 2.5]


def test_ledger_torn_at_any_byte_keeps_every_whole_line_and_takes_the_next(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger:
        for name in "abc":
            ledger.write("done", name)
    whole = path.read_bytes()
    ends = [index + 1 for index, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        kept = list("abc"[: sum(end <= cut for end in ends)])
        assert runs(path) == kept
        with Ledger(path) as ledger:
            ledger.write("done", "d")
        assert runs(path) == [*kept, "d"]
        assert all(json.loads(line) for line in path.read_text().splitlines())


def test_ledger_longer_than_a_block_is_cut_at_the_right_place(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(b'{"event": "done", "run": "a"}\n' + b"x" * 10_000)
    with Ledger(path):
        assert path.read_bytes() == b'{"event": "done", "run": "a"}\n'


def test_lines_that_are_no_events_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_text('nonsense\n[1]\n{"event": 3}\n{"event": "done", "run": "a"}\n' + "[" * 5000 + "\n")
    assert runs(path) == ["a"]


def test_ledger_that_is_not_there_has_no_events(tmp_path: Path) -> None:
    assert runs(tmp_path / "none.jsonl") == []


def test_ledger_on_a_full_disk_is_an_error_that_says_so() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    with pytest.raises(DynaboltzError, match="cannot write /dev/full"), Ledger(Path("/dev/full")) as ledger:
        ledger.write("done", "a")
