"""Columns as CREATE declares them: a name and a type."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.types as pat
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from nilometer.errors import AmbiguousNameError, InputError, Place, SqlError, SqlTypeError
from nilometer.model.time_forms import EpochTimes, EpochUnit, TimeForm, WrittenTimes
from nilometer.sql.ddl.parts import ColumnDef
from nilometer.sql.ddl.statement_reader import StatementReader
from nilometer.sql.parse.cast_types import read_type

RESERVED: Final = ("_time", "_diff", "_sensor")
"""Names of columns that rows have without being declared."""

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
_UNITS_HINT: Final = "write SECONDS, MILLIS, MICROS or NANOS: ts TIMESTAMP FROM EPOCH MILLIS"
_DISTINCT_HINT: Final = "write a whole number, at least 1: room STRING DISTINCT 12"
MOST_DISTINCT: Final = 10**15
_PATTERN_HINT: Final = "write it as a text: ts TIMESTAMP FORMAT 'dd-MMM-yyyy H:mm:ss'"


@dataclass
class ColumnList:
    """Columns in order; no two have the same name, ignoring case."""

    definitions: list[ColumnDef] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)

    def add(self, column: ColumnDef) -> None:
        """Append a column to the others."""
        self.require_new(column)
        self.definitions.append(column)

    def require_new(self, column: ColumnDef) -> None:
        """Refuse a column that already exists; the name is taken from now on."""
        if column.name.lower() in RESERVED:
            raise SqlError(
                f"{column.name} cannot be the name of a column",
                place=column.place,
                detail="every row already has a column of that name",
                hint="choose another name",
            )
        before = self._names.get(column.name.lower())
        if before is not None:
            raise AmbiguousNameError(
                f"two columns are named {column.name}",
                place=column.place,
                detail=None if before == column.name else f"{before} differs only in case",
                hint="rename one of them",
            )
        self._names[column.name.lower()] = column.name

    def find(self, name: str) -> ColumnDef | None:
        """The column of that name, ignoring case."""
        return next((one for one in self.definitions if one.name.lower() == name.lower()), None)


def read_column(reader: StatementReader, hint: str, *, in_stream: bool = False) -> ColumnDef:
    """A column that must come next; that of a stream may declare how many values it has."""
    name, place = reader.name("the name of a column", hint)
    kind = _kind(reader, name)
    form = _form(reader, kind)
    distinct = _distinct(reader) if in_stream and reader.take("DISTINCT") else None
    if not (reader.at_end or reader.at(",") or reader.at(")")):
        reader.refuse(
            "expected , or ) after the column",
            hint="a column has only a name and a type",
        )
    return ColumnDef(name, kind, place, form, distinct)


def _distinct(reader: StatementReader) -> int:
    token = reader.current
    is_count = not reader.at_end and token.token_type == TokenType.NUMBER and token.text.isdecimal()
    if not is_count or not 1 <= int(token.text) <= MOST_DISTINCT:
        reader.refuse("expected the number of distinct values", hint=_DISTINCT_HINT)
    reader.go_on()
    return int(token.text)


def _form(reader: StatementReader, kind: pa.DataType) -> TimeForm | None:
    """How a TIMESTAMP is given: FROM EPOCH unit or FORMAT 'pattern', if one comes next."""
    first = reader.current if not reader.at_end else None
    if reader.take("FROM", "EPOCH"):
        word = reader.current.text.upper() if not reader.at_end else ""
        if word not in EpochUnit.__members__:
            reader.refuse("expected the unit of the numbers since 1970", hint=_UNITS_HINT)
        reader.go_on()
        form: TimeForm = EpochTimes(EpochUnit[word])
    elif reader.take("FORMAT"):
        form = _written(reader)
    else:
        return None
    if not pat.is_timestamp(kind.value_type if pat.is_list(kind) else kind):
        reader.refuse(
            "only a TIMESTAMP can have FROM EPOCH or FORMAT",
            hint="write ts TIMESTAMP FROM EPOCH SECONDS",
            at=first,
        )
    return form


def _written(reader: StatementReader) -> WrittenTimes:
    if reader.at_end or reader.current.token_type != TokenType.STRING:
        reader.refuse("expected the pattern of the times", hint=_PATTERN_HINT)
    token = reader.current
    reader.go_on()
    try:
        return WrittenTimes(token.text)
    except InputError as error:
        place = Place(reader.sql, token.start, token.end + 1)
        raise SqlError.at(place, error) from None


def _kind(reader: StatementReader, column: str) -> pa.DataType:
    first = reader.current
    tree = reader.type_tree()
    if tree is None:
        reader.refuse(f"expected the type of {column}", hint=_TYPES_HINT)
    place = Place(reader.sql, first.start, reader.last.end + 1)
    kind = _declared(tree)
    if tree.this is not exp.DType.DECIMAL and reader.last.token_type == TokenType.R_PAREN:
        if kind is not None and pat.is_string(kind):
            raise SqlTypeError(
                "text cannot have a maximum length", place=place, hint="write STRING"
            )
        kind = None
    if kind is None:
        text = " ".join(reader.sql[place.start : place.end].split())
        raise SqlTypeError(f"a column cannot be of type {text}", place=place, hint=_TYPES_HINT)
    return kind


def _declared(tree: exp.DataType) -> pa.DataType | None:
    """The type as written; None if columns cannot have it."""
    if tree.this is not exp.DType.ARRAY:
        return read_type(tree) or _TYPES.get(tree.this)
    item = _declared(tree.expressions[0]) if len(tree.expressions) == 1 else None
    return None if item is None else pa.list_(item)
