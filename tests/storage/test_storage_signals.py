"""A signal that asks for an end is held back until the work at hand is done; a second one is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dynaboltz.storage import Store, graceful

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
NUMBERS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1]
SAVING = """
import sys
from pathlib import Path
import numpy as np
from dynaboltz.storage import Store, graceful
store, step = Store(Path(sys.argv[1]), run="one"), 0
try:
    with graceful() as asked:
        while not asked:
            step += 1
            store.save(step, {"values": np.full(1000, float(step))})
            print(step, flush=True)
finally:
    print("left", asked.name, flush=True)
"""
STUCK = """
import time
from dynaboltz.storage import graceful
with graceful() as asked:
    print("ready", flush=True)
    while not asked:
        time.sleep(0.01)
    print("first", flush=True)
    time.sleep(60)
"""


def run(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number.name)
def test_signal_while_saving_ends_after_the_save_with_its_number(number: signal.Signals, tmp_path: Path) -> None:
    process = run(SAVING, tmp_path)
    assert process.stdout is not None
    while process.stdout.readline() != "3\n":
        assert process.poll() is None
    process.send_signal(number)
    rest, errors = process.communicate(timeout=30)
    assert process.returncode in (128 + number, -number), errors  # to a shell they are the same
    *steps, last = rest.splitlines()
    assert last == f"left {number.name}"
    found = Store(tmp_path, run="one").load()
    assert found is not None
    assert (found.step, found.skipped) == (int(steps[-1]) if steps else 3, [])
    assert not list(tmp_path.glob("*.tmp-*"))


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number.name)
def test_second_signal_ends_at_once(number: signal.Signals) -> None:
    process = run(STUCK)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert process.stdout.readline() == "first\n"
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == -number


def test_signal_with_a_handler_calls_it_afterwards() -> None:
    order: list[str] = []
    before = signal.signal(signal.SIGUSR1, lambda *_: order.append("handler"))
    try:
        with graceful() as asked:
            signal.raise_signal(signal.SIGUSR1)
            order.append(f"work, asked by {asked.name}")
        assert order == ["work, asked by SIGUSR1", "handler"]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_interrupt_becomes_keyboard_interrupt_afterwards() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), graceful():  # noqa: PT012 - what is done after the signal is the point
        signal.raise_signal(signal.SIGINT)
        done.append("work")
    assert done == ["work"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signal_that_would_kill_becomes_an_exit_with_its_number(number: signal.Signals) -> None:
    with pytest.raises(SystemExit) as ended, graceful():
        signal.raise_signal(number)
    assert ended.value.code == 128 + number


def test_error_of_the_work_goes_before_the_signal() -> None:
    with pytest.raises(ZeroDivisionError), graceful():  # noqa: PT012 - the signal comes before the error
        signal.raise_signal(signal.SIGTERM)
        _ = 1 / 0


def test_ignored_signal_stays_ignored() -> None:
    """As under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with graceful() as asked:
            signal.raise_signal(signal.SIGHUP)
        assert not asked
    finally:
        signal.signal(signal.SIGHUP, before)


def test_handlers_are_put_back() -> None:
    before = [signal.getsignal(number) for number in NUMBERS]
    with graceful():
        assert [signal.getsignal(number) for number in NUMBERS] != before
    assert [signal.getsignal(number) for number in NUMBERS] == before
    with graceful(active=False):
        assert [signal.getsignal(number) for number in NUMBERS] == before


def test_other_threads_change_no_handler() -> None:
    before, seen = signal.getsignal(signal.SIGTERM), []

    def work() -> None:
        with graceful():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
