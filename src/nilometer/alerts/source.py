"""What an alert checks: rows as a log receives them, or the current answer of a query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from nilometer.errors import LogGapError, TooLargeError
from nilometer.local.answer_fold import AnswerFold
from nilometer.local.shown_rows import ShownRows
from nilometer.log.layout import DIFF, TIME
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.log.registrations import commit, register, release
from nilometer.log.seen import Seen

ROWS: Final = 20_000
"""How many rows are checked together."""
_ANSWER_BYTES: Final = 64 << 20
_ANSWER_ROWS: Final = 1_000_000
_COMMIT_EVERY: Final = 10_000_000


def reader_name(alert: str) -> str:
    """The name by which a log knows an alert."""
    return f"alert {alert}"


@dataclass(frozen=True)
class NewRows:
    """Rows to be checked."""

    rows: pa.Table
    is_answer: bool
    """Whether these are all rows that hold now; otherwise they follow the earlier ones."""


class AlertSource:
    """Reads a log for an alert, which is one of its readers: sensors are read for it."""

    def __init__(
        self, location: str, alert: str, place: dict[str, Any] | None, clock: Callable[[], int]
    ) -> None:
        """`place`: the position it had reached; None: it starts with what arrives now."""
        self.location = location
        self._name = reader_name(alert)
        self._clock = clock
        self._reader = LogReader.open(location)
        self.log_id = self._reader.log_id
        self.schema = shown_schema(self._reader)
        self._shown = ShownRows(location, self._reader.layout)
        changes = self._reader.layout.changes
        self._fold = AnswerFold(self._reader, _ANSWER_BYTES) if changes else None
        is_same = place is not None and place["log"] == self.log_id
        self._place = Position.from_json(place["at"]) if place and is_same else self._reader.end
        if place is not None and not is_same:
            self._place = self._reader.start
        self._seen: Seen | None = None
        self._committed = clock()
        self.lost = 0
        """Rows that were deleted before they could be checked."""
        register(location, self._name, self._place, {}, now=self._committed, named=True)

    @property
    def place(self) -> dict[str, Any]:
        """The position, as it is stored."""
        return {"log": self.log_id, "at": self._place.to_json()}

    def moved(self) -> bool:
        """Whether the log has grown since it was last read."""
        return Seen.of(self._reader) != self._seen

    def new_rows(self) -> Iterator[NewRows]:
        """The new rows; the position advances with every part that is taken."""
        seen = Seen.of(self._reader)
        if self._fold is not None:
            answer = self._fold.now(_ANSWER_ROWS)
            if answer.is_cut:
                raise TooLargeError(
                    f"the answer has more than {_ANSWER_ROWS:,} rows",
                    hint="reduce them with HAVING or LIMIT",
                )
            self._place, self._seen = seen.end, seen
            yield NewRows(answer.rows, True)
            return
        yield from self._appended(seen.end)
        self._seen = seen

    def _appended(self, end: Position) -> Iterator[NewRows]:
        while self._place < end:
            try:
                stop = min(self._reader.limit(self._place, ROWS), end)
                stop = stop if stop > self._place else end  # without frames, segments begin
                frames = [one.rows for one in self._reader.read(self._place, stop)]
            except LogGapError as gap:
                if not isinstance(gap.oldest, Position):
                    raise
                self.lost += max(0, gap.oldest.row - self._place.row)
                self._place = gap.oldest
                continue
            batches = [self._shown.show(one) for one in frames if len(one)]
            self._place = stop
            if batches:
                yield NewRows(pa.Table.from_batches(batches, self.schema), False)

    def commit(self, *, at_once: bool = False) -> None:
        """Report the position to the log from time to time."""
        now = self._clock()
        if at_once or now - self._committed >= _COMMIT_EVERY or now < self._committed:
            commit(self.location, self._name, self._place, now=now)
            self._committed = now

    def close(self) -> None:
        """Suspend the alert; the log keeps what it has not read."""
        release(self.location, self._name, now=self._clock())


def shown_schema(reader: LogReader) -> pa.Schema:
    """The columns that conditions may name."""
    shown = reader.layout.shown
    if not reader.layout.changes:
        return shown
    return pa.schema([one for one in shown if one.name not in (TIME, DIFF)])
