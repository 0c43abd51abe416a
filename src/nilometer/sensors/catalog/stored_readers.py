"""Readers of logs, as the manager last saw them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select

from nilometer.log.position import Position
from nilometer.sensors.catalog.schema import readers


@dataclass(frozen=True)
class SeenReader:
    """A reader of a log, and its position."""

    log: str
    """The stream, sensor table or query whose log it is."""
    reader: str
    where: str | None
    """Which sensors it reads, as a condition over the static columns; None: all."""
    position: Position
    active: bool
    seen: int
    """When it was last seen, in microseconds."""


def store_readers(connection: Connection, log: str, seen: Sequence[SeenReader]) -> None:
    """Replace the readers of this log."""
    forget_readers(connection, log)
    if seen:
        connection.execute(insert(readers), [_row(log, one) for one in seen])


def read_readers(connection: Connection, log: str | None) -> list[SeenReader]:
    """The readers of a log, or of all logs."""
    wanted = select(readers).order_by(readers.c.log, readers.c.reader)
    if log is not None:
        wanted = wanted.where(readers.c.log == log)
    return [_reader(row) for row in connection.execute(wanted)]


def forget_readers(connection: Connection, log: str) -> None:
    connection.execute(delete(readers).where(readers.c.log == log))


def _row(log: str, one: SeenReader) -> dict[str, object]:
    return {
        "log": log,
        "reader": one.reader,
        "condition": one.where,
        "position": json.dumps(one.position.to_json()),
        "active": one.active,
        "seen": one.seen,
    }


def _reader(row: Row[Any]) -> SeenReader:
    position = Position.from_json(json.loads(row.position))
    return SeenReader(row.log, row.reader, row.condition, position, row.active, row.seen)
