"""R23: requests that the live page of a run must refuse, each on a connection of its own.

    python benchmarks/faults_watch.py           # the table, some twenty seconds
    python benchmarks/faults_watch.py --json

Foreign hosts, missing and wrong tokens, other methods, paths and addresses in every shape, requests that two readers
would read differently, and clients that are slow or many. Each must be answered with a status from 400 to 499 within
fifteen seconds, with nothing of the page or the run in the answer; after each the server must answer a good request, and
at the end the run's folder must be as it was. Exit code 1 if anything does not hold.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from dynaboltz.runs import Given, Home, resolve

SECONDS = 15.0
"""Three times the server's own patience."""
STALLED = 40
"""Clients that begin a request, all at once, and say nothing more."""
GOOD = ("/state", "/rows?place=0&mark=", "/moment?after=0")
SECRET = "dqn-of-nobody"
"""A name in the run, which no refused client may see."""


@dataclass(frozen=True)
class Server:
    """Where the page is, and its token."""

    port: int
    token: str

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def ask(
        self, target: str = "/state", method: str = "GET", *headers: str, host: str | None = "", token: str | None = "",
        version: str = "HTTP/1.1", body: str = "",
    ) -> bytes:  # fmt: skip
        """A request that is good but for what is changed; None leaves a header out."""
        lines = [f"{method} {target} {version}"]
        lines += [] if host is None else [f"Host: {host or self.host}"]
        lines += [] if token is None else [f"X-Dynaboltz-Token: {token or self.token}"]
        return ("\r\n".join([*lines, *headers, "", ""]) + body).encode("latin-1")


def to(host: str) -> Callable[[Server], bytes]:
    return lambda server: server.ask(host=host.replace("PORT", str(server.port)))


def at(target: str) -> Callable[[Server], bytes]:
    return lambda server: server.ask(target.replace("HOST", server.host).replace("TOKEN", server.token))


def by(method: str, *headers: str, body: str = "") -> Callable[[Server], bytes]:
    return lambda server: server.ask("/state", method, *headers, body=body)


def with_(*headers: str, body: str = "") -> Callable[[Server], bytes]:
    return lambda server: server.ask("/state", "GET", *headers, body=body)


def raw(text: bytes) -> Callable[[Server], bytes]:
    return lambda server: text.replace(b"HOST", server.host.encode()).replace(b"TOKEN", server.token.encode())


def page(query: str, *headers: str) -> Callable[[Server], bytes]:
    return lambda server: server.ask("/" + query.replace("TOKEN", server.token), "GET", *headers, token=None)


GOES_ON = b"\r\nHost: HOST\r\nX-Dynaboltz-Token: TOKEN\r\n\r\n"

