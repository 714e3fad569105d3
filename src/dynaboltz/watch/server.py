"""The server: 127.0.0.1 alone, one request a connection, few of them, short patience, and a fixed table of paths."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path

from dynaboltz.errors import UnknownNameError, UserError
from dynaboltz.reports.page import embedded_json
from dynaboltz.runs import Home, read_config
from dynaboltz.watch.follow import LARGEST, follow
from dynaboltz.watch.gate import LONGEST_HEAD, Gate, Refused, Request, begins_well, parse
from dynaboltz.watch.page import page
from dynaboltz.watch.stage import Stage
from dynaboltz.watch.state import Standing
from dynaboltz.watch.weights import WHICH

HOST = "127.0.0.1"
MOST_CONNECTIONS = 32
PATIENCE_SECONDS = 5.0
"""For a whole request, and for taking the whole answer."""
LINGER_SECONDS, LINGER_BYTES = 1.0, 1 << 20
"""How long, and how much, of what a refused client goes on to send is read, so that it sees its answer."""
PARENT_SECONDS = 1.0
"""Between looks whether the process that started this one is still there."""
ENDS = b"\r\n\r\n"

COMMON = {
    "Connection": "close", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}  # fmt: skip
NOTHING = "default-src 'none'; frame-ancestors 'none'"
"""The content security policy of what is no page."""

TAKES: Mapping[str, frozenset[str]] = {
    "/": frozenset({"token"}),
    "/state": frozenset(),
    "/rows": frozenset({"place", "mark"}),
    "/moment": frozenset({"after"}),
}
"""Every path there is, and the names that its query may have."""


class Watcher:
    """What there is to be asked of one run."""

    def __init__(self, folder: Path, *, agent: bool = True, weights: str = "last", fps: float = 10.0) -> None:
        if weights not in WHICH:
            raise UnknownNameError("choice of weights", weights, WHICH)
        config, home = read_config(folder), Home(folder)
        self.home, self.token, self.fps = home, secrets.token_urlsafe(32), fps
        self.standing = Standing(home, config)
        self.stage = Stage(home, config, which=weights, fps=fps, beta=self.standing.beta) if agent else None
        self._page, self._policy = page()
        self._once = asyncio.Lock()

    async def answer(self, request: Request) -> tuple[bytes, str, str]:
        """Body, type and policy of what an admitted request asks for."""
        if request.path == "/":
            return self._page, "text/html; charset=utf-8", self._policy
        if request.path == "/state":
            async with self._once:
                found = await asyncio.to_thread(self.standing.now)
            found |= {"playing": self.stage is not None, "fps": self.fps}
        elif request.path == "/rows":
            place, mark = _count(request.query.get("place", "0")), request.query.get("mark", "")
            found = await asyncio.to_thread(follow, self.home.rows, place, mark)
        else:
            after = _count(request.query.get("after", "0"))
            found = {"n": 0, "message": ""} if self.stage is None else self.stage.look(after)
        return embedded_json(found).encode(), "application/json", NOTHING

    def close(self) -> None:
        """End the play."""
        if self.stage is not None:
            self.stage.close()


def watch(watcher: Watcher, *, port: int = 0, ready: Callable[[str], None]) -> None:
    """Serve until Ctrl-C, a signal that asks for the end, or the end of the process that started this one.

    Args:
        watcher: what to serve; it is closed at the end.
        port: which to listen at; 0 for any that is free.
        ready: called with the address, once it can be opened.
    """
    try:
        asyncio.run(_serve(watcher, port, ready))
    except KeyboardInterrupt:  # where a loop cannot take signals
        pass
    finally:
        watcher.close()


async def _serve(watcher: Watcher, port: int, ready: Callable[[str], None]) -> None:
    parent, alone = os.getppid(), False
    ended = asyncio.Event()
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) != signal.SIG_IGN:
            with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
                asyncio.get_running_loop().add_signal_handler(number, ended.set)
        elif name == "SIGHUP":  # by nohup it is asked to stay when the terminal goes; Windows has no such signal
            alone = True
    doors = Doors(watcher)
    try:
        server = await asyncio.start_server(doors.come_in, HOST, port, limit=LONGEST_HEAD, backlog=MOST_CONNECTIONS)
    except (OSError, OverflowError) as fault:
        reason = getattr(fault, "strerror", None) or fault
        raise UserError(f"cannot listen at {HOST}:{port}: {reason}\n  --port 0 takes one that is free") from None
    try:
        port = server.sockets[0].getsockname()[1]
        doors.gate = Gate(port, watcher.token)
        ready(f"http://{HOST}:{port}/?token={watcher.token}")
        while alone or os.getppid() == parent:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), PARENT_SECONDS)
                return
    finally:
        server.close()  # and no wait for those who are inside: they may be slow


class Doors:
    """Lets connections in, a few at a time, and answers each once."""

    def __init__(self, watcher: Watcher) -> None:
        self.watcher, self.gate = watcher, Gate(0, watcher.token)
        self._inside = 0

    async def come_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection."""
        self._inside += 1
        try:
            if self._inside > MOST_CONNECTIONS:
                await _refuse(writer, Refused(HTTPStatus.TOO_MANY_REQUESTS, "there are too many connections"))
                return
            try:
                await self._converse(reader, writer)
            except Refused as refused:
                await _refuse(writer, refused)
                await _linger(reader)
        except (OSError, TimeoutError):  # the client has left, or takes too long
            pass
        finally:
            self._inside -= 1
            writer.transport.abort() if writer.transport.get_write_buffer_size() else writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                head = await _head(reader)
        except TimeoutError:
            raise Refused(HTTPStatus.REQUEST_TIMEOUT, "the request did not come to its end") from None
        request = parse(head, TAKES)
        self.gate.admit(request, page=request.path == "/")
        if request.path not in TAKES:
            raise Refused(HTTPStatus.NOT_FOUND, "there is nothing here")
        try:
            body, kind, policy = await self.watcher.answer(request)
        except OSError as fault:
            raise Refused(HTTPStatus.NOT_FOUND, f"the run cannot be read: {fault.strerror}") from None
        await _send(
            writer, HTTPStatus.OK, {"Content-Type": kind, "Content-Security-Policy": policy}, body, request.method
        )


