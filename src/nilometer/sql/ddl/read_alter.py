"""ALTER STREAM, SENSOR TABLE, TABLE, VIEW, QUERY and ALERT."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from nilometer.errors import Place, SqlSyntaxError
from nilometer.sql.ddl.nodes import AlterAlert, AlterQuery, AlterStream, ObjectKind, Rename
from nilometer.sql.ddl.parts import AddColumn, ColumnName, DropColumn, RenameColumn, SetOptions
from nilometer.sql.ddl.read_columns import read_column
from nilometer.sql.ddl.read_options import read_placed_options
from nilometer.sql.ddl.statement_reader import StatementReader

Altered = AlterQuery | AlterAlert | AlterStream | Rename

_ALTER: Final = (
    "write ALTER STREAM s, ALTER SENSOR TABLE s, ALTER TABLE t, ALTER VIEW v, ALTER QUERY q or "
    "ALTER ALERT a, and the change"
)
_QUERY: Final = "write ALTER QUERY q SET (results = '2GB')"
_KINDS: Final = (
    *(ObjectKind.STREAM, ObjectKind.SENSOR_TABLE, ObjectKind.TABLE, ObjectKind.VIEW),
    *(ObjectKind.QUERY, ObjectKind.ALERT),
)
_CHANGES: Final = {
    ObjectKind.STREAM: (
        "write ALTER STREAM s SET (idle = '30s'), ADD COLUMN c DOUBLE, RENAME COLUMN c TO d, "
        "DROP COLUMN c or RENAME TO n"
    ),
    ObjectKind.SENSOR_TABLE: (
        "write ALTER SENSOR TABLE s SET (idle = '30s'), ADD COLUMN floor INT, "
        "ADD COLUMN reading.c DOUBLE, RENAME COLUMN c TO d, DROP COLUMN c or RENAME TO n"
    ),
    ObjectKind.TABLE: (
        "write ALTER TABLE t RENAME TO n; to change columns, CREATE another TABLE and INSERT the "
        "rows there"
    ),
    ObjectKind.VIEW: "write ALTER VIEW v RENAME TO n, or CREATE OR REPLACE VIEW v AS SELECT …",
    ObjectKind.ALERT: "write ALTER ALERT a SET (silence = '1 hour') or ALTER ALERT a RENAME TO n",
    ObjectKind.QUERY: f"{_QUERY} or ALTER QUERY q RENAME TO n",
}


def read_alter(reader: StatementReader) -> Altered:
    """ALTER STREAM | SENSOR TABLE | TABLE | VIEW | QUERY | ALERT name, and the change."""
    reader.take("ALTER")
    kind = next((kind for kind in _KINDS if reader.take(*kind.split())), None)
    if kind is None:
        reader.refuse("expected what to alter", hint=_ALTER)
    hint = _CHANGES[kind]
    name, place = reader.name(f"the name of the {kind.lower()}", hint)
    if reader.take("RENAME", "TO"):
        to, to_place = reader.name("the new name", hint)
        statement: Altered = Rename(kind, name, to, place, to_place)
    elif kind in (ObjectKind.TABLE, ObjectKind.VIEW):
        reader.refuse(f"only the name of a {kind.lower()} can be altered", hint=hint)
    elif kind is ObjectKind.ALERT:
        reader.expect("SET", "SET and the options, or RENAME TO", hint)
        statement = AlterAlert(name, read_placed_options(reader, "SET", hint), place)
    elif kind is ObjectKind.QUERY:
        reader.expect("SET", "SET and the options, or RENAME TO", hint)
        statement = AlterQuery(name, read_placed_options(reader, "SET", _QUERY), place)
    else:
        statement = AlterStream(kind, name, _change(reader, kind, hint), place)
    reader.finish(hint)
    return statement


def _change(
    reader: StatementReader, kind: ObjectKind, hint: str
) -> SetOptions | AddColumn | DropColumn | RenameColumn:
    if reader.take("SET"):
        return SetOptions(read_placed_options(reader, "SET", hint))
    if reader.take("ADD"):
        reader.take("COLUMN")
        inside = _inside(reader, kind)
        column = read_column(reader, hint)
        return AddColumn(column, ColumnName(column.name, column.place, inside))
    if reader.take("DROP"):
        reader.take("COLUMN")
        return DropColumn(_column(reader, kind, hint))
    if reader.take("RENAME"):
        reader.take("COLUMN")
        name = _column(reader, kind, hint)
        reader.expect("TO", "TO and the new name", hint)
        to = _column(reader, kind, hint)
        if to.inside is not None and to.inside.lower() != (name.inside or "").lower():
            raise SqlSyntaxError(
                "the position of a column cannot be chosen", place=to.place, hint=hint
            )
        return RenameColumn(name, replace(to, inside=name.inside))
    return reader.refuse("expected what to change", hint=hint)


def _column(reader: StatementReader, kind: ObjectKind, hint: str) -> ColumnName:
    inside = _inside(reader, kind)
    name, place = reader.name("the name of a column", hint)
    return ColumnName(name, place, inside)


def _inside(reader: StatementReader, kind: ObjectKind) -> str | None:
    """The stream column of a sensor table before a dot, if that comes next."""
    following = reader.rest[:2]
    if len(following) < 2 or following[1].text != ".":
        return None
    first, dot = following
    if kind is not ObjectKind.SENSOR_TABLE:
        raise SqlSyntaxError(
            "columns of a stream have no fields",
            place=Place(reader.sql, first.start, dot.end + 1),
            hint=_CHANGES[kind],
        )
    reader.go_on()
    reader.go_on()
    return first.text
