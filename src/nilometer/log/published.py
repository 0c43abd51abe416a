"""What can be read of a log: its layout, its segments, and its end."""

from __future__ import annotations

import secrets
import time
from typing import Final

import pyarrow as pa

from nilometer.errors import LogError
from nilometer.log.frame_format import NEVER
from nilometer.log.head import HEAD, Head
from nilometer.log.layout import LogLayout
from nilometer.log.position import Position
from nilometer.log.segment_files import segment_files
from nilometer.log.segment_reader import one_segment, open_file
from nilometer.log.storage import Storage
from nilometer.log.stored_json import json_bytes, read_json

LAYOUT: Final = "layout.json"
_FORMAT: Final = 1
_ALTERED: Final = 2
"""Its segments may have different columns, which earlier releases did not support."""
_PATIENCE: Final = 100
_MOMENT: Final = 0.0005


def write_layout(storage: Storage, layout: LogLayout) -> None:
    """Create a log of this layout."""
    _write(storage, _FORMAT, secrets.token_hex(16), layout)


def change_layout(storage: Storage, layout: LogLayout, log_id: str) -> None:
    """Change the layout of a log."""
    _write(storage, _ALTERED, log_id, layout)


def _write(storage: Storage, form: int, log_id: str, layout: LogLayout) -> None:
    content = {"format": form, "id": log_id, "layout": layout.to_json()}
    storage.write(LAYOUT, [json_bytes(content)])


def read_layout(storage: Storage) -> tuple[LogLayout, str] | None:
    """The layout of a log and its id, which is unique; None if there is no log."""
    content = read_json(storage, LAYOUT)
    if content is None:
        return None
    if content["format"] not in (_FORMAT, _ALTERED):
        raise LogError(
            "a log of another version",
            detail=f"{storage.location} has format {content['format']}, this reads {_ALTERED}",
        )
    return LogLayout.from_json(content["layout"]), content["id"]


def stored_bytes(storage: Storage) -> int:
    """The bytes of the log's segments in its storage."""
    return sum(one.size for one in segment_files(storage))


def own_layout(
    storage: Storage, layout: LogLayout, may_change: bool = False
) -> tuple[LogLayout, str]:
    """The layout and id of the log, which is created if there is none."""
    if any(pa.types.is_dictionary(one) for one in layout.stored.types):
        raise LogError("a log cannot store dictionary columns", hint="decode them first")
    stored = read_layout(storage)
    if stored is None:
        write_layout(storage, layout)
        stored = read_layout(storage)
    if stored is not None and may_change and stored[0] != layout and layout.may_follow(stored[0]):
        change_layout(storage, layout, stored[1])
        return layout, stored[1]
    if stored is None or stored[0] != layout:
        raise LogError(
            "the log has other columns",
            detail=f"{storage.location} was made with {stored and stored[0].stored.names}, "
            f"and is opened with {layout.stored.names}",
            hint="drop it, or open it as it was made",
        )
    return stored


def read_head(storage: Storage) -> Head | None:
    """The end up to which the log may be read; None if nothing has been published."""
    return _stored_head(storage) if storage.publishes else _head_of_objects(storage)


def _stored_head(storage: Storage) -> Head | None:
    """The head from its file; a writer may be replacing it, so an invalid one is read again."""
    for _ in range(_PATIENCE):
        try:
            head = Head.from_bytes(content := storage.read(HEAD))
        except FileNotFoundError:
            return None
        if head is not None:
            return head
        if not content:
            return None
        time.sleep(_MOMENT)
    return None


def _head_of_objects(storage: Storage) -> Head | None:
    """The head according to the last complete segment."""
    for file in reversed(segment_files(storage)):
        with open_file(storage, file) as opened:
            segment = one_segment(opened, file.last)
            heading = segment.header()
            if heading is None:
                continue
            header, begin = heading
            row, watermark = header.first_row, header.watermark
            for _, frame in segment.headers(begin, segment.size):
                row, watermark = frame.first_row + frame.rows, frame.watermark
            end = Position(file.last, segment.size, 0, row)
            return Head(end, watermark, (file.last, segment.size))
    return None


def as_watermark(stored: int) -> int | None:
    """A watermark from a header, in the form used elsewhere."""
    return None if stored == NEVER else stored
