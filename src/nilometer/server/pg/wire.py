"""Reads and writes messages of PostgreSQL's protocol, version 3."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nilometer.errors import InputError, TooLargeError

PROTOCOL: Final = 196608
SSL_REQUEST: Final = 80877103
GSS_REQUEST: Final = 80877104
CANCEL_REQUEST: Final = 80877102
_MOST_STARTUP: Final = 10_000


class Body:
    """The content of a message, read from its start; missing data is an error."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def byte(self) -> bytes:
        return self._take(1)

    def int16(self) -> int:
        return int(struct.unpack("!h", self._take(2))[0])

    def int32(self) -> int:
        return int(struct.unpack("!i", self._take(4))[0])

    def uint32(self) -> int:
        return int(struct.unpack("!I", self._take(4))[0])

    def count(self) -> int:
        """How many items follow."""
        count = self.int16()
        if count < 0:
            raise ProtocolError("a count is negative")
        return count

    def text(self) -> str:
        end = self._content.find(b"\0", self._at)
        if end < 0:
            raise ProtocolError("a text has no end")
        content = self._content[self._at : end]
        self._at = end + 1
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise ProtocolError("a text is not UTF-8") from None

    def value(self) -> bytes | None:
        """Bytes preceded by their length; None: NULL."""
        length = self.int32()
        return None if length == -1 else self._take(length)

    @property
    def is_at_end(self) -> bool:
        return self._at >= len(self._content)

    def _take(self, size: int) -> bytes:
        if size < 0 or self._at + size > len(self._content):
            raise ProtocolError("a message is too short")
        content = self._content[self._at : self._at + size]
        self._at += size
        return content


class ProtocolError(InputError):
    """The client violated PostgreSQL's protocol: the connection is closed."""


@dataclass(frozen=True)
class Startup:
    """The startup message of a connection."""

    code: int
    parameters: Mapping[str, str] = field(default_factory=dict)
    process: int = 0
    secret: int = 0
    """In a cancel request: the secret of the session."""


async def read_startup(reader: asyncio.StreamReader) -> Startup:
    """The first message of a connection, which has no type byte."""
    (length,) = struct.unpack("!i", await reader.readexactly(4))
    if not 8 <= length <= _MOST_STARTUP:
        raise ProtocolError("the first message has an impossible length")
    body = Body(await reader.readexactly(length - 4))
    code = body.int32()
    if code == CANCEL_REQUEST:
        return Startup(code, process=body.uint32(), secret=body.uint32())
    parameters: dict[str, str] = {}
    if code == PROTOCOL:
        while not body.is_at_end and (name := body.text()):
            parameters[name] = body.text()
    return Startup(code, parameters)


async def read_message(reader: asyncio.StreamReader, max_bytes: int) -> tuple[bytes, Body]:
    """The next message: its type, and its content of at most `max_bytes`."""
    head = await reader.readexactly(5)
    (length,) = struct.unpack("!i", head[1:])
    if length < 4:
        raise ProtocolError("a message has an impossible length")
    if length - 4 > max_bytes:
        raise TooLargeError(
            "the message is too large",
            detail=f"it has {length} bytes, at most {max_bytes} are read",
        )
    return head[:1], Body(await reader.readexactly(length - 4))


def message(kind: bytes, content: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(content) + 4) + content


def text(value: str) -> bytes:
    """A text with its terminator; it cannot contain a zero byte."""
    return value.replace("\0", "\ufffd").encode() + b"\0"


AUTHENTICATED: Final = message(b"R", struct.pack("!i", 0))
ASK_PASSWORD: Final = message(b"R", struct.pack("!i", 3))
PARSED: Final = message(b"1")
BOUND: Final = message(b"2")
CLOSED: Final = message(b"3")
NO_DATA: Final = message(b"n")
EMPTY_QUERY: Final = message(b"I")
SUSPENDED: Final = message(b"s")
COPY_DONE: Final = message(b"c")


def parameter_status(name: str, value: str) -> bytes:
    return message(b"S", text(name) + text(value))


def key_data(process: int, secret: int) -> bytes:
    return message(b"K", struct.pack("!II", process, secret))


def ready(status: bytes) -> bytes:
    return message(b"Z", status)


def complete(tag: str) -> bytes:
    return message(b"C", text(tag))


@dataclass(frozen=True)
class ColumnShape:
    """A column of an answer."""

    name: str
    oid: int
    size: int
    format: int
    """0: text, 1: binary."""


def row_description(columns: Sequence[ColumnShape]) -> bytes:
    parts = [struct.pack("!h", len(columns))]
    for one in columns:
        shape = struct.pack("!ihihih", 0, 0, one.oid, one.size, -1, one.format)
        parts.append(text(one.name) + shape)
    return message(b"T", b"".join(parts))


def parameter_description(oids: Sequence[int]) -> bytes:
    return message(b"t", struct.pack(f"!h{len(oids)}I", len(oids), *oids))


def data_row(values: Iterable[bytes | None], count: int) -> bytes:
    parts = [struct.pack("!h", count)]
    for one in values:
        parts.append(b"\xff\xff\xff\xff" if one is None else struct.pack("!i", len(one)) + one)
    return message(b"D", b"".join(parts))


def copy_out(columns: int) -> bytes:
    return message(b"H", struct.pack(f"!bh{columns}h", 0, columns, *([0] * columns)))


def copy_data(content: bytes) -> bytes:
    return message(b"d", content)


def error_response(fields: Mapping[bytes, str], *, notice: bool = False) -> bytes:
    content = b"".join(kind + text(value) for kind, value in fields.items())
    return message(b"N" if notice else b"E", content + b"\0")