REQUESTS: dict[str, Callable[[Server], bytes]] = {
    "foreign host": to("evil.example"),
    "foreign host with our port": to("evil.example:PORT"),
    "host that rebinds": to("127.0.0.1.evil.example:PORT"),
    "host without a port": to("127.0.0.1"),
    "host with another port": to("127.0.0.1:1"),
    "host as a number": to("2130706433:PORT"),
    "host 0.0.0.0": to("0.0.0.0:PORT"),
    "host ::1": to("[::1]:PORT"),
    "host with a user": to("127.0.0.1:PORT@evil.example"),
    "host with a dot at its end": to("localhost.:PORT"),
    "no host": lambda server: server.ask(host=None),
    "no host, HTTP/1.0": lambda server: server.ask(host=None, version="HTTP/1.0"),
    "two hosts": lambda server: server.ask("/state", "GET", "Host: evil.example"),
    "no token": lambda server: server.ask(token=None),
    "wrong token": lambda server: server.ask(token="A" * 43),
    "token cut short": lambda server: server.ask(token=server.token[:-1]),
    "token and more": lambda server: server.ask(token=server.token + "A"),
    "token in other letters": lambda server: server.ask(token=server.token.swapcase()),
    "two tokens": lambda server: server.ask("/state", "GET", f"X-Dynaboltz-Token: {'A' * 43}"),
    "token of data in the address": lambda server: server.ask(f"/state?token={server.token}", token=None),
    "page without a token": page(""),
    "page with an empty token": page("?token="),
    "page with a wrong token": page("?token=" + "A" * 43),
    "page with two tokens": page("?token=TOKEN&token=TOKEN"),
    "page with more in its query": page("?token=TOKEN&file=rows"),
    "page in a frame of another site": page("?token=TOKEN", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Dest: iframe"),
    "token as a cookie": lambda server: server.ask("/state", "GET", f"Cookie: token={server.token}", token=None),
    "another origin": with_("Origin: http://evil.example"),
    "no origin to be told": with_("Origin: null"),
    "another port's origin": with_("Origin: http://127.0.0.1:1"),
    "another site": with_("Sec-Fetch-Site: cross-site"),
    "another port's site": with_("Sec-Fetch-Site: same-site"),
    "POST": by("POST", "Content-Length: 0"),
    "POST with a body": by("POST", "Content-Length: 2", body="{}"),
    "PUT": by("PUT"),
    "DELETE": by("DELETE"),
    "PATCH": by("PATCH"),
    "OPTIONS": by("OPTIONS", "Origin: http://evil.example", "Access-Control-Request-Method: GET"),
    "TRACE": by("TRACE"),
    "CONNECT": raw(b"CONNECT HOST HTTP/1.1" + GOES_ON),
    "a method of nobody": by("BREW"),
    "a method in small letters": by("get"),
    "traversal": at("/../rows.jsonl"),
    "traversal, encoded": at("/%2e%2e/%2e%2e/etc/passwd"),
    "traversal, encoded twice": at("/%252e%252e/etc/passwd"),
    "traversal, slash encoded": at("/..%2frows.jsonl"),
    "traversal, backslash": at("/..\\..\\config.toml"),
    "traversal, overlong": at("/..%c0%af..%c0%afetc/passwd"),
    "traversal after a path": at("/state/../config.toml"),
    "a file of the run": at("/rows.jsonl"),
    "an absolute path": at("//etc/passwd"),
    "a path, encoded": at("/%73tate"),
    "a slash at the end": at("/state/"),
    "another case": at("/STATE"),
    "a null in the path": at("/state%00.html"),
    "a null byte": raw(b"GET /state\0 HTTP/1.1" + GOES_ON),
    "a null byte in a header": raw(b"GET /state HTTP/1.1\r\nX-A: a\0b" + GOES_ON),
    "a query that is no number": at("/rows?place=-1&mark="),
    "a query of a large number": at("/rows?place=" + "9" * 40 + "&mark="),
    "a query with markup": at("/rows?place=0&mark=<script>"),
    "a query that is not ours": at("/state?callback=alert"),
    "absolute address": at("http://HOST/state"),
    "absolute address elsewhere": at("http://evil.example/state"),
    "address of a file": at("file:///etc/passwd"),
    "asterisk": at("*"),
    "fragment": at("/state#x"),
    "an address of 5,000": at("/state?after=" + "1" * 5000),
    "a first line without an end": raw(b"GET /" + b"a" * 20_000),
    "a header of 10,000": with_("X-Long: " + "a" * 10_000),
    "a header of a million": with_("X-Long: " + "a" * 1_000_000),
    "a hundred headers": with_(*(f"X-{i}: a" for i in range(100))),
    "a header of spaces": with_("X-A:" + " " * 7000 + "\x01"),
    "length and chunks": with_("Content-Length: 4", "Transfer-Encoding: chunked", body="0\r\n\r\n"),
    "chunks": with_("Transfer-Encoding: chunked", body="0\r\n\r\n"),
    "chunks in disguise": with_("Transfer-Encoding : chunked", body="0\r\n\r\n"),
    "two lengths": with_("Content-Length: 0", "Content-Length: 5", body="hello"),
    "a length that is none": with_("Content-Length: +0"),
    "a body": with_("Content-Length: 5", body="hello"),
    "a request in a request": with_(body="GET /rows HTTP/1.1\r\n\r\n"),
    "a header that goes on": with_("X-A: a", " Host: evil.example"),
    "a header without a colon": with_("nonsense"),
    "a header with a space in its name": with_("Ho st: evil.example"),
    "a header with no name": with_(": a"),
    "line feeds alone": raw(b"GET /state HTTP/1.1\nHost: HOST\nX-Dynaboltz-Token: TOKEN\n\n"),
    "a line feed within": raw(b"GET /state HTTP/1.1\r\nX-A: a\nHost: HOST" + GOES_ON),
    "a carriage return within": raw(b"GET /state HTTP/1.1\r\nX-A: a\rX-B: b" + GOES_ON),
    "an empty line first": raw(b"\r\nGET /state HTTP/1.1" + GOES_ON),
    "two spaces": raw(b"GET  /state HTTP/1.1" + GOES_ON),
    "a tab": raw(b"GET\t/state HTTP/1.1" + GOES_ON),
    "letters beyond ASCII": with_("X-A: \xff\xfe"),
    "HTTP/0.9": raw(b"GET /state\r\n\r\n"),
    "HTTP/2.0": raw(b"GET /state HTTP/2.0" + GOES_ON),
    "HTTP/2's preface": raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "TLS": raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)) + b"\n"),
    "websocket": with_("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"),
    "HTTP/2 by upgrade": with_("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c"),
    "100-continue": with_("Expect: 100-continue"),
    "half a request, then silence": raw(b"GET /state HTTP/1.1\r\nHost: HOST\r\n"),
    "nothing at all": raw(b""),
}  # fmt: skip
"""Name → the bytes that are sent."""


def answer(server: Server, sent: bytes) -> tuple[int | None, bytes]:
    """Status and bytes of what the server says; None where it says nothing, or does not end."""
    found, end = b"", time.monotonic() + SECONDS
    with socket.create_connection(("127.0.0.1", server.port), SECONDS) as line:
        with contextlib.suppress(OSError):  # it may answer and close before it has all
            line.sendall(sent)
        try:
            while part := line.recv(1 << 16):
                found += part
                line.settimeout(max(0.01, end - time.monotonic()))
        except TimeoutError:
            return None, found
        except ConnectionResetError:
            pass
    status = re.match(rb"HTTP/1\.1 (\d{3}) ", found)
    return (int(status[1]) if status else None), found


