"""Declarations of streams and sensor tables as rows of the catalog."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Connection, Row, insert, update

from nilometer.log.layout import pack_schema, unpack_schema
from nilometer.sensors.catalog.schema import streams
from nilometer.sensors.catalog.stored_names import rows_of_kind
from nilometer.sensors.declaration import Declaration


def store_declaration(connection: Connection, owner: int, declared: Declaration) -> None:
    connection.execute(insert(streams).values({"owner": owner, **_row(declared)}))


def change_declaration(connection: Connection, owner: int, declared: Declaration) -> None:
    changed = update(streams).where(streams.c.owner == owner)
    connection.execute(changed.values(_row(declared)))


def _row(declared: Declaration) -> dict[str, object]:
    return {
        "readings": pack_schema(declared.readings),
        "stream_type": declared.stream_type,
        "options": json.dumps(dict(declared.options)),
        "time_column": declared.time,
        "end_column": declared.end,
        "lateness": declared.lateness,
        "idle": declared.idle,
        "every": declared.every,
        "history": declared.history,
        "static": None if declared.static is None else pack_schema(declared.static),
        "place": declared.place,
        "stream_column": declared.column,
    }


def read_declaration(connection: Connection, name: str) -> Declaration | None:
    return next((_declaration(row) for row in rows_of_kind(connection, streams, name)), None)


def read_declarations(connection: Connection) -> list[Declaration]:
    """All declarations, by name."""
    return [_declaration(row) for row in rows_of_kind(connection, streams)]


def _declaration(row: Row[Any]) -> Declaration:
    return Declaration(
        name=row.name,
        readings=unpack_schema(row.readings),
        stream_type=row.stream_type,
        options=json.loads(row.options),
        time=row.time_column,
        end=row.end_column,
        lateness=row.lateness,
        idle=row.idle,
        every=row.every,
        history=row.history,
        static=None if row.static is None else unpack_schema(row.static),
        place=row.place,
        column=row.stream_column,
    )
