"""What a request must be to come in; each refusal by its status and its reason."""

from __future__ import annotations

from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynaboltz.watch.gate import LONGEST_HEAD, LONGEST_LINE, MOST_HEADERS, Gate, Refused, Request, begins_well, parse

GATE = Gate(8000, "secret")
TAKES = {"/": {"token"}, "/state": set[str](), "/rows": {"place", "mark"}}
TOKEN = "the token is missing or wrong; open the address that watch printed"
GOOD = ("Host: 127.0.0.1:8000", "X-Dynaboltz-Token: secret")


def head(line: str, *headers: str) -> bytes:
    return "\r\n".join([line, *headers]).encode("latin-1")


def asked(line: str, *headers: str) -> Request:
    """What comes in."""
    request = parse(head(line, *headers), TAKES)
    GATE.admit(request, page=request.path == "/")
    return request


def refusal(line: str, *headers: str) -> tuple[int, str]:
    with pytest.raises(Refused) as refused:
        asked(line, *headers)
    return refused.value.status.value, refused.value.why


def test_gate_lets_in_what_our_own_page_asks() -> None:
    request = asked("GET /rows?place=5&mark=ab-_9 HTTP/1.1", *GOOD, "Origin: http://127.0.0.1:8000")
    assert (request.method, request.path, dict(request.query)) == ("GET", "/rows", {"place": "5", "mark": "ab-_9"})
    assert request.headers["host"] == "127.0.0.1:8000"


def test_gate_lets_in_a_head_and_the_other_name_of_this_machine() -> None:
    assert asked("HEAD /state HTTP/1.0", "Host: localhost:8000", "x-dynaboltz-token:secret\t ").method == "HEAD"