def wrong(server: Server, name: str) -> str:
    """What does not hold of one request; empty if all does."""
    status, found = answer(server, REQUESTS[name](server))
    if status is None or not 400 <= status < 500:
        return f"{name}: answered by {status}, {found[:60]!r}"
    if SECRET.encode() in found or b"<html" in found or server.token.encode() in found:
        return f"{name}: the answer tells of the run"
    status, _ = answer(server, server.ask())
    return "" if status == 200 else f"{name}: after it a good request was answered by {status}"


def stalled(server: Server) -> str:
    """Many clients that do not go on: those too many are refused at once, the others in time, and then it goes on."""
    begun = [socket.create_connection(("127.0.0.1", server.port), SECONDS) for _ in range(STALLED)]
    for line in begun:
        with contextlib.suppress(OSError):
            line.sendall(b"GET /state HTTP/1.1\r\n")
    statuses = set()
    for line in begun:
        with line, contextlib.suppress(ConnectionResetError):
            line.settimeout(SECONDS)
            statuses.add(line.recv(12)[-3:])
    status, _ = answer(server, server.ask())
    return "" if statuses == {b"408", b"429"} and status == 200 else f"stalled clients: {statuses}, then {status}"


def dripping(server: Server) -> str:
    """A client that sends a byte now and then, so that it is never silent for long."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", server.port), SECONDS) as line:
        line.settimeout(0.2)
        for byte in b"GET /state HTTP/1.1\r\nX-Slow: " + b"a" * 100:
            try:
                line.sendall(bytes([byte]))
                found = line.recv(12)
            except TimeoutError:
                continue
            except OSError:
                return ""
            status = found[-3:]
            return "" if status == b"408" else f"a dripping client: answered by {status!r}"
    return f"a dripping client was still served after {time.monotonic() - began:.0f} s"


def local(server: Server) -> str:
    """It listens at 127.0.0.1 and nowhere else."""
    table = Path("/proc/net/tcp")
    if not table.exists():
        return ""
    ends = [line.split()[1:4:2] for path in (table, Path("/proc/net/tcp6")) if path.exists() for line in path.read_text().splitlines()[1:]]  # fmt: skip
    listening = [
        address for address, state in ends if state == "0A" and int(address.rpartition(":")[2], 16) == server.port
    ]
    return "" if listening == [f"0100007F:{server.port:04X}"] else f"it listens at {listening}"


def make_run(folder: Path) -> None:
    """A run with a few rows, which was never trained."""
    config = resolve(None, None, {"env": Given("CartPole-v1", "here"), "name": Given(SECRET, "here")})
    Home(folder).prepare(config)
    rows = (
        {"kind": "episode", "step": 10 * i, "env": 0, "number": i, "steps": 10, "return": 10.0} for i in range(1, 50)
    )
    Home(folder).rows.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def content(folder: Path) -> str:
    """A digest of all that is in a folder, names and times included."""
    paths = sorted(folder.rglob("*"))
    known = [(str(path), path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"") for path in paths]
    return hashlib.sha256(repr(known).encode()).hexdigest()


@contextlib.contextmanager
def served(folder: Path, *options: str) -> Iterator[tuple[Server, subprocess.Popen[str]]]:
    """The page of a run, served by a process as a user starts it."""
    line = [sys.executable, "-m", "dynaboltz", "watch", str(folder), *options]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = urlsplit(process.stdout.readline().split()[1])
            yield Server(int(address.port or 0), address.query.removeprefix("token=")), process
        finally:
            process.terminate()


def main() -> int:
    """Send all, print the table; 1 if anything does not hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_run(folder)
        before = content(folder)
        with served(folder, "--no-agent") as (server, process):
            checks: dict[str, Callable[[], str]] = {one: lambda one=one: wrong(server, one) for one in REQUESTS}  # type: ignore[misc]
            checks |= {"stalled clients": lambda: stalled(server), "dripping client": lambda: dripping(server)}
            checks["a listener elsewhere"] = lambda: local(server)
            found = {one: check() for one, check in checks.items()}
            statuses = [answer(server, server.ask(target))[0] for target in GOOD]
        changed = content(folder) != before
    failures = [text for text in found.values() if text]
    refused = len(found) - len(failures)
    failures += [] if statuses == [200] * len(GOOD) else [f"at the end good requests were answered by {statuses}"]
    failures += [] if process.returncode == 0 else [f"the server ended with code {process.returncode}"]
    failures += ["the run's folder has changed"] if changed else []
    seconds = round(time.monotonic() - began, 1)
    record = {
        "id": "R23",
        "tries": len(found),
        "refused": refused,
        "failures": failures,
        "seconds": seconds,
    }
    if options.json:
        print(json.dumps(record))
    else:
        for one, text in found.items():
            print(f"  {one:38s} {text or 'refused'}")
        print(f"R23   {len(found)} tries   {refused} refused   {seconds} s")
        print("\n".join(failures) or "the server is well, the run as it was")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
