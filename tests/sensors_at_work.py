"""Fake sensors: HTTP servers and lines over TCP, each kind in a process of its own.

They cost little, so that hundreds of them fit beside the code under test. Run by itself, the module
is such a process: it prints its port, and ends with its standard input.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import ClassVar, Final, Self
from urllib.request import urlopen

HOST: Final = "127.0.0.1"
HUGE: Final = 100 << 20
_ROOT: Final = Path(__file__).parents[1]
_numbers: Final = count()
_STARTED: Final = datetime(2026, 1, 1, tzinfo=UTC)


class _Process:
    """A process of this module that reports the port on which it listens."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.sensors_at_work", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=_ROOT,
            text=True,
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def close(self) -> None:
        # Reading to the end also closes the pipes; open ones would cause a warning.
        self._process.communicate(input="")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class HttpSensors(_Process):
    """HTTP sensors on one port, with a path each: `/sensor/<n>` behaves, others have their faults.

    A good sensor answers {"sensor": n, "reading": 0, 1, 2 …, "temperature": …}. The others:
    /fails (500), /busy (503 with Retry-After), /hangs, /malformed, /wrong (types), /huge (100 MB),
    /back (its clock jumps back), /tagged (an ETag, a new value every third request), /list,
    /nested, /redirect, /circle, /chunked, /secret (wants a bearer token "open").
    """

    def __init__(self) -> None:
        super().__init__("http")

    def url(self, path: str | int) -> str:
        return f"http://{HOST}:{self.port}/{path if isinstance(path, str) else f'sensor/{path}'}"

    def connections(self) -> int:
        """How many connections good sensors have had."""
        with urlopen(f"http://{HOST}:{self.port}/connections") as answer:
            return int(json.load(answer))

    def counts(self) -> Counter[str]:
        """How many requests each path has had."""
        with urlopen(f"http://{HOST}:{self.port}/counts") as answer:
            return Counter(json.load(answer))


class TcpSensors(_Process):
    """A server that sends the same lines to whoever connects, then hangs up or stays silent."""

    def __init__(self, lines: str, *, stay: bool = False) -> None:
        super().__init__("tcp", lines, "stay" if stay else "")

    @property
    def url(self) -> str:
        return f"tcp://{HOST}:{self.port}"


class _HttpServer(asyncio.Protocol):
    """One connection; requests are parsed as far as the sensors need it."""

    counts: ClassVar[Counter[str]] = Counter()
    sensed: ClassVar[set[int]] = set()
    """The connections over which good sensors were polled."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._buffer = b""
        self._number = next(_numbers)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            request, self._buffer = self._buffer[:end], self._buffer[end + 4 :]
            path = request.split(b" ", 2)[1].decode()
            number = self.counts[path]
            if path not in ("/counts", "/connections"):
                self.counts[path] += 1
            self._answer(path, number, request)

    def _answer(self, path: str, number: int, request: bytes) -> None:
        if path.startswith("/sensor/"):
            sensor = int(path[8:])
            self.sensed.add(self._number)
            body = {"sensor": sensor, "reading": number, "temperature": 20 + number % 10}
            self._transport.write(_response(json.dumps(body).encode()))
        elif path == "/connections":
            self._transport.write(_response(json.dumps(len(self.sensed)).encode()))
        elif path == "/counts":
            self._transport.write(_response(json.dumps(self.counts).encode()))
        elif path == "/huge":
            self._transport.write(f"HTTP/1.1 200 OK\r\nContent-Length: {HUGE}\r\n\r\n".encode())
            self._send_much(HUGE)
        elif path != "/hangs":
            fault = _FAULTS.get(path, _missing)
            self._transport.write(fault(number, request))

    def _send_much(self, left: int) -> None:
        """Send as fast as the other side reads, and stop when it hangs up."""
        if left > 0 and not self._transport.is_closing():
            if self._transport.get_write_buffer_size() < 1 << 20:
                self._transport.write(b"[" * (1 << 16))
                left -= 1 << 16
            asyncio.get_running_loop().call_later(0.0005, self._send_much, left)


def _response(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def _json(value: object) -> bytes:
    return _response(json.dumps(value).encode(), "200 OK", "Content-Type: application/json")


def _missing(number: int, request: bytes) -> bytes:
    return _response(b"no such sensor", "404 Not Found")


def _back(number: int, request: bytes) -> bytes:
    when = _STARTED + timedelta(seconds=number if number % 5 else -3600)
    return _json({"reading": number, "temperature": 20.0, "at": when.isoformat()})


def _tagged(number: int, request: bytes) -> bytes:
    tag = f'ETag: "{number // 3}"'
    if f'if-none-match: "{number // 3}"'.encode() in request.lower():
        return _response(b"", "304 Not Modified", tag)
    return _response(json.dumps({"reading": number // 3}).encode(), "200 OK", tag)


def _secret(number: int, request: bytes) -> bytes:
    if b"authorization: bearer open" not in request.lower():
        return _response(b"", "401 Unauthorized")
    return _json({"reading": number})


def _chunked(number: int, request: bytes) -> bytes:
    body = json.dumps({"reading": number}).encode()
    chunks = b"".join(b"1\r\n" + body[at : at + 1] + b"\r\n" for at in range(len(body)))
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"


_FAULTS: Final[dict[str, Callable[[int, bytes], bytes]]] = {
    "/fails": lambda number, request: _response(b"oops", "500 Internal Server Error"),
    "/busy": lambda number, request: _response(b"", "503 Busy", "Retry-After: 7"),
    "/malformed": lambda number, request: _response(b'{"reading": '),
    "/wrong": lambda number, request: _json({"reading": "many", "temperature": [1]}),
    "/back": _back,
    "/tagged": _tagged,
    "/list": lambda number, request: _json([{"reading": number * 2}, {"reading": number * 2 + 1}]),
    "/nested": lambda number, request: _json({"data": {"items": [{"r": {"n": number}}]}}),
    "/redirect": lambda number, request: _response(b"", "302 Found", "Location: /sensor/77"),
    "/circle": lambda number, request: _response(b"", "302 Found", "Location: /circle"),
    "/secret": _secret,
    "/chunked": _chunked,
}


async def _serve_http() -> None:
    await _serve(await asyncio.get_running_loop().create_server(_HttpServer, HOST, 0, backlog=2000))


async def _serve_tcp(lines: str, stay: str) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(lines.encode())
        await writer.drain()
        if stay:
            await reader.read()
        writer.close()

    await _serve(await asyncio.start_server(answer, HOST, 0))


async def _serve(server: asyncio.Server) -> None:
    """Report the port, and serve until standard input ends."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    def wait() -> None:
        sys.stdin.read()
        loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=wait, daemon=True).start()
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await ended.wait()


if __name__ == "__main__":
    asyncio.run(_serve_http() if sys.argv[1] == "http" else _serve_tcp(*sys.argv[2:4]))
