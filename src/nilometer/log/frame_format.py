"""Frames: what one append adds to a segment. A header, delivery keys, an Arrow record batch.

A frame begins at a multiple of 64 bytes, and so do its keys and its rows:

    header   128 bytes, below
    keys     the batch key if there is one, then the delivery keys, each with its length
    rows     one Arrow IPC record batch message, its buffers compressed where that is worthwhile

The header's checksum covers the header, the body's checksum keys and rows with their padding.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag
from functools import cache
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

ALIGNMENT: Final = 64
HEADER: Final = 128
NEVER: Final = -(1 << 63)
"""Means no watermark, or a time before all others."""
ALWAYS: Final = (1 << 63) - 1
"""Means a time after all others."""
PAYS_FROM: Final = 4096
"""Less data than this is not compressed: it would not get smaller, only slower to read."""
THREADS_PAY_FROM: Final = 128 << 10
LARGEST: Final = 8 << 20
"""Rows of more bytes than this become several frames, so that reading needs little memory."""

BatchKey: TypeAlias = tuple[str, int]
Chunks: TypeAlias = list[bytes | pa.Buffer]

_MAGIC: Final = b"NFr1"
_FIELDS: Final = struct.Struct("<IIIIQQQqqqq")
_CHECKED: Final = struct.Struct("<4sI")
_LENGTH: Final = struct.Struct("<I")
_BATCH: Final = struct.Struct("<qI")
_ZEROS: Final = bytes(ALIGNMENT)


class Flag(IntFlag):
    """Properties of a frame, as its header stores them."""

    MORE = 1
    """The transaction continues with the next frame."""
    BATCH = 2
    """A batch key precedes the delivery keys."""


@dataclass(frozen=True, slots=True)
class FrameHeader:
    """Everything known about a frame without reading its rows."""

    body_crc: int
    flags: Flag
    keys: int
    """How many delivery keys it has."""
    keys_length: int
    rows_length: int
    rows: int
    first_row: int
    earliest: int
    latest: int
    """The times of its rows are within earliest … latest, inclusive."""
    before: int
    """The watermark of the log before this frame, or NEVER."""
    watermark: int
    """The watermark of the log after this frame, or NEVER."""

    @property
    def length(self) -> int:
        """The length of the whole frame in bytes."""
        return HEADER + padded(self.keys_length) + padded(self.rows_length)

    @property
    def more(self) -> bool:
        return bool(self.flags & Flag.MORE)

    def to_bytes(self) -> bytes:
        fields = _FIELDS.pack(
            self.body_crc,
            self.flags,
            self.keys,
            self.keys_length,
            self.rows_length,
            self.rows,
            self.first_row,
            self.earliest,
            self.latest,
            self.before,
            self.watermark,
        )
        content = fields.ljust(HEADER - _CHECKED.size, b"\0")
        return _CHECKED.pack(_MAGIC, zlib.crc32(content)) + content

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> FrameHeader | None:
        """The header, or None if these bytes are not one."""
        if len(data) < HEADER:
            return None
        magic, crc = _CHECKED.unpack_from(data)
        if magic != _MAGIC or crc != zlib.crc32(data[_CHECKED.size : HEADER]):
            return None
        body_crc, flags, *rest = _FIELDS.unpack_from(data, _CHECKED.size)
        return cls(body_crc, Flag(flags), *rest)

    def overlaps(self, earliest: int | None, latest: int | None) -> bool:
        """Whether the frame may have rows within the inclusive time range."""
        return (latest is None or self.earliest <= latest) and (
            earliest is None or self.latest >= earliest
        )


@dataclass(frozen=True, slots=True)
class EncodedFrame:
    """A frame ready to be written: its header, and the chunks that follow it."""

    header: FrameHeader
    body: Chunks

    @property
    def chunks(self) -> Chunks:
        return [self.header.to_bytes(), *self.body]


def padded(length: int) -> int:
    """The length rounded up to a multiple of 64."""
    return -(-length // ALIGNMENT) * ALIGNMENT


def encode_frame(
    rows: pa.RecordBatch | None,
    time: str | None,
    compression: str | None,
    keys: Sequence[bytes] = (),
    batch: BatchKey | None = None,
) -> EncodedFrame:
    """A frame of these rows and keys, without a position in a log yet."""
    keyed = encode_keys(keys, batch)
    body: Chunks = with_padding(keyed)
    count, message, times = 0, 0, (ALWAYS, NEVER)
    if rows is not None and len(rows):
        content = _serialized(rows, compression)
        body += with_padding(content)
        count, message, times = len(rows), len(content), time_range(rows, time)
    crc = checksum(body)
    flags = Flag.BATCH if batch else Flag(0)
    header = FrameHeader(crc, flags, len(keys), len(keyed), message, count, 0, *times, NEVER, NEVER)
    return EncodedFrame(header, body)


def decode_rows(header: FrameHeader, body: pa.Buffer, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of a frame, from what follows its header."""
    if not header.rows:
        return no_rows(schema)
    start = padded(header.keys_length)
    return pa.ipc.read_record_batch(body.slice(start, header.rows_length), schema)