def test_gate_lets_in_the_page_by_the_printed_address_alone_and_from_a_link_elsewhere() -> None:
    host = "Host: 127.0.0.1:8000"
    assert asked("GET /?token=secret HTTP/1.1", host).path == "/"
    linked = asked("GET /?token=secret HTTP/1.1", host, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Dest: document")
    assert linked.path == "/"
    assert refusal("GET / HTTP/1.1", *GOOD)[1].startswith("the token")


def test_gate_leaves_the_port_out_where_a_browser_does() -> None:
    request = Request("GET", "/state", {}, {"host": "127.0.0.1", "x-dynaboltz-token": "secret"})
    Gate(80, "secret").admit(request, page=False)
    with pytest.raises(Refused):
        GATE.admit(request, page=False)


@pytest.mark.parametrize(
    ("change", "status", "why"),
    [
        (("Host: evil.example:8000", GOOD[1]), 403, "the Host is not this one"),
        (("Host: 127.0.0.1:8001", GOOD[1]), 403, "the Host is not this one"),
        ((GOOD[1],), 403, "the Host is not this one"),
        ((GOOD[0],), 403, TOKEN),
        ((GOOD[0], "X-Dynaboltz-Token: Secret"), 403, TOKEN),
        ((*GOOD, "Origin: http://evil.example"), 403, "the Origin is another one"),
        ((*GOOD, "Origin: http://localhost:8000"), 403, "the Origin is another one"),
        ((*GOOD, "Origin: null"), 403, "the Origin is another one"),
        ((*GOOD, "Sec-Fetch-Site: cross-site"), 403, "another site asks"),
        ((*GOOD, "Sec-Fetch-Site: same-site"), 403, "another site asks"),
        ((*GOOD, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Dest: document"), 403, "another site asks"),
        ((*GOOD, "Host: 127.0.0.1:8000"), 400, "host is there twice"),
        ((*GOOD, "X-DYNABOLTZ-token: secret"), 400, "x-dynaboltz-token is there twice"),
        ((*GOOD, "Content-Length: 0", "Content-Length: 0"), 400, "content-length is there twice"),
        ((*GOOD, "Content-Length: 3"), 400, "a request has no body here"),
        ((*GOOD, "Transfer-Encoding: identity"), 400, "a request has no body here"),
        ((*GOOD, "Upgrade: websocket"), 400, "there is no other protocol here"),
        ((*GOOD, "Expect: 100-continue"), 417, "nothing can be expected here"),
        ((*GOOD, "no colon"), 400, "a header cannot be read"),
        ((*GOOD, " folded: a"), 400, "a header cannot be read"),
        ((*GOOD, "X-A : a"), 400, "a header cannot be read"),
        ((*GOOD, "X-A: \xe9"), 400, "a header cannot be read"),
        ((*GOOD, "X-A: a\rX-B: b"), 400, "a header cannot be read"),
        ((*GOOD, "X-A: a\nX-B: b"), 400, "a header cannot be read"),
        ((*GOOD, *(f"X-{i}: a" for i in range(MOST_HEADERS))), 431, "there are too many headers"),
    ],
)  # fmt: skip
def test_gate_refuses_headers(change: tuple[str, ...], status: int, why: str) -> None:
    assert refusal("GET /state HTTP/1.1", *change) == (status, why)


@pytest.mark.parametrize(
    ("line", "status", "why"),
    [
        *((f"{method} /state HTTP/1.1", 405, "there is nothing here but to be read")
          for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "get")),
        ("CONNECT 127.0.0.1:8000 HTTP/1.1", 400, "the address must be a path"),
        ("GET http://127.0.0.1:8000/state HTTP/1.1", 400, "the address must be a path"),
        ("GET * HTTP/1.1", 400, "the address must be a path"),
        ("GET /state#a HTTP/1.1", 400, "the address must be a path"),
        ("GET /state?a=b HTTP/1.1", 400, "the query has another name than this path takes"),
        ("GET /?token=secret&place=1 HTTP/1.1", 400, "the query has another name than this path takes"),
        ("GET /rows?place=1&place=2 HTTP/1.1", 400, "the query cannot be read"),
        ("GET /rows?place HTTP/1.1", 400, "the query cannot be read"),
        ("GET /rows?place=%31 HTTP/1.1", 400, "the query cannot be read"),
        ("GET /rows?mark=../.. HTTP/1.1", 400, "the query cannot be read"),
        ("GET /state", 400, "the first line is not that of an HTTP/1.1 request"),
        ("GET /state HTTP/2.0", 400, "the first line is not that of an HTTP/1.1 request"),
        ("GET  /state HTTP/1.1", 400, "the first line is not that of an HTTP/1.1 request"),
        ("", 400, "the first line is not that of an HTTP/1.1 request"),
        (f"GET /{'a' * LONGEST_LINE} HTTP/1.1", 414, "the address is too long"),
    ],
)  # fmt: skip
def test_gate_refuses_first_lines(line: str, status: int, why: str) -> None:
    assert refusal(line, *GOOD) == (status, why)


def test_gate_decodes_no_path() -> None:
    """What is not in the table of paths, letter by letter, stays another path."""
    for path in ("/../config.toml", "/%2e%2e/config.toml", "/%73tate", "//state", "/state/", "/state/../rows"):
        assert asked(f"GET {path} HTTP/1.1", *GOOD).path == path


def test_gate_refuses_a_first_line_before_it_has_an_end() -> None:
    begins_well(b"GET /" + b"a" * 100)
    with pytest.raises(Refused) as refused:
        begins_well(b"GET /" + b"a" * 2000)
    assert refused.value.status == HTTPStatus.REQUEST_URI_TOO_LONG


def test_gate_comes_to_an_end_with_a_header_of_blanks() -> None:
    """Shared out among the parts of a pattern in every way, as many as fit would keep it busy for hours."""
    for blank in (b" ", b"\t", b" \t"):
        with pytest.raises(Refused, match="cannot be read"):
            parse(b"GET /state HTTP/1.1\r\nX-A:" + blank * (LONGEST_HEAD // 2) + b"\x01", TAKES)


@given(st.binary(max_size=300))
def test_gate_answers_any_bytes_by_a_request_or_a_refusal(content: bytes) -> None:
    for text in (content, b"GET /state HTTP/1.1\r\n" + content, b"GET " + content + b" HTTP/1.1"):
        try:
            request = parse(text, TAKES)
            GATE.admit(request, page=request.path == "/")
        except Refused:
            continue
        raise AssertionError(f"{text!r} came in without a token")