async def _refuse(writer: asyncio.StreamWriter, refused: Refused) -> None:
    headers = {"Content-Type": "text/plain; charset=utf-8", "Content-Security-Policy": NOTHING}
    if refused.status == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = "GET, HEAD"
    await _send(writer, refused.status, headers, f"{refused.why}\n".encode())


async def _linger(reader: asyncio.StreamReader) -> None:
    """Read some of what still comes: closed before that, the connection would take the answer along."""
    async with asyncio.timeout(LINGER_SECONDS):
        left = LINGER_BYTES
        while left > 0 and (part := await reader.read(1 << 16)):
            left -= len(part)


async def _head(reader: asyncio.StreamReader) -> bytes:
    """The bytes of a request before its empty line, which must be all that is sent."""
    data = b""
    while ENDS not in data:
        part = await reader.read(4096)
        if not part:
            raise Refused(HTTPStatus.BAD_REQUEST, "the request has no end")
        data += part
        begins_well(data)
        if len(data) > LONGEST_HEAD:
            raise Refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the headers are too long")
    head, _, rest = data.partition(ENDS)
    if rest:
        raise Refused(HTTPStatus.BAD_REQUEST, "something follows the request")
    return head


async def _send(
    writer: asyncio.StreamWriter, status: HTTPStatus, headers: Mapping[str, str], body: bytes, method: str = "GET"
) -> None:
    lines = [f"HTTP/1.1 {status.value} {status.phrase}", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in {**headers, **COMMON}.items()]
    writer.write("\r\n".join(lines).encode("ascii") + ENDS + (b"" if method == "HEAD" else body))
    async with asyncio.timeout(PATIENCE_SECONDS):
        await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


def _count(text: str) -> int:
    """A number of a query."""
    if not text.isdecimal() or len(text) > 16 or int(text) > LARGEST:
        raise Refused(HTTPStatus.BAD_REQUEST, "a number is none")
    return int(text)
