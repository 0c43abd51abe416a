"""Messages between a process and the one that answers its queries: a few words, and bytes."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Final

import pyarrow as pa

from nilometer import errors
from nilometer.errors import InternalError, NilometerError

_LENGTHS: Final = struct.Struct("!IQ")
Words = dict[str, Any]


def send(to: BinaryIO, words: Mapping[str, Any], body: bytes | pa.Buffer = b"") -> None:
    """Send one message."""
    head = json.dumps(words).encode()
    to.write(_LENGTHS.pack(len(head), len(memoryview(body).cast("B")) if len(body) else 0) + head)
    if len(body):
        to.write(memoryview(body))
    to.flush()


def receive(source: BinaryIO) -> tuple[Words, bytes]:
    """The next message; EOFError if there is none."""
    head, body = _LENGTHS.unpack(_exactly(source, _LENGTHS.size))
    words: Words = json.loads(_exactly(source, head))
    return words, _exactly(source, body)


def table_bytes(rows: pa.Table) -> pa.Buffer:
    """A table as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()


def read_table(content: bytes) -> pa.Table:
    """A table from the bytes of `table_bytes`."""
    with pa.ipc.open_stream(content) as reader:
        return reader.read_all()


def batches_of(content: bytes) -> Iterator[pa.RecordBatch]:
    """The record batches in such bytes."""
    with pa.ipc.open_stream(content) as reader:
        yield from reader


def error_words(error: NilometerError) -> Words:
    """An error as words."""
    return {
        "kind": type(error).__name__,
        "message": error.message,
        "detail": error.detail,
        "hint": error.hint,
    }


def read_error(words: Words) -> NilometerError:
    """The error that `error_words` described."""
    kind = getattr(errors, words["kind"], None)
    if not (isinstance(kind, type) and issubclass(kind, NilometerError)):
        kind = InternalError
    error: NilometerError = kind(words["message"], detail=words["detail"], hint=words["hint"])
    return error


def _exactly(source: BinaryIO, size: int) -> bytes:
    content = source.read(size)
    if len(content) < size:
        raise EOFError
    return content
