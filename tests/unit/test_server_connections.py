"""Connections that are slow, long or many: none of them holds the server up."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from nilometer.server.protocol import protocol_for
from nilometer.server.settings import ServerSettings
from tests.patience import LONG
from tests.served import served


@contextmanager
def listening(
    folder: Path, settings: ServerSettings, protocol: type[HttpToolsProtocol] | None = None
) -> Iterator[int]:
    """The port of a real server with these settings."""
    with served(folder, settings) as server, socket.create_server(("127.0.0.1", 0)) as bound:
        config = uvicorn.Config(
            server.app,
            http=protocol or protocol_for(settings),
            log_config=None,
            lifespan="off",
        )
        web = uvicorn.Server(config)
        thread = threading.Thread(target=web.run, args=([bound],))
        thread.start()
        try:
            while not web.started:
                time.sleep(0.01)
            yield bound.getsockname()[1]
        finally:
            web.should_exit = True
            thread.join(LONG)


def read_all(connection: socket.socket) -> bytes:
    """What comes until the other side hangs up."""
    content = b""
    try:
        while piece := connection.recv(65536):
            content += piece
    except ConnectionResetError:
        pass
    return content


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=LONG)


def test_a_head_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    with listening(tmp_path, ServerSettings(header_seconds=0.2)) as port:
        with connect(port) as silent:
            assert read_all(silent) == b""
        with connect(port) as slow:
            slow.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Never: e")
            assert read_all(slow) == b""


def test_the_head_of_a_second_request_is_not_waited_for_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ServerSettings(header_seconds=LONG)
    protocol = protocol_for(settings)
    with listening(tmp_path, settings, protocol) as port, connect(port) as second:
        second.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        received = b""
        while b"alive" not in received:
            received += second.recv(65536)
        monkeypatch.setattr(protocol, "head_seconds", 0.2)
        second.sendall(b"GET /he")
        assert b"HTTP/1.1 " not in read_all(second)
        with connect(port) as together:  # a whole request, and the beginning of another one
            together.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /he")
            read_all(together)


def test_a_head_without_end_is_not_kept(tmp_path: Path) -> None:
    with listening(tmp_path, ServerSettings()) as port, connect(port) as long:
        long.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: ")
        try:
            for _ in range(200):
                long.sendall(b"x" * 10_000)
        except (ConnectionResetError, BrokenPipeError):
            return
        assert b" 400 " in read_all(long)


def test_what_is_no_request_is_refused_in_the_usual_shape(tmp_path: Path) -> None:
    with listening(tmp_path, ServerSettings()) as port, connect(port) as other:
        other.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        head, _, body = read_all(other).partition(b"\r\n\r\n")
        assert b" 400 " in head
        assert json.loads(body)["error"]["kind"] == "InputError"


def test_there_are_not_more_connections_than_may_be(tmp_path: Path) -> None:
    with listening(tmp_path, ServerSettings(max_connections=3)) as port, ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(connect(port))
        one_more = stack.enter_context(connect(port))
        head, _, body = read_all(one_more).partition(b"\r\n\r\n")
        assert b" 429 " in head
        assert b"Retry-After" in head
        assert json.loads(body)["error"]["kind"] == "LimitError"
