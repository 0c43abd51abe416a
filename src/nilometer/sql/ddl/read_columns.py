"""Columns as CREATE declares them: a name and a type."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.types as pat
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from nilometer.errors import AmbiguousNameError, Place, SqlError, SqlTypeError
from nilometer.sql.cast_types import read_type
from nilometer.sql.ddl.nodes import ColumnDef
from nilometer.sql.ddl.statement_reader import StatementReader

RESERVED: Final = ("_time", "_diff", "_sensor")
"""Names of columns that rows have without being told."""

_TYPES: Final[dict[exp.DType, pa.DataType]] = {
    exp.DType.DATE: pa.date32(),
    exp.DType.TIMESTAMPTZ: pa.timestamp("us", tz="UTC"),
    exp.DType.TIMESTAMPLTZ: pa.timestamp("us", tz="UTC"),
    exp.DType.BINARY: pa.binary(),
}
_TYPES_HINT: Final = (
    "write a type such as INT, BIGINT, DOUBLE, DECIMAL(10, 2), BOOLEAN, STRING, DATE, TIMESTAMP, "
    "ARRAY<DOUBLE>"
)


@dataclass
class ColumnList:
    """Columns in their order; no two have the same name, in any case."""

    found: list[ColumnDef] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)

    def add(self, column: ColumnDef) -> None:
        """Put a column behind the others."""
        self.require_new(column)
        self.found.append(column)

    def require_new(self, column: ColumnDef) -> None:
        """Refuse a column that is there already; the name is taken from now on."""
        if column.name.lower() in RESERVED:
            raise SqlError(
                f"{column.name} cannot be the name of a column",
                place=column.place,
                detail="rows have a column of that name by themselves",
                hint="choose another name",
            )
        before = self._names.get(column.name.lower())
        if before is not None:
            raise AmbiguousNameError(
                f"two columns are named {column.name}",
                place=column.place,
                detail=None if before == column.name else f"{before} is the same in any case",
                hint="rename one of them",
            )
        self._names[column.name.lower()] = column.name

    def find(self, name: str) -> ColumnDef | None:
        """The column of that name, in any case."""
        return next((one for one in self.found if one.name.lower() == name.lower()), None)


def read_column(reader: StatementReader, hint: str) -> ColumnDef:
    """A column that must come next."""
    name, place = reader.name("the name of a column", hint)
    kind = _kind(reader, name)
    if not (reader.at_end or reader.at(",") or reader.at(")")):
        reader.refuse(
            "expected , or ) after the column",
            hint="a column has a name and a type, and nothing else",
        )
    return ColumnDef(name, kind, place)


def _kind(reader: StatementReader, column: str) -> pa.DataType:
    first = reader.current
    tree = reader.type_tree()
    if tree is None:
        reader.refuse(f"expected the type of {column}", hint=_TYPES_HINT)
    place = Place(reader.sql, first.start, reader.last.end + 1)
    kind = _declared(tree)
    if tree.this is not exp.DType.DECIMAL and reader.last.token_type == TokenType.R_PAREN:
        if kind is not None and pat.is_string(kind):
            raise SqlTypeError("texts have no greatest length", place=place, hint="write STRING")
        kind = None
    if kind is None:
        text = " ".join(reader.sql[place.start : place.end].split())
        raise SqlTypeError(f"a column cannot be of type {text}", place=place, hint=_TYPES_HINT)
    return kind


def _declared(tree: exp.DataType) -> pa.DataType | None:
    """The type that is written; None if columns have no such type."""
    if tree.this is not exp.DType.ARRAY:
        return read_type(tree) or _TYPES.get(tree.this)
    item = _declared(tree.expressions[0]) if len(tree.expressions) == 1 else None
    return None if item is None else pa.list_(item)
