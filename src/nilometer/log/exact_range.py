"""Ranges of a log that one process names to another, which may see other files."""

from __future__ import annotations

from collections.abc import Iterator

from nilometer.errors import LogError
from nilometer.log.frame import Frame
from nilometer.log.position import Position
from nilometer.log.reader import LogReader

_HINT = "keep the log where the driver and all executors find the same files: on a network file "
_HINT += "system, or in an object store"


def require_same_log(log: LogReader, location: str, log_id: str) -> None:
    """Raise LogError unless a log is the one that was named."""
    if log.log_id != log_id:
        raise LogError(
            f"there is another log here: {location}",
            detail=f"its id is {log.log_id} instead of {log_id}",
            hint=_HINT,
        )


def read_exactly(log: LogReader, location: str, start: Position, end: Position) -> Iterator[Frame]:
    """The frames of a range; raises LogError unless all its rows are there."""
    rows = 0
    for frame in log.read(start, end):
        rows += len(frame.rows)
        yield frame
    if rows != end.row - start.row:
        raise LogError(
            f"rows of the log are missing here: {location}",
            detail=f"there are {rows} between two offsets instead of {end.row - start.row}",
            hint=_HINT,
        )
