"""INSERT, UPDATE and DELETE."""

from __future__ import annotations

from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from nilometer.errors import AmbiguousNameError, Place, SqlError
from nilometer.sql.ddl.constants import constant_value
from nilometer.sql.ddl.nodes import Delete, Insert, Update
from nilometer.sql.ddl.statement_reader import StatementReader

_INSERT: Final = "write INSERT INTO t VALUES (1, 'hall'), (2, 'roof')"
_UPDATE: Final = "write UPDATE t SET a = 1 WHERE …"
_DELETE: Final = "write DELETE FROM t WHERE …"


def read_insert(reader: StatementReader) -> Insert:
    """INSERT INTO table [(columns)] VALUES (…), …"""
    reader.take("INSERT")
    reader.expect("INTO", "INTO after INSERT", _INSERT)
    reader.take("TABLE")
    table, place = reader.name("the name of a table", _INSERT)
    columns = _columns(reader) if reader.at("(") else None
    if reader.at("SELECT") or reader.at("WITH"):
        reader.refuse("rows can only be inserted with VALUES", hint=_INSERT)
    reader.expect("VALUES", "VALUES and the rows", _INSERT)
    rows: list[tuple[object, ...]] = []
    places: list[Place] = []
    while True:
        row, row_place = _row(reader)
        wanted = len(rows[0] if columns is None and rows else columns or row)
        if len(row) != wanted:
            raise _other_length(row_place, len(row), wanted, columns is not None)
        rows.append(row)
        places.append(row_place)
        if not reader.take(","):
            break
    reader.finish(_INSERT)
    return Insert(table, columns, tuple(rows), reader.sql, place, tuple(places))


def _other_length(place: Place, got: int, wanted: int, named: bool) -> SqlError:
    values = "1 value" if got == 1 else f"{got} values"
    others = f"{wanted} columns are named" if named else f"the first row has {wanted}"
    return SqlError(
        f"the row has {values}, but {others}",
        place=place,
        hint="give every column a value, NULL if there is none",
    )


def _columns(reader: StatementReader) -> tuple[str, ...]:
    reader.take("(")
    names: list[str] = []
    while True:
        name, place = reader.name("the name of a column", _INSERT)
        if name.lower() in [one.lower() for one in names]:
            raise AmbiguousNameError(
                f"column {name} is named twice", place=place, hint="leave one of them out"
            )
        names.append(name)
        if not reader.take(","):
            break
    reader.expect(")", ", or ) after the column", _INSERT)
    return tuple(names)


def _row(reader: StatementReader) -> tuple[tuple[object, ...], Place]:
    first = reader.current
    reader.expect("(", "( and the values of a row", _INSERT)
    values: list[object] = []
    while True:
        tree = reader.value("a value", _INSERT)
        values.append(constant_value(tree, reader.sql))
        if not reader.take(","):
            break
    reader.expect(")", ", or ) after the value", _INSERT)
    return tuple(values), Place(reader.sql, first.start, reader.last.end + 1)


def read_update(reader: StatementReader) -> Update:
    """UPDATE table SET column = expression, … [WHERE condition]."""
    reader.take("UPDATE")
    table, place = reader.name("the name of a table", _UPDATE)
    reader.expect("SET", "SET and the new values", _UPDATE)
    assignments: dict[str, exp.Expr] = {}
    while True:
        name, name_place = reader.name("the name of a column", _UPDATE)
        if name.lower() in [one.lower() for one in assignments]:
            raise AmbiguousNameError(
                f"column {name} is set twice", place=name_place, hint="leave one of them out"
            )
        reader.expect("=", f"= and the new value of {name}", _UPDATE)
        assignments[name] = reader.value("a value", _UPDATE)
        if not reader.take(","):
            break
    condition = _where(reader, _UPDATE)
    return Update(table, assignments, condition, reader.sql, place)


def read_delete(reader: StatementReader) -> Delete:
    """DELETE FROM table [WHERE condition]."""
    reader.take("DELETE")
    reader.expect("FROM", "FROM after DELETE", _DELETE)
    table, place = reader.name("the name of a table", _DELETE)
    return Delete(table, _where(reader, _DELETE), reader.sql, place)


def _where(reader: StatementReader, hint: str) -> exp.Expr | None:
    """[WHERE condition], then the end of the statement."""
    condition = None
    if not reader.at_end and reader.current.token_type == TokenType.WHERE:
        reader.go_on()
        condition = reader.value("a condition", hint)
    reader.finish(hint)
    return condition
