"""Writes packed segments: the frames of some segments, their rows compressed together."""

from __future__ import annotations

import json
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from nilometer.log.frame_format import FrameHeader
from nilometer.log.packed_format import (
    BLOCKS,
    FRAMES,
    SEGMENTS,
    Footer,
    Int64s,
    differences,
    encode_rows,
    encode_table,
    range_of,
    sections_of,
)
from nilometer.log.retention import Segment
from nilometer.log.segment_files import SegmentFile
from nilometer.log.segment_format import SegmentHeader
from nilometer.log.segment_reader import AnySegment, open_files
from nilometer.log.storage import Storage

_BLOCK: Final = 1 << 20
"""Rows of about this many bytes are compressed together: to read one row is to decode them all."""
_COLUMNS: Final = (*FRAMES, "earliest", "latest", "watermark")


@dataclass(frozen=True)
class GivenFrame:
    """A frame to be packed."""

    header: FrameHeader
    rows: pa.RecordBatch
    keys: bytes


@dataclass(frozen=True)
class GivenSegment:
    """A segment to be packed: what its header says, where its frames begin, where it ends."""

    header: SegmentHeader
    begin: int
    size: int
    frames: Iterable[GivenFrame]


@dataclass
class _Pack:
    """The index entries of the frames that were written."""

    at: int = 0
    frames: dict[str, array[int]] = field(
        default_factory=lambda: {name: array("q") for name in _COLUMNS}
    )
    blocks: dict[str, array[int]] = field(
        default_factory=lambda: {name: array("q") for name in BLOCKS}
    )
    segments: list[tuple[object, ...]] = field(default_factory=list)
    waiting: list[GivenFrame] = field(default_factory=list)
    waiting_bytes: int = 0

    def add(self, frame: GivenFrame) -> None:
        header = frame.header
        for name in _COLUMNS:
            self.frames[name].append(int(getattr(header, name)))
        self.waiting.append(frame)
        self.waiting_bytes += frame.rows.nbytes + len(frame.keys)

    def block(self, schema: pa.Schema) -> Iterator[bytes | pa.Buffer]:
        """The pending frames as the bytes of a block."""
        if not self.waiting:
            return
        keys: bytes | pa.Buffer = b"".join(one.keys for one in self.waiting)
        keys = pa.compress(keys, "zstd") if keys else keys
        batches = [one.rows for one in self.waiting if len(one.rows)]
        rows: bytes | pa.Buffer = encode_rows(batches, schema) if batches else b""
        begin = self.at + len(keys)
        of_keys = (len(self.waiting), self.at, len(keys), zlib.crc32(keys))
        for name, number in zip(
            BLOCKS, (*of_keys, begin, len(rows), zlib.crc32(rows)), strict=True
        ):
            self.blocks[name].append(number)
        self.at = begin + len(rows)
        self.waiting, self.waiting_bytes = [], 0
        yield from (keys, rows)

    def index(self, schema: pa.Schema) -> tuple[list[pa.Buffer], Footer]:
        arrays = {name: np.array(values, np.int64) for name, values in self.frames.items()}
        earliest, latest = arrays["earliest"], arrays["latest"]
        times = range_of(earliest, latest)
        with np.errstate(over="ignore"):
            arrays["latest"] = latest - earliest
        arrays["earliest"] = differences(earliest)
        arrays["watermark"] = differences(arrays["watermark"])
        columns = zip(*self.segments, strict=True)
        parts = [
            encode_table({name: pa.array(values) for name, values in arrays.items()}),
            encode_table({name: _integers(values) for name, values in self.blocks.items()}),
            encode_table(
                {
                    one.name: pa.array(values, one.type)
                    for one, values in zip(SEGMENTS, columns, strict=True)
                }
            ),
            schema.serialize(),
        ]
        sections = tuple(sections_of(self.at, parts))
        length = self.at + sum(map(len, parts)) + len(Footer(0, 0, 0, 0, sections).to_bytes())
        return parts, Footer(length, *times, int(arrays["rows"].sum()), sections)


def packed(
    segments: Iterable[GivenSegment], schema: pa.Schema, breathe: Callable[[], None]
) -> Iterator[bytes | pa.Buffer]:
    """The bytes of a pack; `breathe` is called after every frame, and may wait."""
    pack = _Pack()
    for one in segments:
        count = len(pack.frames["rows"])
        for frame in one.frames:
            pack.add(frame)
            if pack.waiting_bytes >= _BLOCK:
                yield from pack.block(schema)
            breathe()
        header, frames = one.header, len(pack.frames["rows"]) - count
        pack.segments.append(
            (
                header.number,
                header.first_row,
                header.created,
                header.watermark,
                header.keys,
                json.dumps(header.batches),
                one.begin,
                one.size,
                frames,
            )
        )
    yield from pack.block(schema)
    parts, footer = pack.index(schema)
    yield from parts
    yield footer.to_bytes()


def stored_segments(storage: Storage, chosen: Sequence[Segment]) -> Iterator[GivenSegment]:
    """Segments of a log, ready to be packed."""
    files = [
        SegmentFile(one.name, one.size, one.number, one.last, one.generation) for one in chosen
    ]
    for one, (_, opened) in zip(chosen, open_files(storage, files), strict=True):
        for segment in opened.segments(one.number, one.last):
            header, begin = segment.good_header()
            size = one.length if segment.number == one.last else segment.size
            yield GivenSegment(header, begin, size, _frames(segment, begin, size))


def _frames(segment: AnySegment, begin: int, end: int) -> Iterator[GivenFrame]:
    for byte, header in segment.frames(begin, end):
        yield GivenFrame(header, *segment.content(byte, header))


def _integers(values: array[int]) -> pa.Array:
    numbers: Int64s = np.array(values, np.int64)
    return pa.array(numbers)
