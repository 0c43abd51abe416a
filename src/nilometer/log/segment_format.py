"""Segments: files of frames after a header that says where in the log they belong.

The header repeats what a writer must know of everything before it, because earlier segments
may have been deleted: the row number, the watermark, the number of delivery keys, and the
last batch of every writer.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from nilometer.log.frame_format import NEVER, padded

FIXED: Final = 80
"""A file with fewer bytes has no header."""

_MAGIC: Final = b"NiloSeg1"
_CHECKED: Final = struct.Struct("<8sI")
_FIELDS: Final = struct.Struct("<IQQqqQQII")
_LENGTH: Final = 6
"""The position of the length among the fields."""
_NAME: Final = re.compile(r"(\d{12})\.seg")


@dataclass(frozen=True)
class SegmentHeader:
    """The contents of a segment's header."""

    number: int
    first_row: int
    created: int
    """When it was begun, by the writer's clock: earlier rows went to the previous segment."""
    schema: pa.Schema
    watermark: int = NEVER
    """The watermark of the log before this segment, or NEVER."""
    keys: int = 0
    """How many delivery keys the log had before this segment."""
    batches: Mapping[str, int] = field(default_factory=dict)
    """The last batch of every writer before this segment, the most recent writer last."""
    length: int = 0
    """The size of the segment if it was written as a whole, 0 if it is still growing."""

    def to_bytes(self, frames: int | None = None) -> bytes:
        """The header; includes the size of the frames if the segment is written as a whole."""
        batches = json.dumps(self.batches).encode()
        schema: bytes = self.schema.serialize().to_pybytes()
        size = padded(_CHECKED.size + _FIELDS.size + len(batches) + len(schema))
        fields = _FIELDS.pack(
            size,
            self.number,
            self.first_row,
            self.created,
            self.watermark,
            self.keys,
            self.length if frames is None else size + frames,
            len(batches),
            len(schema),
        )
        content = (fields + batches + schema).ljust(size - _CHECKED.size, b"\0")
        return _CHECKED.pack(_MAGIC, zlib.crc32(content)) + content


def header_size(data: bytes | memoryview) -> int | None:
    """The length of the header that begins with these FIXED bytes, or None if there is none."""
    if len(data) < FIXED or bytes(data[: len(_MAGIC)]) != _MAGIC:
        return None
    return int(_FIELDS.unpack_from(data, _CHECKED.size)[0])


def read_header(data: bytes | memoryview) -> SegmentHeader | None:
    """The header, or None if these bytes are not a complete one."""
    size = header_size(data)
    if size is None or len(data) < size:
        return None
    _, crc = _CHECKED.unpack_from(data)
    if crc != zlib.crc32(data[_CHECKED.size : size]):
        return None
    _, number, first_row, created, watermark, keys, length, batches, schema = _FIELDS.unpack_from(
        data, _CHECKED.size
    )
    place = _CHECKED.size + _FIELDS.size
    return SegmentHeader(
        number,
        first_row,
        created,
        pa.ipc.read_schema(pa.py_buffer(bytes(data[place + batches : place + batches + schema]))),
        watermark,
        keys,
        json.loads(bytes(data[place : place + batches])),
        length,
    )


def with_length(header: bytes, length: int) -> bytes:
    """The bytes of a header, for a segment of this length; 0: one that is still growing."""
    fields = list(_FIELDS.unpack_from(header, _CHECKED.size))
    fields[_LENGTH] = length
    content = _FIELDS.pack(*fields) + header[_CHECKED.size + _FIELDS.size :]
    return _CHECKED.pack(_MAGIC, zlib.crc32(content)) + content


def segment_name(number: int) -> str:
    return f"{number:012d}.seg"


def segment_number(name: str) -> int | None:
    """The number of the segment in a file of this name, or None if it holds none."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None
