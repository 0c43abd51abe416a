"""What CREATE STREAM and STREAM(…) declare: columns, TIME, LATENESS, IDLE, EVERY, FROM, WITH."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow.types as pat
from sqlglot.tokenizer_core import Token, TokenType

from nilometer.errors import Place, SqlError, SqlSyntaxError, SqlTypeError, UnknownNameError
from nilometer.kernels.expression_types import type_name
from nilometer.model.names import nearest
from nilometer.model.time import FOREVER
from nilometer.sql.ddl.parts import StreamDef
from nilometer.sql.ddl.read_columns import ColumnList, read_column
from nilometer.sql.ddl.read_options import read_options
from nilometer.sql.ddl.statement_reader import StatementReader

_TIME: Final = (
    "write TIME ts, where ts is a column of type TIMESTAMP, or TIME (start, end) where a row is "
    "valid from one to the other"
)
_LENGTHS: Final = {
    "LATENESS": "write LATENESS 5 SECONDS",
    "IDLE": "write IDLE 30 SECONDS or IDLE NEVER",
    "EVERY": "write EVERY 10 SECONDS",
    "HISTORY": "write HISTORY 30 DAYS or HISTORY FOREVER",
}
_LEAST: Final = {"LATENESS": 0, "IDLE": 1, "EVERY": 1, "HISTORY": 0}
_WITHOUT_END: Final = {"HISTORY": "FOREVER", "IDLE": "NEVER"}
"""The word for an unlimited length."""
_BEGIN_LENGTH: Final = (
    *(TokenType.NUMBER, TokenType.STRING, TokenType.INTERVAL, TokenType.DASH, TokenType.DOT),
)


@dataclass
class _Items:
    """The items of a list in parentheses, as they are read."""

    columns: ColumnList = field(default_factory=ColumnList)
    time: tuple[str, Place] | None = None
    end: tuple[str, Place] | None = None
    lengths: dict[str, int] = field(default_factory=dict)


def read_stream(reader: StatementReader, place: Place, hint: str) -> StreamDef:
    """(columns, TIME c, …) FROM type [WITH (…)]; the place is that of the preceding name."""
    items = _Items()
    reader.expect("(", "( and the columns", hint)
    while True:
        _item(reader, items, hint)
        if not reader.take(","):
            break
    reader.expect(")", ", or ) after the column", hint)
    if not items.columns.definitions:
        raise SqlSyntaxError("a stream must have at least one column", place=place, hint=hint)
    return StreamDef(
        tuple(items.columns.definitions),
        _stream_type(reader, hint),
        _options(reader),
        _time_column(items, items.time),
        _time_column(items, items.end),
        **_settings(items),
    )


def _settings(items: _Items) -> Mapping[str, Any]:
    return {word.lower(): length for word, length in items.lengths.items()}


def _item(reader: StatementReader, items: _Items, hint: str) -> None:
    first, *following = reader.rest[:2] or [reader.current]
    second = following[0] if following else None
    word = "" if first.token_type == TokenType.IDENTIFIER else first.text.upper()
    if word == "TIME" and second is not None and _names_time(reader, second, items.columns):
        reader.take(word)
        _require_once(reader, word, first, items.time is not None)
        if not reader.take("("):
            items.time = reader.name("the column that holds the time", _TIME)
            return
        items.time = reader.name("the column that holds the start", _TIME)
        reader.expect(",", ", and the column that holds the end", _TIME)
        items.end = reader.name("the column that holds the end", _TIME)
        reader.expect(")", ") after the end", _TIME)
    elif word in _LENGTHS and second is not None and _begins_length(word, second):
        reader.take(word)
        _require_once(reader, word, first, word in items.lengths)
        if word in _WITHOUT_END and reader.take(_WITHOUT_END[word]):
            items.lengths[word] = FOREVER
        else:
            items.lengths[word] = reader.length(word, _LEAST[word], _LENGTHS[word])
    else:
        items.columns.add(read_column(reader, hint, in_stream=True))


def _names_time(reader: StatementReader, second: Token, columns: ColumnList) -> bool:
    """Whether TIME x names the time column, rather than declaring a column `time` of type x."""
    is_type = second.token_type in reader.TYPE_TOKENS
    return not is_type or columns.find(second.text) is not None


def _begins_length(word: str, second: Token) -> bool:
    without_end = _WITHOUT_END.get(word, "FOREVER")
    return second.token_type in _BEGIN_LENGTH or second.text.upper() == without_end


def _require_once(reader: StatementReader, word: str, first: Token, is_there: bool) -> None:
    if is_there:
        place = Place(reader.sql, first.start, first.end + 1)
        raise SqlSyntaxError(f"{word} is given twice", place=place, hint="leave one of them out")


def _time_column(items: _Items, named: tuple[str, Place] | None) -> str | None:
    """A column that TIME names, as declared."""
    if named is None:
        return None
    name, place = named
    column = items.columns.find(name)
    if column is None:
        known = [one.name for one in items.columns.definitions]
        raise UnknownNameError(
            f"TIME names {name}, which is not a column",
            place=place,
            detail=f"the columns are {', '.join(known)}",
            hint=nearest(name, known) or f"declare it: {name} TIMESTAMP",
        )
    if not pat.is_timestamp(column.kind):
        raise SqlTypeError(
            "the time column must be of type TIMESTAMP",
            place=place,
            detail=f"{column.name} is of type {type_name(column.kind)}",
            hint=f"declare it: {column.name} TIMESTAMP",
        )
    if named is items.end and items.time is not None and items.time[0].lower() == name.lower():
        raise SqlError(
            f"{column.name} cannot be both the start and the end of a row", place=place, hint=_TIME
        )
    return column.name


def _stream_type(reader: StatementReader, hint: str) -> str:
    """FROM type, in lower case; a type with other characters is written as a string."""
    reader.expect("FROM", "FROM and the type of the stream", hint)
    token = reader.current
    if not reader.at_end and token.token_type == TokenType.STRING and token.text:
        reader.go_on()
        return token.text
    name, place = reader.name("the type of the stream", hint)
    if not name:
        raise SqlError("the type of the stream is empty", place=place, hint=hint)
    return name.lower()


def _options(reader: StatementReader) -> Mapping[str, str]:
    return read_options(reader) if reader.take("WITH") else {}
