"""Rows as the lines of COPY … TO STDOUT."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from nilometer.server.pg.statements import CopyOut
from nilometer.server.pg.values import encoded_rows, shapes_of

_ESCAPES: Final = {
    b"\\": b"\\\\",
    b"\n": b"\\n",
    b"\r": b"\\r",
    b"\t": b"\\t",
    b"\b": b"\\b",
    b"\f": b"\\f",
    b"\v": b"\\v",
}


def copy_lines(rows: pa.Table, copy: CopyOut) -> Iterator[bytes]:
    """A line for each row."""
    for values in encoded_rows(rows, shapes_of(rows.schema)):
        yield _line(values, copy)


def header_line(names: Sequence[str], copy: CopyOut) -> bytes:
    """The names of the columns."""
    return _line([one.encode() for one in names], copy)


def _line(values: Sequence[bytes | None], copy: CopyOut) -> bytes:
    write = _csv if copy.is_csv else _text
    delimiter = copy.delimiter.encode()
    return delimiter.join(write(one, delimiter) for one in values) + b"\n"


def _text(value: bytes | None, delimiter: bytes) -> bytes:
    if value is None:
        return b"\\N"
    for plain, escaped in _ESCAPES.items():
        value = value.replace(plain, escaped)
    return value if delimiter == b"\t" else value.replace(delimiter, b"\\" + delimiter)


def _csv(value: bytes | None, delimiter: bytes) -> bytes:
    if value is None:
        return b""
    if value and not any(one in value for one in (delimiter, b'"', b"\n", b"\r")):
        return value
    return b'"' + value.replace(b'"', b'""') + b'"'
