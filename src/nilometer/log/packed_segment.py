"""Reads packed segments: each looks like the original segment."""

from __future__ import annotations

import json
import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from nilometer.errors import LogError
from nilometer.log.block_cache import BlockCache
from nilometer.log.frame_format import (
    ALIGNMENT,
    HEADER,
    BatchKey,
    Flag,
    FrameHeader,
    decode_keys,
    no_rows,
)
from nilometer.log.packed_format import (
    FOOTER,
    FRAMES,
    Footer,
    Int64s,
    added_up,
    decode_table,
    sums_before,
)
from nilometer.log.segment_files import SegmentFile
from nilometer.log.segment_format import SegmentHeader
from nilometer.log.storage import OpenFile

_TAIL: Final = 16 << 10
_INDEXES_KEPT: Final = 4
_indexes: OrderedDict[tuple[str, bytes], PackIndex] = OrderedDict()
"""Indexes of the files read last. A file with such a footer never changes."""
_keeping: Final = threading.Lock()
_decoded: Final[BlockCache[pa.RecordBatch]] = BlockCache()


@dataclass(frozen=True)
class PackIndex:
    """The index of a pack: its frames as columns; frames are numbered across all segments."""

    segments: dict[str, list[Any]]
    numbers: dict[str, Int64s]
    earliest: Int64s
    latest: Int64s
    watermarks: Int64s
    blocks: dict[str, Int64s]
    schema: pa.Schema
    first_frames: Int64s = field(init=False)
    """The first frame of every segment, and the total number of frames."""
    block_frames: Int64s = field(init=False)
    """The first frame of every block, and the total number of frames."""
    rows_before: Int64s = field(init=False)
    keys_before: Int64s = field(init=False)
    bytes_before: Int64s = field(init=False)

    def __post_init__(self) -> None:
        keys, rows = self.numbers["keys_length"], self.numbers["rows_length"]
        lengths = HEADER + _padded(keys) + _padded(rows)
        for name, value in (
            ("first_frames", np.array(self.segments["frames"], np.int64)),
            ("block_frames", self.blocks["frames"]),
            ("rows_before", self.numbers["rows"]),
            ("keys_before", keys),
            ("bytes_before", lengths),
        ):
            object.__setattr__(self, name, sums_before(value))


