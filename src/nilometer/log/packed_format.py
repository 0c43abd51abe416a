"""Packed segments: the frames of many appends in one file, their rows compressed together.

A small frame takes some 300 bytes in addition to its rows. Packed, all rows of about a megabyte
are one Arrow IPC record batch, and the contents of frame headers are columns of numbers:

    blocks     the delivery keys of some frames, and their rows
    index      tables: frames, blocks, segments, and the schema of the rows
    footer     where the parts of the index are

Every frame keeps its position (segment and byte) as if it were still where it was written, with
its watermark, its times and its keys. So nobody's offset changes when segments are packed.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nilometer.log.frame_format import ALWAYS, NEVER

Int64s = npt.NDArray[np.int64]

_MAGIC: Final = b"NiloPck1"
_CHECKED: Final = struct.Struct("<8sI")
_FIELDS: Final = struct.Struct("<QqqQ" + "QQI" * 4)
FOOTER: Final = _CHECKED.size + _FIELDS.size
_OPTIONS: Final = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", 3))

SEGMENTS: Final = pa.schema(
    [
        ("number", pa.int64()),
        ("first_row", pa.int64()),
        ("created", pa.int64()),
        ("watermark", pa.int64()),
        ("keys", pa.int64()),
        ("batches", pa.string()),
        ("begin", pa.int64()),
        ("size", pa.int64()),
        ("frames", pa.int64()),
    ]
)
FRAMES: Final = ("flags", "keys", "keys_length", "rows_length", "rows")
"""Numbers of a frame stored as they are; earliest, latest and watermark are stored as deltas."""
BLOCKS: Final = ("frames", "keys_at", "keys_stored", "keys_crc", "rows_at", "rows_stored", "crc")


@dataclass(frozen=True)
class Footer:
    """Where the parts of a file's index are, and the time range of its rows."""

    length: int
    """The size of the whole file."""
    earliest: int
    latest: int
    rows: int
    sections: tuple[tuple[int, int, int], ...]
    """Start, length and checksum of: frames, blocks, segments, schema."""

    def to_bytes(self) -> bytes:
        flat = [number for one in self.sections for number in one]
        content = _FIELDS.pack(self.length, self.earliest, self.latest, self.rows, *flat)
        return _CHECKED.pack(_MAGIC, zlib.crc32(content)) + content

    @classmethod
    def from_bytes(cls, data: bytes) -> Footer | None:
        """The footer, or None if these bytes are not one."""
        if len(data) != FOOTER:
            return None
        magic, crc = _CHECKED.unpack_from(data)
        if magic != _MAGIC or crc != zlib.crc32(data[_CHECKED.size :]):
            return None
        length, earliest, latest, rows, *flat = _FIELDS.unpack_from(data, _CHECKED.size)
        sections = tuple((flat[n], flat[n + 1], flat[n + 2]) for n in range(0, len(flat), 3))
        return cls(length, earliest, latest, rows, sections)

    def overlaps(self, earliest: int | None, latest: int | None) -> bool:
        """Whether the file may have rows within the inclusive time range."""
        return (latest is None or self.earliest <= latest) and (
            earliest is None or self.latest >= earliest
        )


def encode_table(columns: dict[str, pa.Array]) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    table = pa.table(columns)
    with pa.ipc.new_stream(sink, table.schema, options=_OPTIONS) as writer:
        writer.write_table(table)
    return sink.getvalue()


def decode_table(data: pa.Buffer) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()


def encode_rows(rows: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.Buffer:
    """The rows of some frames as one record batch message, compressed."""
    whole = pa.Table.from_batches(rows, schema).combine_chunks().to_batches()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=_OPTIONS) as writer:
        writer.write_batch(whole[0])
        end = sink.tell()
    begin = len(schema.serialize())
    return sink.getvalue().slice(begin, end - begin)


def differences(values: Int64s) -> Int64s:
    """Each number minus the one before; consecutive numbers become small.

    Overflow is undone when the differences are added up: both work modulo 2^64.
    """
    with np.errstate(over="ignore"):
        return np.diff(values, prepend=np.int64(0))


def added_up(values: Int64s) -> Int64s:
    with np.errstate(over="ignore"):
        return np.cumsum(values, dtype=np.int64)


def range_of(earliest: Int64s, latest: Int64s) -> tuple[int, int]:
    """The time range of all frames together."""
    if not len(earliest):
        return ALWAYS, NEVER
    return int(earliest.min()), int(latest.max())


def sums_before(lengths: Int64s) -> Int64s:
    """For each number the sum of those before it, and at the end the total."""
    sums = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=sums[1:])
    return sums


def sections_of(at: int, parts: Sequence[pa.Buffer]) -> Iterator[tuple[int, int, int]]:
    """The sections that parts occupy when they are written one after the other."""
    for part in parts:
        yield at, len(part), zlib.crc32(part)
        at += len(part)
