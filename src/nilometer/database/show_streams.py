"""SHOW STREAMS: the declarations, and the status of each stream's log."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from nilometer.database.home import Home
from nilometer.log.layout import TIMESTAMP
from nilometer.sensors.catalog.execute import execute
from nilometer.sensors.catalog.outcome import Outcome
from nilometer.sql.ddl.nodes import Show

_DOING: Final = {
    "sensors": pa.int64(),
    "connected": pa.int64(),
    "readers": pa.int64(),
    "rows": pa.int64(),
    "stored_bytes": pa.int64(),
    "watermark": TIMESTAMP,
    "lag": pa.duration("us"),
    "held_by": pa.string(),
    "silent": pa.int64(),
    "silent_since": TIMESTAMP,
    "last_arrival": TIMESTAMP,
    "dead_letters": pa.int64(),
    "dropped": pa.int64(),
    "backlog": pa.int64(),
    "behind": pa.int64(),
    "durability": pa.string(),
    "unshipped": pa.int64(),
    "unshipped_since": TIMESTAMP,
    "full": pa.bool_(),
    "error": pa.string(),
}
"""The columns that the manager reports for a stream, by the names of its status."""


def show_streams(statement: Show, home: Home) -> Outcome:
    """All streams and sensor tables, with their status from the manager."""
    outcome = execute(home.catalog, statement)
    assert outcome.rows is not None
    rows = outcome.rows
    statuses = {one.name: one for one in home.manager.streams()}
    names = rows.column("name").to_pylist()
    shown = [statuses.get(name) for name in names]
    for name, kind in _DOING.items():
        values = [None if one is None else getattr(one, name) for one in shown]
        if name == "error":
            values = [_broken(home, *one) for one in zip(names, values, strict=True)]
        rows = rows.append_column(name, pa.array(values, kind))
    return Outcome(outcome.message, rows)


def _broken(home: Home, stream: str, error: str | None) -> str | None:
    """Why the log of a stream cannot be used, or else the trouble that the manager reports."""
    reason = home.broken.get(stream)
    return error if reason is None else f"{reason.message}: {reason.detail}"
