"""Part files: frames that workers write, to be added all at once by the writer of a log."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pyarrow as pa

from nilometer.errors import LogError
from nilometer.log.frame_format import LARGEST, Chunks, FrameHeader, checksum, encode_frame
from nilometer.log.layout import TIME
from nilometer.log.location import parent, storage_at
from nilometer.log.segment_format import SegmentHeader
from nilometer.log.segment_reader import SegmentReader


@dataclass(frozen=True)
class Part:
    """A part file as described by its writer; readers check the description."""

    path: str
    rows: int
    size: int
    """The size of the file."""
    checksum: int
    """The checksum of the headers of its frames, each of which holds the checksum of its body."""


def write_part(
    path: str | Path,
    batches: Iterable[pa.RecordBatch],
    compression: str | None = "zstd",
    *,
    time: str | None = TIME,
) -> Part | None:
    """Write rows as a part file, complete on return; None, and no file, if there are no rows.

    `time` names the column with the time, if the rows have one.
    """
    filled = (batch for batch in batches if len(batch))
    first = next(filled, None)
    if first is None:
        return None
    rows = size = crc = 0

    def chunks() -> Iterator[bytes | pa.Buffer]:
        nonlocal rows, size, crc
        head = SegmentHeader(0, 0, 0, first.schema).to_bytes()
        size += len(head)
        yield head
        column = time if time in first.schema.names else None
        for batch in chain([first], filled):
            rows += len(batch)
            for piece in pieces(batch):
                frame = encode_frame(piece, column, compression)
                size += frame.header.length
                crc = zlib.crc32(frame.header.to_bytes(), crc)
                yield from frame.chunks

    folder, name = parent(str(path))
    storage_at(folder).write(name, chunks(), durable=False)
    return Part(str(path), rows, size, crc)


def part_headers(part: Part, schema: pa.Schema) -> list[FrameHeader]:
    """The headers of the frames of a part file, whose schema must be this one.

    Raises LogError if the file is missing, or does not match its description.
    """
    with _open_part(part, schema) as (file, begin):
        headers = [one for _, one in file.headers(begin, file.size)]
    crc = checksum([one.to_bytes() for one in headers])
    if crc != part.checksum or sum(one.rows for one in headers) != part.rows:
        raise _other_part(part, "its frames differ")
    return headers


def part_bodies(part: Part, schema: pa.Schema) -> Iterator[Chunks]:
    """The bodies after those headers, as they were encoded."""
    with _open_part(part, schema) as (file, begin):
        for byte, header in file.frames(begin, file.size):
            yield [file.body(byte, header)]


@contextmanager
def _open_part(part: Part, schema: pa.Schema) -> Iterator[tuple[SegmentReader, int]]:
    """The open part file, and the offset of its first frame."""
    folder, name = parent(part.path)
    with ExitStack() as opened:
        try:
            file = SegmentReader(opened.enter_context(storage_at(folder).open(name)), 0)
        except FileNotFoundError:
            raise _other_part(part, "there is no such file here") from None
        if file.size != part.size:
            raise _other_part(part, f"it has {file.size} bytes instead of {part.size}")
        header, begin = file.good_header()
        check_schema(header.schema, schema)
        yield file, begin


def _other_part(part: Part, difference: str) -> LogError:
    return LogError(
        "a part of the results differs from what its task wrote; nothing was added",
        detail=f"{part.path}: {difference}",
        hint="the log must lie in a folder that the driver and all executors share",
    )


def pieces(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows split into frames of a reasonable size."""
    if not len(rows):
        return
    each = max(1, len(rows) * LARGEST // max(LARGEST, rows.nbytes))
    for first in range(0, len(rows), each):
        yield rows.slice(first, each)


def check_schema(schema: pa.Schema, stored: pa.Schema) -> None:
    """Raise LogError unless columns and types are those of the log."""
    if schema.names != stored.names or schema.types != stored.types:
        raise LogError(
            "the rows do not have the columns of the log",
            detail=f"got {_columns(schema)}, the log has {_columns(stored)}",
        )


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{one.name} {one.type}" for one in schema)
