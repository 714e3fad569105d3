"""Requests, read strictly: what is not plainly a GET or HEAD of ours, from this machine's own browser, is refused.

A page on the web can make a browser send requests to 127.0.0.1, and by a name of its own that it lets point there
(DNS rebinding) it can read the answers. So the Host must be ours, the sender must be our own page where the browser
says who it is, and every request must hold a token that only the printed address has. Nothing is decoded, no path
leads to a file, a request has no body and a connection has one request: what could be read in two ways is refused.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from http import HTTPStatus

LONGEST_LINE = 1024
"""Bytes of the first line."""
LONGEST_HEAD = 8192
"""Bytes up to the empty line."""
MOST_HEADERS = 64
TOKEN_HEADER = "x-dynaboltz-token"
"""A header that no other site's page can send without being asked about first, which is refused."""

LINE = re.compile(rb"([A-Za-z]{1,20}) ([\x21-\x7e]+) HTTP/1\.[01]")
TARGET = re.compile(r"(/[^?#]*)(?:\?([^?#]*))?")
HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\x20-\x7e\t]*)")  # no two parts that could share a byte
PAIR = re.compile(r"([a-z]{1,20})=([A-Za-z0-9_-]{0,64})")
ONCE = ("host", "content-length", "origin", TOKEN_HEADER)
"""Headers that must not be there twice."""


class Refused(Exception):  # noqa: N818 - an answer, not an error
    """The status that the client gets, and why."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asks for."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Gate:
    """Who may come in."""

    port: int
    token: str

    @property
    def hosts(self) -> tuple[str, ...]:
        """What the Host header may be; a browser leaves out the port that is HTTP's own."""
        names = ("127.0.0.1", "localhost")
        return tuple(f"{name}:{self.port}" for name in names) + (names if self.port == 80 else ())

    def admit(self, request: Request, *, page: bool) -> None:
        """Refuse a request that is not from our own page or, where it asks for the ``page``, from our own address."""
        host, headers = request.headers.get("host"), request.headers
        if host not in self.hosts:
            raise Refused(HTTPStatus.FORBIDDEN, "the Host is not this one")
        if request.method not in ("GET", "HEAD"):
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, "there is nothing here but to be read")
        if headers.get("origin", f"http://{host}") != f"http://{host}":
            raise Refused(HTTPStatus.FORBIDDEN, "the Origin is another one")
        opened = page and headers.get("sec-fetch-dest", "document") == "document"  # a link that was followed
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not opened:
            raise Refused(HTTPStatus.FORBIDDEN, "another site asks")
        given = request.query.get("token", "") if page else headers.get(TOKEN_HEADER, "")
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            raise Refused(HTTPStatus.FORBIDDEN, "the token is missing or wrong; open the address that watch printed")


def begins_well(head: bytes) -> None:
    """Refuse a request by its first line, as soon as that is there."""
    line, ended, _ = head.partition(b"\n")
    if len(line) > LONGEST_LINE:
        raise Refused(HTTPStatus.REQUEST_URI_TOO_LONG, "the address is too long")
    if ended and not (line.endswith(b"\r") and LINE.fullmatch(line[:-1])):
        raise Refused(HTTPStatus.BAD_REQUEST, "the first line is not that of an HTTP/1.1 request")


def parse(head: bytes, allowed: Mapping[str, Collection[str]]) -> Request:
    """The request that ``head``, up to its empty line, makes.

    Args:
        head: bytes, the empty line not among them.
        allowed: path → the names that its query may have.
    """
    first, *lines = head.split(b"\r\n")
    begins_well(first + b"\r\n")
    found = LINE.fullmatch(first)
    assert found is not None
    headers = _headers(lines)
    target = TARGET.fullmatch(found[2].decode("ascii"))
    if target is None:
        raise Refused(HTTPStatus.BAD_REQUEST, "the address must be a path")
    path, query = target[1], _query(target[2] or "")
    if query.keys() - allowed.get(path, query.keys()):
        raise Refused(HTTPStatus.BAD_REQUEST, "the query has another name than this path takes")
    return Request(found[1].decode("ascii"), path, query, headers)


def _headers(lines: list[bytes]) -> dict[str, str]:
    if len(lines) > MOST_HEADERS:
        raise Refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "there are too many headers")
    headers: dict[str, str] = {}
    for line in lines:
        found = HEADER.fullmatch(line)
        if found is None:
            raise Refused(HTTPStatus.BAD_REQUEST, "a header cannot be read")
        name, value = found[1].decode("ascii").lower(), found[2].strip(b" \t").decode("ascii")
        if name in headers and name in ONCE:
            raise Refused(HTTPStatus.BAD_REQUEST, f"{name} is there twice")
        headers[name] = value
    if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
        raise Refused(HTTPStatus.BAD_REQUEST, "a request has no body here")
    if "upgrade" in headers:
        raise Refused(HTTPStatus.BAD_REQUEST, "there is no other protocol here")
    if "expect" in headers:
        raise Refused(HTTPStatus.EXPECTATION_FAILED, "nothing can be expected here")
    return headers


def _query(text: str) -> dict[str, str]:
    query: dict[str, str] = {}
    for part in text.split("&") if text else ():
        found = PAIR.fullmatch(part)
        if found is None or found[1] in query:
            raise Refused(HTTPStatus.BAD_REQUEST, "the query cannot be read")
        query[found[1]] = found[2]
    return query
