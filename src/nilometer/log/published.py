"""What of a log can be read: its layout, its segments, and where it ends."""

from __future__ import annotations

import json
import secrets
import time
from typing import Final

from nilometer.errors import LogError
from nilometer.log.frame_format import NEVER
from nilometer.log.head import HEAD, Head
from nilometer.log.layout import LogLayout
from nilometer.log.position import Position
from nilometer.log.segment_format import segment_number
from nilometer.log.segment_reader import open_segment
from nilometer.log.storage import Storage
from nilometer.log.stored_json import read_json

LAYOUT: Final = "layout.json"
_FORMAT: Final = 1
_PATIENCE: Final = 100
_MOMENT: Final = 0.0005


def write_layout(storage: Storage, layout: LogLayout) -> None:
    """Make a log of this layout."""
    content = {"format": _FORMAT, "id": secrets.token_hex(16), "layout": layout.to_json()}
    storage.write(LAYOUT, [json.dumps(content, indent=1).encode()])


def read_layout(storage: Storage) -> tuple[LogLayout, str] | None:
    """The layout of a log and the log's id, which no other log has; None if there is no log."""
    content = read_json(storage, LAYOUT)
    if content is None:
        return None
    if content["format"] != _FORMAT:
        raise LogError(
            "a log of another version",
            detail=f"{storage.location} has format {content['format']}, this reads {_FORMAT}",
        )
    return LogLayout.from_json(content["layout"]), content["id"]


def segment_sizes(storage: Storage) -> dict[int, int]:
    """The segments that exist, by number, with their sizes."""
    found = ((segment_number(name), size) for name, size in storage.files())
    return {number: size for number, size in found if number is not None}


def read_head(storage: Storage) -> Head | None:
    """Up to where the log may be read; None if nothing has been published."""
    return _stored_head(storage) if storage.publishes else _head_of_objects(storage)


def _stored_head(storage: Storage) -> Head | None:
    """The head from its file; a writer may be replacing it, so a bad one is read again."""
    for _ in range(_PATIENCE):
        try:
            found = Head.from_bytes(content := storage.read(HEAD))
        except FileNotFoundError:
            return None
        if found is not None:
            return found
        if not content:
            return None
        time.sleep(_MOMENT)
    return None


def _head_of_objects(storage: Storage) -> Head | None:
    """The head as the last whole segment tells it."""
    for number in sorted(segment_sizes(storage), reverse=True):
        with open_segment(storage, number) as segment:
            found = segment.header()
            if found is None:
                continue
            header, begin = found
            row, watermark = header.first_row, header.watermark
            for _, frame in segment.headers(begin, segment.size):
                row, watermark = frame.first_row + frame.rows, frame.watermark
            end = Position(number, segment.size, 0, row)
            return Head(end, watermark, (number, segment.size))
    return None


def as_watermark(stored: int) -> int | None:
    """A watermark as it stands in a header, outside."""
    return None if stored == NEVER else stored
