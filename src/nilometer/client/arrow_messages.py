"""Parses an Arrow IPC stream as its bytes arrive, in pieces of any size."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from nilometer.errors import UnreachableError

_MARK: Final = b"\xff\xff\xff\xff"
_END: Final = _MARK + bytes(4)
_MOST_METADATA: Final = 64 << 20
_MOST_BODY: Final = 2 << 30


@dataclass(frozen=True)
class Batch:
    """One record batch and the metadata beside it."""

    rows: pa.RecordBatch
    metadata: dict[str, str]


class ArrowMessages:
    """The record batches of one stream.

    >>> messages = ArrowMessages()
    >>> schema = pa.schema([("n", pa.int64())])
    >>> list(messages.feed(bytes(schema.serialize())))
    []
    >>> messages.schema.names
    ['n']
    """

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._begin: bytes | None = None
        self.schema: pa.Schema | None = None
        self.is_ended = False

    def feed(self, data: bytes) -> Iterator[Batch]:
        """The batches that these bytes complete; UnreachableError if they are not Arrow."""
        self._bytes += data
        while not self.is_ended and (length := self._length()) is not None:
            message = bytes(self._bytes[:length])
            del self._bytes[:length]
            if message == _END:
                self.is_ended = True
            elif self._begin is None:
                self._begin, self.schema = message, _read_schema(message)
            else:
                yield _read_batch(self._begin + message + _END)

    def _length(self) -> int | None:
        """The length of the first message; None if it is incomplete."""
        if len(self._bytes) < 8:
            return None
        if self._bytes[:4] != _MARK:
            raise _broken("a message does not start where expected")
        (metadata,) = struct.unpack_from("<i", self._bytes, 4)
        if not 0 <= metadata <= _MOST_METADATA:
            raise _broken("a message has an invalid length")
        if len(self._bytes) < 8 + metadata:
            return None
        length = 8 + metadata + (_body_length(self._bytes, 8) if metadata else 0)
        return length if len(self._bytes) >= length else None


def _body_length(data: bytearray, begin: int) -> int:
    """The field bodyLength, number 3, of Arrow's flatbuffer Message."""
    try:
        (root,) = struct.unpack_from("<I", data, begin)
        table = begin + root
        (back,) = struct.unpack_from("<i", data, table)
        vtable = table - back
        (size,) = struct.unpack_from("<H", data, vtable)
        (field,) = struct.unpack_from("<H", data, vtable + 10) if size > 10 else (0,)
        (length,) = struct.unpack_from("<q", data, table + field) if field else (0,)
    except struct.error:
        raise _broken("the head of a message cannot be read") from None
    if not 0 <= length <= _MOST_BODY:
        raise _broken("a message has an invalid length")
    return int(length)


def _read_schema(message: bytes) -> pa.Schema:
    try:
        return pa.ipc.read_schema(pa.py_buffer(message))
    except (pa.ArrowException, OSError) as error:
        raise _broken(str(error)) from None


def _read_batch(stream: bytes) -> Batch:
    try:
        with pa.ipc.open_stream(pa.py_buffer(stream)) as reader:
            message = reader.read_next_batch_with_custom_metadata()
    except (pa.ArrowException, OSError, StopIteration) as error:
        raise _broken(str(error)) from None
    metadata = message.custom_metadata or {}
    return Batch(message.batch, {key.decode(): value.decode() for key, value in metadata.items()})


def _broken(why: str) -> UnreachableError:
    return UnreachableError("the server sent malformed data", detail=why)
