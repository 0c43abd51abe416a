"""The newest readings of a stream as they arrive, for charts."""

from __future__ import annotations

import pyarrow as pa

from nilometer.errors import LogGapError
from nilometer.local.shown_rows import ShownRows
from nilometer.log.layout import TIME
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.log.seen import Seen
from nilometer.server.results.offset import Offset
from nilometer.server.results.read_page import read_page


class RecentReadings:
    """Reads the log of a stream without registering as a reader: nothing is kept for it."""

    def __init__(self, location: str) -> None:
        """Raises LogError if there is no log yet."""
        self._reader = LogReader.open(location)
        self._time = self._reader.layout.time
        self._shown = ShownRows(location, self._reader.layout)
        self._place: Position | None = None
        self.schema: pa.Schema = self._as_seen(self._reader.layout.stored.empty_table()).schema

    def begin_anew(self) -> None:
        """Start again with the newest rows."""
        self._place = None

    def take(self, max_rows: int) -> pa.Table:
        """The rows since the last call; if there are more than `max_rows`, the newest."""
        reader, seen = self._reader, Seen.of(self._reader)
        first = max(0, seen.end.row - max_rows)
        start = self._place
        if start is None or start.row < first:
            start = reader.place_of(first)
        try:
            page = read_page(reader, Offset.at(reader.log_id, start), max_rows, seen)
        except LogGapError:  # rows were deleted before they were read
            start = reader.place_of(first)
            page = read_page(reader, Offset.at(reader.log_id, start), max_rows, seen)
        self._place = page.next.position
        return self._as_seen(page.rows)

    def _as_seen(self, rows: pa.Table) -> pa.Table:
        """Rows with the columns of their sensors, separate fields, and `_time`."""
        layout = self._reader.layout
        batches = [self._shown.show(one) for one in rows.to_batches()]
        shown = pa.Table.from_batches(batches, schema=layout.shown).flatten()
        if layout.sensors is not None or self._time in (None, TIME):
            return shown
        names = [TIME if one == self._time else one for one in shown.column_names]
        return shown.rename_columns(names)
