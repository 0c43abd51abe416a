"""Part files: frames that workers write, for the writer of a log to add all at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path

import pyarrow as pa

from nilometer.errors import LogError
from nilometer.log.frame_format import LARGEST, Chunks, FrameHeader, encode_frame
from nilometer.log.layout import TIME
from nilometer.log.location import parent, storage_at
from nilometer.log.segment_format import SegmentHeader
from nilometer.log.segment_reader import SegmentReader


def write_part(
    path: str | Path,
    batches: Iterable[pa.RecordBatch],
    compression: str | None = "zstd",
    *,
    time: str | None = TIME,
) -> int:
    """Write rows as a part file; how many there were. It is whole once this returns.

    `time` names the column that holds the time, if the rows have it. Without batches there is no
    file, which `append_parts` takes for an empty part.
    """
    given = iter(batches)
    first = next(given, None)
    if first is None:
        return 0
    rows = 0

    def chunks() -> Iterator[bytes | pa.Buffer]:
        nonlocal rows
        yield SegmentHeader(0, 0, 0, first.schema).to_bytes()
        known = time if time in first.schema.names else None
        for batch in chain([first], given):
            rows += len(batch)
            for piece in pieces(batch):
                yield from encode_frame(piece, known, compression).chunks

    folder, name = parent(str(path))
    storage_at(folder).write(name, chunks(), durable=False)
    return rows


def part_headers(path: str | Path, schema: pa.Schema) -> list[FrameHeader]:
    """The headers of the frames of a part file, whose schema must be this one."""
    with _open_part(path, schema) as found:
        return [] if found is None else [one for _, one in found[0].headers(*found[1])]


def part_bodies(path: str | Path, schema: pa.Schema) -> Iterator[Chunks]:
    """What follows those headers, as it was encoded."""
    with _open_part(path, schema) as found:
        if found is not None:
            part, span = found
            for byte, header in part.frames(*span):
                yield [part.body(byte, header)]


@contextmanager
def _open_part(
    path: str | Path, schema: pa.Schema
) -> Iterator[tuple[SegmentReader, tuple[int, int]] | None]:
    """The part file and where its frames lie; None if there is no file."""
    folder, name = parent(str(path))
    with ExitStack() as opened:
        try:
            file = opened.enter_context(storage_at(folder).open(name))
        except FileNotFoundError:
            yield None
            return
        part = SegmentReader(file, 0)
        header, begin = part.good_header()
        check_schema(header.schema, schema)
        yield part, (begin, part.size)


def pieces(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows in frames of a bearable size."""
    if not len(rows):
        return
    each = max(1, len(rows) * LARGEST // max(LARGEST, rows.nbytes))
    for first in range(0, len(rows), each):
        yield rows.slice(first, each)


def check_schema(given: pa.Schema, stored: pa.Schema) -> None:
    """Raises LogError unless columns and types are those of the log."""
    if given.names != stored.names or given.types != stored.types:
        raise LogError(
            "the rows do not have the columns of the log",
            detail=f"got {_columns(given)}, the log has {_columns(stored)}",
        )


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{one.name} {one.type}" for one in schema)