class PackedFile:
    """An open pack or base."""

    def __init__(self, file: OpenFile, described: SegmentFile, location: str) -> None:
        self._file = file
        self.described = described
        self._location = location
        self._block: tuple[int, pa.RecordBatch] | None = None
        self._keys: tuple[int, pa.Buffer] | None = None
        self.size = file.size

    @cached_property
    def footer(self) -> Footer:
        footer = Footer.from_bytes(self._footer_bytes)
        if footer is None or footer.length != self.size:
            raise self.damaged()
        return footer

    @cached_property
    def index(self) -> PackIndex:
        key = (f"{self._location}/{self.described.name}", self._footer_bytes)
        with _keeping:
            if (index := _indexes.get(key)) is not None:
                _indexes.move_to_end(key)
                return index
        index = self._read_index()
        with _keeping:
            _indexes[key] = index
            while len(_indexes) > _INDEXES_KEPT:
                _indexes.popitem(last=False)
        return index

    @cached_property
    def heads(self) -> tuple[dict[str, list[Any]], pa.Schema]:
        """The metadata of the segments, and the columns of their rows; without the frames."""
        segments, schema = self._section(2), self._section(3)
        return decode_table(segments).to_pydict(), pa.ipc.read_schema(schema)

    @property
    def numbers(self) -> list[int]:
        """The numbers of the segments in it."""
        return [int(one) for one in self.heads[0]["number"]]

    def segments(self, first: int, last: int) -> Iterator[PackedSegment]:
        """The segments in it whose numbers are first … last."""
        for place, number in enumerate(self.numbers):
            if max(first, self.described.first) <= number <= min(last, self.described.last):
                yield PackedSegment(self, place)

    def block(self, number: int) -> pa.RecordBatch:
        """The rows of a block; the last block is cached."""
        if self._block is None or self._block[0] != number:
            self._block = (number, self._decode(number))
        return self._block[1]

    def _decode(self, number: int) -> pa.RecordBatch:
        stored = self._part(number, "rows_at", "rows_stored", "crc")
        return pa.ipc.read_record_batch(stored, self.index.schema)

    def batches(self, earliest: int | None, latest: int | None) -> Iterator[pa.RecordBatch]:
        """The rows of all blocks that may have some within the inclusive time range."""
        stored = self.index.blocks["rows_stored"]
        for number in self._blocks_within(earliest, latest):
            if not stored[number]:  # its frames have only watermarks
                continue
            key = (self._location, self.described.name, self._footer_bytes, number)
            yield _decoded.get(key, partial(self._decode, number))

    def bytes_within(self, earliest: int | None, latest: int | None) -> int:
        """The bytes of all blocks that may have rows within the inclusive time range."""
        if not self.footer.overlaps(earliest, latest):
            return 0
        stored = self.index.blocks["rows_stored"]
        return sum(int(stored[one]) for one in self._blocks_within(earliest, latest))

    def _blocks_within(self, earliest: int | None, latest: int | None) -> Iterator[int]:
        index = self.index
        for number, (first, last) in enumerate(pairwise(index.block_frames.tolist())):
            begins, ends = index.earliest[first:last], index.latest[first:last]
            is_before = earliest is not None and int(ends.max()) < earliest
            if not is_before and (latest is None or int(begins.min()) <= latest):
                yield number

    @property
    def counts_whole(self) -> bool:
        """Whether all segments in it count."""
        return self.numbers == list(range(self.described.first, self.described.last + 1))

    def keys(self, number: int) -> pa.Buffer:
        """The keys of the frames of a block."""
        if self._keys is None or self._keys[0] != number:
            index = self.index
            stored = self._part(number, "keys_at", "keys_stored", "keys_crc")
            first, last = index.block_frames[number], index.block_frames[number + 1]
            size = int(index.keys_before[last] - index.keys_before[first])
            content = pa.decompress(stored, size, "zstd") if size else pa.py_buffer(b"")
            self._keys = (number, content)
        return self._keys[1]

    def damaged(self) -> LogError:
        return LogError(
            "the log is damaged",
            detail=f"packed segments {self.described.name} of {self._location}: "
            "a checksum is wrong, or something is missing",
            hint="restore the file from a copy; rows before and after it are not affected",
        )

    @cached_property
    def _tail(self) -> tuple[int, pa.Buffer]:
        begin = max(0, self.size - _TAIL)
        return begin, self._file.read_at(begin, self.size - begin)

    @cached_property
    def _footer_bytes(self) -> bytes:
        content: bytes = self._tail[1].to_pybytes()
        return content[-FOOTER:]

    def _section(self, number: int) -> pa.Buffer:
        at, length, crc = self.footer.sections[number]
        return self._checked(at, length, crc)

    def _part(self, block: int, at: str, length: str, crc: str) -> pa.Buffer:
        blocks = self.index.blocks
        return self._checked(
            int(blocks[at][block]), int(blocks[length][block]), int(blocks[crc][block])
        )

    def _checked(self, at: int, length: int, crc: int) -> pa.Buffer:
        begin, tail = self._tail
        content = tail.slice(at - begin, length) if at >= begin else self._file.read_at(at, length)
        if len(content) != length or zlib.crc32(content) != crc:
            raise self.damaged()
        return content

    def _read_index(self) -> PackIndex:
        frames, blocks = decode_table(self._section(0)), decode_table(self._section(1))
        segments, schema = self.heads
        earliest = added_up(_numbers(frames, "earliest"))
        with np.errstate(over="ignore"):
            latest = earliest + _numbers(frames, "latest")
        return PackIndex(
            segments,
            {name: _numbers(frames, name) for name in FRAMES},
            earliest,
            latest,
            added_up(_numbers(frames, "watermark")),
            {name: _numbers(blocks, name) for name in blocks.column_names},
            schema,
        )


