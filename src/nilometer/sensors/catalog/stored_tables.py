"""Static tables: their columns, and their rows in a few large pieces."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from sqlalchemy import Connection, delete, func, insert, select

from nilometer.log.layout import pack_schema, unpack_schema
from nilometer.sensors.catalog.arrow_values import fit_table, pack_table, unpack_table
from nilometer.sensors.catalog.schema import table_rows, tables

_SMALL: Final = 16_384
"""A last piece smaller than this takes further rows, so single INSERTs do not leave thousands."""


def store_table(connection: Connection, owner: int, columns: pa.Schema) -> None:
    connection.execute(insert(tables).values(owner=owner, columns=pack_schema(columns)))


def read_columns(connection: Connection, owner: int) -> pa.Schema:
    statement = select(tables.c.columns).where(tables.c.owner == owner)
    return unpack_schema(connection.execute(statement).scalar_one())


def read_rows(connection: Connection, owner: int) -> pa.Table:
    """All rows, in the order in which they were inserted."""
    schema = read_columns(connection, owner)
    statement = select(table_rows.c.content).where(table_rows.c.owner == owner)
    pieces = connection.execute(statement.order_by(table_rows.c.id)).scalars()
    return pa.concat_tables([schema.empty_table(), *map(unpack_table, pieces)]).combine_chunks()


def count_rows(connection: Connection, owner: int) -> int:
    statement = select(func.coalesce(func.sum(table_rows.c.row_count), 0))
    return int(connection.execute(statement.where(table_rows.c.owner == owner)).scalar_one())


def add_rows(connection: Connection, owner: int, rows: pa.Table) -> None:
    """Append rows to the existing ones."""
    rows = fit_table(rows, read_columns(connection, owner))
    if not rows.num_rows:
        return
    newest = select(table_rows).where(table_rows.c.owner == owner)
    last = connection.execute(newest.order_by(table_rows.c.id.desc()).limit(1)).one_or_none()
    if last is not None and len(last.content) < _SMALL:
        rows = pa.concat_tables([unpack_table(last.content), rows])
        connection.execute(delete(table_rows).where(table_rows.c.id == last.id))
    _store_piece(connection, owner, rows)


def replace_rows(connection: Connection, owner: int, rows: pa.Table) -> None:
    """Replace the existing rows by these."""
    rows = fit_table(rows, read_columns(connection, owner))
    connection.execute(delete(table_rows).where(table_rows.c.owner == owner))
    if rows.num_rows:
        _store_piece(connection, owner, rows)


def _store_piece(connection: Connection, owner: int, rows: pa.Table) -> None:
    piece = {"owner": owner, "row_count": rows.num_rows, "content": pack_table(rows)}
    connection.execute(insert(table_rows).values(piece))
