"""Alerts for tests: a database folder without Spark, a stream of rows, and a manual clock."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa

from nilometer.database.home import Home
from nilometer.database.running import RunningQueries
from nilometer.database.statements import run_statement
from nilometer.log.layout import DIFF, TIME, TIMESTAMP, LogLayout
from nilometer.log.options import Fsync, LogOptions
from nilometer.log.writer import LogWriter
from nilometer.model.time import FOREVER
from nilometer.sensors.catalog.outcome import Outcome
from nilometer.sql.parse.query_text import Statement
from nilometer.sql.statements import read_one

READINGS = pa.schema(
    [(TIME, TIMESTAMP), ("room", pa.int64()), ("v", pa.float64()), ("note", pa.string())]
)
CHANGES = pa.schema(
    [(TIME, TIMESTAMP), (DIFF, pa.int64()), ("room", pa.int64()), ("v", pa.float64())]
)
_OPTIONS = LogOptions(history=FOREVER, fsync=Fsync.NEVER)


class Clock:
    """A clock, in microseconds, that stands still until it is moved."""

    def __init__(self, now: int = 1_000_000_000_000_000) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def go_on(self, seconds: float) -> None:
        self.now += int(seconds * 1e6)


class Rows:
    """The log of a query's results, to which a test appends."""

    def __init__(self, home: Home, name: str = "q", emits: str = "append") -> None:
        if home.catalog.query(name) is None:
            home.catalog.create_query(name, "SELECT v FROM A", emits)
        schema = READINGS if emits == "append" else CHANGES
        layout = LogLayout(schema, TIME, changes=emits != "append")
        self._schema = schema
        self._log = LogWriter.open(home.log_of(name), layout, _OPTIONS)
        self.instant = self._log.watermark or 0

    def append(self, *rows: tuple[int | None, float | None], note: str | None = "x") -> None:
        """Rows of rooms and values."""
        self.instant += 1
        self._append({"room": room, "v": v, "note": note} for room, v in rows)

    def change(self, *rows: tuple[int, int, float]) -> None:
        """Append changes of an answer: +1 or -1, a room and a value; they are final at once."""
        self.instant += 1
        self._append({DIFF: diff, "room": room, "v": v} for diff, room, v in rows)

    def _append(self, rows: Iterable[dict[str, Any]]) -> None:
        stamped = [{TIME: self.instant, **one} for one in rows]
        columns = [
            pa.array([one[name] for one in stamped], kind)
            for name, kind in zip(self._schema.names, self._schema.types, strict=True)
        ]
        batch = pa.RecordBatch.from_arrays(columns, schema=self._schema) if stamped else None
        self._log.append(batch, watermark=self.instant + 1)

    def drop_all(self) -> None:
        """Delete all rows, even those not read yet."""
        self._log.drop_oldest()

    def close(self) -> None:
        self._log.close()


def open_home(folder: Path) -> Home:
    return Home(folder, None, None, lambda rows, where: set())


def run(home: Home, sql: str) -> Outcome:
    read = read_one(sql)
    assert not isinstance(read, Statement)
    return run_statement(read, home, RunningQueries(home, _no_plans, 1))


def transitions(home: Home, name: str) -> list[tuple[str, str | None]]:
    """States and keys of an alert's history, the oldest first."""
    return [(one.state, one.key) for one in reversed(home.alerts.history(name, 1000))]


def _no_plans(*_: object) -> NoReturn:
    raise AssertionError("no query is planned here")
