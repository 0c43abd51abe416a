"""What clients send that nobody should, and clients that go away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.datastructures import Headers
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from nilometer.server.console.guard import is_same_origin
from nilometer.server.guards import HostCheck, UnforeseenErrors
from tests.served import Served, served


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as server:
        yield server


@pytest.mark.parametrize(
    ("origin", "is_ours"),
    [
        (None, True),
        ("http://127.0.0.1:8642", True),
        ("http://127.0.0.1", False),
        ("http://evil.example", False),
        ("null", False),
        ("", False),
        ("http://[", False),
        ("http://evil.example\\@127.0.0.1:8642", False),
    ],
)
def test_what_comes_from_our_own_pages(origin: str | None, is_ours: bool) -> None:
    given = {"host": "127.0.0.1:8642"} | ({} if origin is None else {"origin": origin})
    asked = cast(HTTPConnection, SimpleNamespace(headers=Headers(given)))
    assert is_same_origin(asked) is is_ours


def answered(app: Any, headers: list[tuple[bytes, bytes]], came: list[Message]) -> list[Message]:
    """What an application sends to a client that sends this."""
    sent: list[Message] = []

    async def receive() -> Message:
        return came.pop(0) if len(came) > 1 else came[0]

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/", "headers": headers, "query_string": b""}
    asyncio.run(app(scope, receive, send))
    return sent


def test_a_request_has_one_host() -> None:
    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        await Response()(scope, receive, send)

    app = HostCheck(inner, {"localhost"})
    once = [(b"host", b"localhost")]
    for headers, status in ((once, 200), ([*once, (b"host", b"evil.example")], 400), ([], 400)):
        sent = answered(app, headers, [{"type": "http.disconnect"}])
        assert sent[0]["status"] == status


class Passing(BaseHTTPMiddleware):
    """Does nothing; so are those of the console's framework."""

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        return await call_next(request)


def test_a_client_that_goes_before_it_is_answered_is_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def slow() -> AsyncIterator[bytes]:
        yield b"x"

    class Slow(StreamingResponse):
        async def stream_response(self, send: Send) -> None:
            await asyncio.sleep(30)

    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        await Slow(slow())(scope, receive, send)

    came: list[Message] = [{"type": "http.disconnect"}]
    assert answered(UnforeseenErrors(Passing(inner)), [], came) == []
    assert caplog.text == ""


def test_an_error_of_ours_is_reported_even_if_the_client_has_gone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        raise RuntimeError("a fault of ours")

    answered(UnforeseenErrors(inner), [], [{"type": "http.disconnect"}])
    assert "a fault of ours" in caplog.text


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE `a\0b` (v INT)",
        "CREATE TABLE T (`a\0b` INT)",
        "CREATE STREAM S (v INT) FROM tcp WITH (address = 'h\0:1')",
        "SHOW \0",
        "SELECT \0 FROM T",
        "\0",
    ],
)
def test_nul_characters_are_the_fault_of_whoever_sends_them(server: Served, statement: str) -> None:
    assert server.sql(statement).status_code in (200, 400)


@pytest.mark.parametrize("path", ["/sql", "/check", "/explain", "/queries", "/tokens"])
@pytest.mark.parametrize(
    "body",
    [
        rb'{"statement": "SHOW \ud800"}',
        rb'{"\ud800": 1}',
        rb'{"name": "\udc00", "scope": "read"}',
        b"[" * 100_000,
        b'{"statement": ' * 50_000,
        b'{"statement": ' + b"9" * 10_000 + b"}",
        b'{"statement": NaN}',
        b'{"statement": 1e99999}',
        b'{"statement": "\xff\xfe"}',
        b"null",
        b"",
    ],
)
def test_bodies_that_cannot_be_read(server: Served, path: str, body: bytes) -> None:
    answer = server.ask("POST", path, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    assert set(answer.json()["error"]) == {"message", "detail", "hint", "kind", "position"}


@pytest.mark.parametrize("name", ["a/b", ".", "..", " .. ", "", "a\nb"])
def test_a_token_has_a_name_that_can_stand_in_an_address(server: Served, name: str) -> None:
    answer = server.ask("POST", "/tokens", json={"name": name, "scope": "read"})
    assert answer.status_code in (400, 422), answer.text
