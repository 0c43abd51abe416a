"""Files as sensors: CSV, JSON lines and Parquet, replayed at a chosen speed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from glob import glob
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa

from nilometer.errors import InputError
from nilometer.model.options import Option, one_of, yes_or_no
from nilometer.sensors.stream_type import (
    END,
    NEW_VALUE,
    NO_VALUE,
    Reading,
    SensorAddress,
)
from nilometer.sensors.types.allowed_files import require_allowed
from nilometer.sensors.types.file_rows import FORMATS, FileFormat, Piece, read_lines, read_pieces
from nilometer.sensors.types.options import read_options
from nilometer.sensors.types.tcp import read_separator

_LONGEST_WAIT: Final = 0.25


def read_speed(text: str) -> float | None:
    """How many times as fast as recorded; None: as fast as rows can be stored.

    >>> read_speed("10"), read_speed("recorded"), read_speed("max")
    (10.0, 1.0, None)
    """
    word = text.strip().lower()
    if word in ("max", "recorded"):
        return None if word == "max" else 1.0
    if not 0 < (speed := float(word)) < float("inf"):
        raise ValueError("write a factor such as 10, or recorded, or max")
    return speed


class FileStream:
    """The rows of a file, or of all files that match a pattern, in the order of their names."""

    can_wait = True
    replays = True
    options: ClassVar = (
        Option(
            "format",
            "csv, json (lines) or parquet; by default from the extension",
            one_of(*FORMATS),
        ),
        Option("speed", "recorded, a factor such as 10, or max", read_speed),
        Option("header", "whether the first line of CSV names the columns", yes_or_no, True),
        Option("separator", "the separator between cells of CSV", read_separator, ","),
        Option("follow", "whether to wait for lines added to the last file", yes_or_no, False),
    )

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.interval = 0.0
        self._pieces: Iterator[tuple[Path, Piece]] = iter(())
        self._speed: float | None = None
        self._time: str | None = None
        self._began: tuple[float, int] | None = None
        self._rows: pa.RecordBatch | None = None
        self._path = Path()
        self._ends: list[int] = []

    def init_stream(self, sensor: SensorAddress) -> None:
        """Find the files, and the position where an earlier run stopped."""
        chosen = read_options("file", self.options, sensor.options)
        form = FileFormat(sensor.columns, chosen["format"], chosen["header"], chosen["separator"])
        self._speed, self._time = chosen["speed"], sensor.time
        if self._speed is not None and self._time is None:
            raise InputError(
                "only rows with a time can be replayed at a speed",
                hint="declare TIME column, or leave out the option speed",
            )
        self.check_address(sensor.address)
        files = sorted(Path(one) for one in glob(sensor.address, recursive=True))
        if not files:
            raise FileNotFoundError(f"there is no file {sensor.address}")
        for file in files:
            require_allowed(file)
        self._pieces = _pieces(files, form, _resume(sensor.delivered, files), chosen["follow"])

    @staticmethod
    def check_address(address: str) -> None:
        """Refuse files that this process may not read."""
        require_allowed(address)

    def read_stream(self) -> Any:
        """The next rows that are due."""
        if self._rows is not None:
            return self._due()
        upcoming = next(self._pieces, None)
        if upcoming is None:
            return Reading(END)
        self._path, piece = upcoming
        self._ends = piece.ends()
        self._rows = piece.rows if len(piece.rows) else None
        if piece.bad:
            self.interval = 0.0
            return list(piece.bad)
        self.interval = _LONGEST_WAIT
        return self._due() if self._rows is not None else Reading(NO_VALUE)

    def close_stream(self) -> None:
        """Close the file."""
        self._pieces = iter(())
        self._rows = None

    def _due(self) -> Reading:
        assert self._rows is not None
        count = len(self._rows)
        if self._speed is not None:
            count = self._count_due(self._speed)
            if not count:
                return Reading(NO_VALUE)
        rows, rest = self._rows.slice(0, count), self._rows.slice(count)
        self._rows = rest if len(rest) else None
        key = f"{self._path}:{self._ends[count - 1]}".encode()
        self._ends = self._ends[count:]
        return Reading(NEW_VALUE, rows, None, key)

    def _count_due(self, speed: float) -> int:
        """How many of the rows are due; if none is, set how long to wait."""
        assert self._rows is not None
        micros = self._rows.column(self._time).cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        times = micros.fill_null(np.iinfo(np.int64).min).to_numpy(zero_copy_only=False)
        now = self._clock()
        if self._began is None:
            valid = times[times > np.iinfo(np.int64).min]
            self._began = (now, int(valid[0]) if len(valid) else 0)
        reached = self._began[1] + (now - self._began[0]) * speed * 1e6
        late = np.nonzero(times > reached)[0]
        count = int(late[0]) if len(late) else len(times)
        if not count:
            wait = (float(times[0]) - reached) / 1e6 / speed
            self.interval = min(max(wait, 0.001), _LONGEST_WAIT)
        return count


def _pieces(
    files: list[Path], form: FileFormat, resume: tuple[int, int], follow: bool
) -> Iterator[tuple[Path, Piece]]:
    first, skip = resume
    for number, path in enumerate(files[first:], first):
        rows = skip if number == first else 0
        is_last = follow and path == files[-1] and form.of(path) != "parquet"
        pieces = (
            read_lines(path, form, rows, follow=True) if is_last else read_pieces(path, form, rows)
        )
        for piece in pieces:
            yield path, piece


def _resume(delivered: frozenset[bytes], files: list[Path]) -> tuple[int, int]:
    """The index of the file where to resume, and how many of its rows are stored."""
    places = {str(path): place for place, path in enumerate(files)}
    reached = (0, 0)
    for key in delivered:
        path, _, rows = key.decode(errors="replace").rpartition(":")
        if path in places and rows.isdecimal():
            reached = max(reached, (places[path], int(rows)))
    return reached