def checksum(body: Chunks) -> int:
    crc = 0
    for chunk in body:
        crc = zlib.crc32(chunk, crc)
    return crc


def encode_keys(keys: Sequence[bytes], batch: BatchKey | None) -> bytes:
    parts = []
    if batch is not None:
        writer = batch[0].encode()
        parts += [_BATCH.pack(batch[1], len(writer)), writer]
    for key in keys:
        parts += [_LENGTH.pack(len(key)), key]
    return b"".join(parts)


def decode_keys(header: FrameHeader, body: pa.Buffer) -> tuple[BatchKey | None, list[bytes]]:
    """The batch key and the delivery keys of a frame."""
    data = body.slice(0, header.keys_length).to_pybytes()
    batch, place = None, 0
    if header.flags & Flag.BATCH:
        number, length = _BATCH.unpack_from(data)
        place = _BATCH.size + length
        batch = (data[_BATCH.size : place].decode(), number)
    keys = []
    for _ in range(header.keys):
        (length,) = _LENGTH.unpack_from(data, place)
        place += _LENGTH.size + length
        keys.append(data[place - length : place])
    return batch, keys


def with_padding(content: bytes | pa.Buffer) -> Chunks:
    if not len(content):
        return []
    rest = padded(len(content)) - len(content)
    return [content, _ZEROS[:rest]] if rest else [content]


def ipc_options(compression: str | None, size: int) -> pa.ipc.IpcWriteOptions:
    """Options for writing rows of this size: few of them are not worth a thread."""
    return _ipc_options(compression, size >= THREADS_PAY_FROM)


@cache
def _ipc_options(compression: str | None, use_threads: bool) -> pa.ipc.IpcWriteOptions:
    return pa.ipc.IpcWriteOptions(compression=compression, use_threads=use_threads)


def _serialized(rows: pa.RecordBatch, compression: str | None) -> pa.Buffer:
    size = 0 if compression is None else rows.nbytes
    if size < PAYS_FROM:
        return rows.serialize()
    sink = pa.BufferOutputStream()
    options = ipc_options(compression, size)
    with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
        writer.write_batch(rows)
        end = sink.tell()
    begin = len(rows.schema.serialize())
    return sink.getvalue().slice(begin, end - begin)


def time_range(rows: pa.RecordBatch, time: str | None) -> tuple[int, int]:
    """The earliest and the latest time of some rows."""
    if time is None:
        return NEVER, ALWAYS
    times = rows.column(time).view(pa.int64())
    if not times.null_count:
        values = times.to_numpy()
        return int(values.min()), int(values.max())
    bounds = pc.min_max(times)
    earliest, latest = bounds["min"].as_py(), bounds["max"].as_py()
    return (ALWAYS, NEVER) if earliest is None else (earliest, latest)


def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """An empty batch with these columns."""
    return pa.RecordBatch.from_arrays([pa.array([], one.type) for one in schema], schema=schema)