class PackedSegment:
    """One segment of a pack."""

    def __init__(self, file: PackedFile, place: int) -> None:
        self._file = file
        self._place = place
        segments = file.heads[0]
        self.number = int(segments["number"][place])
        self.size = int(segments["size"][place])
        self.is_base = file.described.is_base

    def header(self) -> tuple[SegmentHeader, int]:
        """The segment's header and its length."""
        segments, schema = self._file.heads
        place = self._place
        header = SegmentHeader(
            self.number,
            segments["first_row"][place],
            segments["created"][place],
            schema,
            segments["watermark"][place],
            segments["keys"][place],
            json.loads(segments["batches"][place]),
        )
        return header, int(segments["begin"][place])

    good_header = header

    def headers(self, begin: int, end: int) -> Iterator[tuple[int, FrameHeader]]:
        """The positions and headers of the frames that begin at begin … end-1."""
        index, (own, start) = self._file.index, self.header()
        first, last = (int(index.first_frames[self._place + n]) for n in (0, 1))
        bytes_before = index.bytes_before[first : last + 1]
        shift = start - int(bytes_before[0])
        low = int(np.searchsorted(bytes_before, begin - shift))
        if (
            low <= last - first
            and begin < end
            and int(bytes_before[low]) + shift != max(begin, start)
        ):
            raise self._file.damaged()
        row = own.first_row - int(index.rows_before[first])
        for frame in range(first + low, last):
            byte = int(index.bytes_before[frame]) + shift
            if byte >= end:
                return
            before = own.watermark if frame == first else int(index.watermarks[frame - 1])
            yield byte, self._header_of(index, frame, row, before)

    frames = headers

    def rows(self, byte: int, header: FrameHeader) -> pa.RecordBatch:
        """The rows of the frame that begins here."""
        index, frame = self._file.index, self._frame_at(byte)
        if not header.rows:
            return no_rows(index.schema)
        block = self._block_of(frame)
        first = int(index.rows_before[frame] - index.rows_before[index.block_frames[block]])
        return self._file.block(block).slice(first, header.rows)

    def keys(self, byte: int, header: FrameHeader) -> tuple[BatchKey | None, list[bytes]]:
        """The batch key and the delivery keys of the frame that begins here."""
        return decode_keys(header, pa.py_buffer(self._stored_keys(byte, header)))

    def content(self, byte: int, header: FrameHeader) -> tuple[pa.RecordBatch, bytes]:
        """The rows of the frame that begins here, and its keys as they are stored."""
        return self.rows(byte, header), self._stored_keys(byte, header)

    def _stored_keys(self, byte: int, header: FrameHeader) -> bytes:
        if not header.keys_length:
            return b""
        index, frame = self._file.index, self._frame_at(byte)
        block = self._block_of(frame)
        first = int(index.keys_before[frame] - index.keys_before[index.block_frames[block]])
        content: bytes = self._file.keys(block).slice(first, header.keys_length).to_pybytes()
        return content

    def may_hold(self, earliest: int | None, latest: int | None) -> bool:
        """Whether it may have rows within the inclusive time range; the index is not read."""
        return self._file.footer.overlaps(earliest, latest)

    def _frame_at(self, byte: int) -> int:
        index, first = self._file.index, int(self._file.index.first_frames[self._place])
        start = int(self._file.heads[0]["begin"][self._place])
        offset = byte - start + int(index.bytes_before[first])
        return int(np.searchsorted(index.bytes_before, offset))

    def _block_of(self, frame: int) -> int:
        return int(np.searchsorted(self._file.index.block_frames, frame, side="right")) - 1

    def _header_of(self, index: PackIndex, frame: int, row: int, before: int) -> FrameHeader:
        numbers = index.numbers
        return FrameHeader(
            0,
            Flag(int(numbers["flags"][frame])),
            int(numbers["keys"][frame]),
            int(numbers["keys_length"][frame]),
            int(numbers["rows_length"][frame]),
            int(numbers["rows"][frame]),
            int(index.rows_before[frame]) + row,
            int(index.earliest[frame]),
            int(index.latest[frame]),
            before,
            int(index.watermarks[frame]),
        )


def _numbers(table: pa.Table, name: str) -> Int64s:
    numbers: Int64s = (
        table.column(name).combine_chunks().cast(pa.int64()).to_numpy(zero_copy_only=False)
    )
    return numbers


def _padded(lengths: Int64s) -> Int64s:
    return -(-lengths // ALIGNMENT) * ALIGNMENT
