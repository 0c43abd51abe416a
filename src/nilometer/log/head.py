"""The head of a log: the end of what is published, and of what is surely on the disk."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Final

from nilometer.log.frame_format import NEVER
from nilometer.log.position import Position

HEAD: Final = "head"
_MAGIC: Final = b"NiHd"
_CHECKED: Final = struct.Struct("<4sI")
_FIELDS: Final = struct.Struct("<QQQqQQ")
SIZE: Final = _CHECKED.size + _FIELDS.size


@dataclass(frozen=True, slots=True)
class Head:
    """The end of what readers may read."""

    end: Position
    watermark: int = NEVER
    synced: tuple[int, int] = (0, 0)
    """Segment and byte up to which everything survives even a power failure."""

    def to_bytes(self) -> bytes:
        end = self.end
        content = _FIELDS.pack(end.segment, end.byte, end.row, self.watermark, *self.synced)
        return _CHECKED.pack(_MAGIC, zlib.crc32(content)) + content

    @classmethod
    def from_bytes(cls, data: bytes) -> Head | None:
        """The head, or None if these bytes are none."""
        if len(data) < SIZE:
            return None
        magic, crc = _CHECKED.unpack_from(data)
        if magic != _MAGIC or crc != zlib.crc32(data[_CHECKED.size : SIZE]):
            return None
        segment, byte, row, watermark, *synced = _FIELDS.unpack_from(data, _CHECKED.size)
        return cls(Position(segment, byte, 0, row), watermark, (synced[0], synced[1]))
