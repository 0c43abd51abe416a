"""Checks whether a log is whole: every frame, where segments meet, and the readers' offsets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from nilometer.log.dropped_rows import read_dropped_rows
from nilometer.log.frame_format import Flag
from nilometer.log.head import HEAD, Head
from nilometer.log.layout import SENSOR
from nilometer.log.location import inside, storage_at
from nilometer.log.position import Position
from nilometer.log.published import read_layout
from nilometer.log.recovery import LogState
from nilometer.log.registrations import Registration, registered_in
from nilometer.log.segment_files import SegmentFile, segment_files
from nilometer.log.segment_reader import AnySegment, one_segment, open_file, open_first
from nilometer.log.static_rows import read_static_rows
from nilometer.log.storage import Storage
from nilometer.log.stored_json import read_json
from nilometer.upkeep.logs_place import without_password
from nilometer.upkeep.problem import Problems

_NOTED: Final = ("planned.json", "frontiers.json", "count.json")
_DROP: Final = (
    "restore the database from a backup; or drop the stream or query and create it again, "
    "which loses its rows"
)
_NO_HEAD: Final = (
    "restore the database from a backup; opening the database finds the end again, but rows that "
    "were not on the disk yet may be lost silently"
)


def check_log(location: str | Path, problems: Problems) -> LogState | None:
    """Check a log and report its problems; returns its end, if known."""
    storage = storage_at(location)
    folder = _place(storage)
    known: set[int] | None = None
    with problems.noting(folder, _DROP):
        layout = read_layout(storage)
        if layout is None:
            problems.add(folder, "layout.json is missing", _DROP)
        elif layout[0].sensors is not None:
            known = set(read_static_rows(location).column(SENSOR).to_pylist())
    for name in _NOTED:
        with problems.noting(_place(storage, name)):
            read_json(storage, name)
    head, state = _head(storage, problems), None
    with problems.noting(folder, _DROP):
        state = _Segments(storage, head, known, problems).check()
    has_head = bool(_head_bytes(storage)) or not storage.publishes
    if state is not None and state.end.row and not has_head:
        problems.add(_place(storage, HEAD), "it is missing, and the log has rows", _NO_HEAD)
    with problems.noting(_place(storage, "readers"), "forget the reader, or drop its query"):
        _check_readers(storage, state, problems)
    return state


def _place(storage: Storage, name: str = "") -> str:
    """The name of a log, or of something in it, fit to be shown."""
    location = without_password(storage.location)
    return inside(location, name) if name else location


def _head_bytes(storage: Storage) -> bytes:
    try:
        return storage.read(HEAD)
    except FileNotFoundError:
        return b""


def _head(storage: Storage, problems: Problems) -> Head | None:
    content = _head_bytes(storage)
    head = Head.from_bytes(content)
    if head is None and content:
        problems.add(
            _place(storage, HEAD),
            "it is damaged, so the end of the log is unknown",
            _NO_HEAD,
        )
    return head


@dataclass
class _Segments:
    """The segments of a log, read to the end."""

    storage: Storage
    head: Head | None
    known: set[int] | None
    """For a sensor table: the versions of sensors that have static values."""
    problems: Problems

    def check(self) -> LogState | None:
        """Read every frame; returns the state after the last one."""
        lost, state, head = 0, None, self.head
        for file in segment_files(self.storage):
            if head is not None and file.first > head.end.segment:
                break
            for first, after in self._check_file(file):
                if state is not None:
                    lost += max(0, first - state.end.row)
                    self._compare(file.name, first, state.end.row, lost)
                state = after
        there = None if state is None else (state.end.segment, state.end.row)
        if head is not None and head.end.row and there != (head.end.segment, head.end.row):
            self.problems.add(
                _place(self.storage),
                f"its head says that it has {head.end.row} rows, but its segments end at row "
                f"{there[1] if there else 0}",
                _DROP,
            )
        return state

    def _compare(self, name: str, first: int, last: int, lost: int) -> None:
        """Check that a segment begins where the previous one ends, or where rows were given up."""
        if first < last or (first > last and lost > read_dropped_rows(self.storage)):
            self.problems.add(
                _place(self.storage, name),
                f"it begins with row {first}, but the segment before ends with row {last}",
                _DROP,
            )

    def _check_file(self, file: SegmentFile) -> list[tuple[int, LogState]]:
        """The first rows of segments, and the state after the last good frame of each."""
        place, states = _place(self.storage, file.name), list[tuple[int, LogState]]()
        with self.problems.noting(place, _DROP), open_file(self.storage, file) as opened:
            for number in range(file.first, file.last + 1):
                segment = one_segment(opened, number)
                header, begin = segment.good_header()
                if header.number != number:
                    self.problems.add(place, f"it is the segment {header.number}, renamed", _DROP)
                states.append((header.first_row, LogState.after_header(header, begin)))
                states[-1] = (header.first_row, self._read(place, segment, states[-1][1]))
        return [] if file.is_base else states

    def _read(self, place: str, segment: AnySegment, state: LogState) -> LogState:
        """Read all frames of a segment."""
        end = None if self.head is None else self.head.end
        is_last = end is not None and segment.number == end.segment
        stop = end.byte if end is not None and is_last else segment.size
        with self.problems.noting(place, _DROP):
            for byte, frame in segment.frames(state.end.byte, stop):
                rows, _ = segment.content(byte, frame)
                if frame.first_row != state.end.row and not segment.is_base:
                    self.problems.add(place, f"rows are missing at byte {byte}", _DROP)
                self._check_sensors(place, rows)
                batch = segment.keys(byte, frame)[0] if frame.flags & Flag.BATCH else None
                state = state.after(frame, batch)
        return state

    def _check_sensors(self, place: str, rows: pa.RecordBatch) -> None:
        if self.known is None:
            return
        missing = set(pc.unique(rows.column(SENSOR)).to_pylist()) - self.known
        if missing:
            self.problems.add(place, f"static values of sensors are missing: {missing}", _DROP)


def _check_readers(storage: Storage, state: LogState | None, problems: Problems) -> None:
    start = _start(storage)
    for one in registered_in(storage):
        place = _place(storage, "readers")
        if state is not None and one.position.row > state.end.row:
            problems.add(
                place,
                f"{one.reader} has read {one.position.row} rows, but the log has {state.end.row}",
            )
        if start is not None and _is_before(one, start):
            missing = start.row - one.position.row
            problems.add(
                place,
                f"{one.reader} has not read {missing} rows that no longer exist",
            )


def _is_before(reader: Registration, start: Position) -> bool:
    return reader.named and reader.position.row < start.row and reader.position.byte > 0


def _start(storage: Storage) -> Position | None:
    """The position at which the log begins."""
    files = segment_files(storage)
    if not files:
        return None
    with open_first(storage, files[0]) as segment:
        heading = segment.header()
        first = files[0].first
        return None if heading is None else Position(first, heading[1], 0, heading[0].first_row)
