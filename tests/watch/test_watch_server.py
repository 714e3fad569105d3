"""``dynaboltz watch`` as a process: over real sockets, to its end, with the run as it was."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dynaboltz.cli import main
from dynaboltz.runs import Home, home_of, train

PATIENCE_SECONDS = 120.0
SLOW = ("half a request, then silence", "nothing at all")
"""They take the server's whole patience; ``benchmarks/faults_watch.py`` sends them too."""


def closed(port: int) -> bool:
    """Whether nothing listens there any more."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 5).close()
        except OSError:
            return True
        time.sleep(0.05)
    return False


def ask(page: Any, method: str = "GET", target: str = "/state") -> tuple[http.client.HTTPResponse, bytes]:
    line = http.client.HTTPConnection("127.0.0.1", page.server.port, timeout=60)
    line.request(method, target, headers={"X-Dynaboltz-Token": page.server.token})
    answer = line.getresponse()
    body = answer.read()
    line.close()
    return answer, body


def test_watch_refuses_what_it_must_and_goes_on(serve: Any, faults: ModuleType, begun: Any) -> None:
    names = [name for name in faults.REQUESTS if name not in SLOW]
    assert len(names) >= 95
    with serve(begun[0].folder, "--no-agent") as page:
        assert [text for name in names if (text := faults.wrong(page.server, name))] == []
        assert page.process.poll() is None


def test_watch_listens_at_the_loopback_address_alone(serve: Any, faults: ModuleType, begun: Any) -> None:
    if not Path("/proc/net/tcp").exists():
        pytest.skip("the system does not say who listens where")
    with serve(begun[0].folder, "--no-agent") as page:
        assert faults.local(page.server) == ""


def test_watch_answers_with_headers_that_keep_others_out(serve: Any, begun: Any) -> None:
    with serve(begun[0].folder, "--no-agent") as page:
        answer, body = ask(page, "GET", f"/?token={page.server.token}")
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; ")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert page.server.token.encode() not in body
        for target in ("/state", "/rows?place=0&mark=", f"/?token={page.server.token}"):
            headers = ask(page, "GET", target)[0].headers
            assert "Access-Control-Allow-Origin" not in headers
            assert "Server" not in headers
            assert {name: headers[name] for name in ("Cache-Control", "Connection", "Referrer-Policy")} == {
                "Cache-Control": "no-store", "Connection": "close", "Referrer-Policy": "no-referrer"
            }  # fmt: skip
            assert {headers["X-Content-Type-Options"], headers["X-Frame-Options"]} == {"nosniff", "DENY"}


def test_watch_answers_a_head_by_headers_alone(serve: Any, begun: Any) -> None:
    with serve(begun[0].folder, "--no-agent") as page:
        answer, body = ask(page, "HEAD")
        assert (answer.status, body) == (200, b"")
        assert int(answer.headers["Content-Length"]) > 100


def test_watch_without_the_agent_says_so(serve: Any, trained: Any) -> None:
    with serve(trained.home.folder, "--no-agent") as page:
        assert page.get("/state")["playing"] is False
        assert page.get("/moment?after=0") == {"n": 0, "message": ""}


def test_watch_follows_a_run_that_begins_grows_and_goes(serve: Any, begun: Any, append: Callable[..., None]) -> None:
    home = begun[0]
    with serve(home.folder, "--no-agent") as page:
        assert page.get("/state")["phase"] == "waiting"
        append(home.rows, {"kind": "episode", "step": 5, "return": 2.0})
        found = page.get("/rows?place=0&mark=")
        assert found["episodes"] == [[5], [2.0]]
        append(home.rows, {"kind": "episode", "step": 9, "return": 3.0})
        more = page.get(f"/rows?place={found['next']}&mark={found['mark']}")
        assert (more["episodes"], more["again"]) == ([[9], [3.0]], False)
        shutil.rmtree(home.folder)
        assert page.get("/state")["phase"] == "gone"
        assert page.get(f"/rows?place={more['next']}&mark={more['mark']}")["again"] is True


def test_watch_writes_nothing_into_the_run(serve: Any, faults: ModuleType, trained: Any) -> None:
    before = faults.content(trained.home.folder)
    with serve(trained.home.folder) as page:
        now: dict[str, Any] = {"n": 0}
        while now["n"] < 10:
            page.get("/state")
            page.get("/rows?place=0&mark=")
            now = page.get(f"/moment?after={now['n']}")
    assert faults.content(trained.home.folder) == before


def test_a_training_that_is_watched_comes_to_the_same_rows_and_weights(
    serve: Any, trained: Any, tmp_path: Path
) -> None:
    home, ended = home_of(trained.config, tmp_path), threading.Event()
    seen: list[str] = []
    home.prepare(trained.config)

    def look(page: Any) -> None:
        place, mark, after = 0, "", 0
        while not ended.is_set() or len(seen) < 3:
            rows = page.get(f"/rows?place={place}&mark={mark}")
            place, mark = rows["next"], rows["mark"]
            after = page.get(f"/moment?after={after}")["n"]
            seen.append(page.get("/state")["phase"])

    with serve(home.folder) as page:
        watcher = threading.Thread(target=look, args=(page,))
        watcher.start()
        try:
            result = train(trained.config, tmp_path)
        finally:
            ended.set()
            watcher.join()
    assert (result.rows, result.weights) == (trained.result.rows, trained.result.weights)
    assert seen[-1] == "finished"
    assert "failed" not in seen


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_watch_ends_well_by_a_signal(name: str, serve: Any, trained: Any) -> None:
    with serve(trained.home.folder) as page:
        while page.get("/moment?after=0")["n"] < 3:  # while the agent is at play
            time.sleep(0.05)
        with socket.create_connection(("127.0.0.1", page.server.port)):  # and somebody says nothing
            page.process.send_signal(getattr(signal, name))
            assert page.process.wait(PATIENCE_SECONDS) == 0
    assert closed(page.server.port)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only there the children of a process are listed")
def test_watch_that_is_killed_leaves_no_process_behind(serve: Any, trained: Any) -> None:
    with serve(trained.home.folder) as page:
        while page.get("/moment?after=0")["n"] < 3:
            time.sleep(0.05)
        tasks = Path(f"/proc/{page.process.pid}/task")
        assert "".join((task / "children").read_text() for task in tasks.iterdir()).split() == []
        page.process.kill()
        page.process.wait()
        assert closed(page.server.port)


@pytest.mark.skipif(os.name != "posix", reason="a process whose parent has ended gets another one on POSIX")
def test_watch_ends_with_the_process_that_started_it(trained: Any) -> None:
    script = (
        "import signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
        "subprocess.Popen([sys.executable, '-m', 'dynaboltz', 'watch', sys.argv[1], '--no-agent'])\n"
        "time.sleep(600)\n"
    )
    line = [sys.executable, "-c", script, str(trained.home.folder)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        port = int(parent.stdout.readline().partition("/?token=")[0].rpartition(":")[2])
        parent.kill()
        parent.wait()
        assert closed(port)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["watch", *map(str, arguments)]) == 2
    out = capsys.readouterr()
    assert out.out == ""
    return out.err


def test_watch_refuses_a_folder_without_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no run in" in refusal(capsys, tmp_path)
    assert "there is no run in" in refusal(capsys, tmp_path / "nothing")


def test_watch_names_the_run_below_a_folder(trained: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"did you mean {trained.home.folder}?" in refusal(capsys, trained.home.folder.parent)


def test_watch_refuses_settings_that_cannot_be_read(begun: Any, capsys: pytest.CaptureFixture[str]) -> None:
    begun[0].config.write_text("env = [\n")
    assert str(begun[0].config) in refusal(capsys, begun[0].folder)


def test_watch_refuses_a_port_that_is_taken(trained: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        text = refusal(capsys, trained.home.folder, "--no-agent", "--port", port)
    assert text.startswith(f"error: cannot listen at 127.0.0.1:{port}: ")
    assert "--port 0 takes one that is free" in text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--port", "70000"), "--port must be an integer from 0 to 65535, got 70000"),
        (("--port", "-1"), "--port must be an integer from 0 to 65535, got -1"),
        (("--fps", "0"), "--fps must be a number from 0.1 to 30, got 0"),
        (("--fps", "nan"), "--fps must be a number from 0.1 to 30, got nan"),
        (("--fps", "1e9"), "--fps must be a number from 0.1 to 30, got"),
    ],
)
def test_watch_refuses_numbers_out_of_range(
    arguments: tuple[str, str], text: str, trained: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert text in refusal(capsys, trained.home.folder, *arguments)


def test_watch_prints_its_address_and_how_to_end_it(serve: Any, trained: Any) -> None:
    with serve(trained.home.folder, "--no-agent") as page:
        assert page.process.stdout.readline() == "  Ctrl-C ends it; the run is only read\n"
        assert len(page.server.token) == 43
    with serve(trained.home.folder, "--no-agent") as other:
        assert other.server.token != page.server.token


def test_home_of_a_run_that_is_watched_is_the_one_given(serve: Any, trained: Any) -> None:
    with serve(trained.home.folder, "--no-agent") as page:
        assert Home(Path(page.get("/state")["folder"])) == trained.home
