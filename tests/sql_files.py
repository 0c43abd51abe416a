"""SQL test files, `tests/sql/*.test`: data, queries with their answers, plans, errors, as text.

A file is a list of records separated by blank lines; a line that begins with # is a comment.

    stream Camera1 time=ts          a stream that has ended: a line of columns with their types,
    ts TIMESTAMP, ObjID INT         then a line per row. Values have blanks between them; those
    0.5  7                          with blanks inside stand in ''. Times are [[hours:]minutes:]
    1:30 NULL                       seconds after 2026-01-01 00:00:00 UTC, structs are JSON.

    table Stores                    a static table: the same without a time
    StoreID INT, City STRING
    1 'West Lafayette'

    function similar boolean        a Python function that the runner knows, and what it returns

    query                           a statement, ---- and what DuckDB is asked for the same rows,
    SELECT A.ObjID FROM …           written by hand from the papers' definitions; later(a, b) is
    ----                            how many seconds b is later than a, apart(a, b) the same
    SELECT a.ObjID FROM …           without its sign. Then, for readers, ==== with the names of
    ==== ObjID                      the columns, and the rows in any order. The column _time
    7                               counts only where DuckDB or the names give it.

    query streamed                  also run as a streaming query, in two micro-batches

    answer at 0:30, 1:00            a statement whose answer changes, and what DuckDB is asked for
    SELECT SUM(v) AS s FROM …       the answer at each of these instants and around each change:
    ----                            recent(ts, s) is true of times at most s seconds back, past(ts)
    SELECT sum(v) FROM A            of all until now, now() is the instant, every(s) the last one
    WHERE recent(ts, 10)            that is a multiple of s seconds. Then, for readers, the answer
    ==== at s                       at each of the instants, which stands first in each row.
    0:30 7
    1:00 NULL

    answer streamed at 0:30, 1:00   also run as a streaming query: all before the last watermark

    plan                            a statement, ---- and lines that EXPLAIN answers with, among
    SELECT …                        others
    ----
    Windows: WINDOW(A, B) = 5s

    error                           a statement, ---- and the whole text of its error
    SELECT …
    ----
    there is no stream or table X
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pat

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
_VALUE: Final = re.compile(r"'((?:[^']|'')*)'|(\S+)")


@dataclass(frozen=True)
class Record:
    """A record and its location: file:line."""

    place: str


@dataclass(frozen=True)
class Relation(Record):
    """A stream, or a table if it has no time."""

    name: str
    time: str | None
    columns: str
    rows: tuple[str, ...]


@dataclass(frozen=True)
class Function(Record):
    name: str
    returns: str


@dataclass(frozen=True)
class Query(Record):
    statement: str
    oracle: str
    names: tuple[str, ...] | None
    """The names of the columns, if they are given; then `rows` are, too."""
    rows: tuple[str, ...]
    streamed: bool


@dataclass(frozen=True)
class ChangingQuery(Query):
    """A query whose rows, if they are given, begin with the instant."""

    instants: tuple[datetime, ...]


@dataclass(frozen=True)
class Plan(Record):
    statement: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Failure(Record):
    statement: str
    text: str


class SqlFileError(Exception):
    """A test file that cannot be read."""


def read_file(file: Path) -> list[Record]:
    """The records of a file, in order."""
    return [_record(f"{file.name}:{number}", lines) for number, lines in _split(file)]


def _split(file: Path) -> Iterator[tuple[int, list[str]]]:
    start, lines = 0, []
    for number, line in enumerate([*file.read_text().splitlines(), ""], start=1):
        if line.startswith("#"):
            continue
        if line.strip():
            start = start if lines else number
            lines.append(line)
        elif lines:
            yield start, lines
            lines = []


def _record(place: str, lines: list[str]) -> Record:
    match lines[0].split():
        case ["stream", name, time] if time.startswith("time=") and len(lines) > 1:
            return Relation(place, name, time.removeprefix("time="), lines[1], tuple(lines[2:]))
        case ["table", name] if len(lines) > 1:
            return Relation(place, name, None, lines[1], tuple(lines[2:]))
        case ["function", name, returns] if len(lines) == 1:
            return Function(place, name, returns)
        case ["query", *how] if how in ([], ["streamed"]) and "----" in lines:
            return _query(place, lines[1:], bool(how))
        case ["answer", "streamed", "at", *instants] if instants and "----" in lines:
            return _changing_query(place, lines[1:], instants, streamed=True)
        case ["answer", "at", *instants] if instants and "----" in lines:
            return _changing_query(place, lines[1:], instants, streamed=False)
        case ["plan"] if "----" in lines:
            statement, rest = _cut(lines[1:])
            return Plan(place, statement, tuple(rest))
        case ["error"] if "----" in lines:
            statement, rest = _cut(lines[1:])
            return Failure(place, statement, "\n".join(rest))
    raise SqlFileError(f"{place}: cannot read this record: {lines[0]}")


def _cut(lines: list[str]) -> tuple[str, list[str]]:
    """The statement before ----, and the lines after it."""
    end = lines.index("----")
    return "\n".join(lines[:end]), lines[end + 1 :]


def _query(place: str, lines: list[str], streamed: bool) -> Query:
    statement, rest = _cut(lines)
    marks = [number for number, line in enumerate(rest) if line.startswith("====")]
    if not marks:
        return Query(place, statement, "\n".join(rest), None, (), streamed)
    names, rows = tuple(rest[marks[0]].split()[1:]), tuple(rest[marks[0] + 1 :])
    return Query(place, statement, "\n".join(rest[: marks[0]]), names, rows, streamed)


def _changing_query(
    place: str, lines: list[str], instants: list[str], *, streamed: bool
) -> ChangingQuery:
    query = _query(place, lines, streamed)
    return ChangingQuery(
        place,
        query.statement,
        query.oracle,
        query.names,
        query.rows,
        streamed,
        tuple(_instant(text.removesuffix(",")) for text in instants),
    )


def read_rows(relation: Relation, schema: pa.Schema) -> pa.Table:
    """The rows of a stream or table."""
    rows = [_values(relation, row, len(schema)) for row in relation.rows]
    columns = [
        pa.array([_read(row[number], field.type) for row in rows], field.type)
        for number, field in enumerate(schema)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _values(relation: Relation, row: str, count: int) -> list[str | None]:
    values = [_unquote(match) for match in _VALUE.finditer(row)]
    if len(values) != count:
        raise SqlFileError(f"{relation.place}: expected {count} values in the row {row}")
    return values


def _unquote(match: re.Match[str]) -> str | None:
    quoted, plain = match.groups()
    if quoted is not None:
        return quoted.replace("''", "'")
    return None if plain == "NULL" else plain


def _read(text: str | None, kind: pa.DataType) -> Any:
    if text is None:
        return None
    if pat.is_timestamp(kind):
        return _instant(text)
    if pat.is_nested(kind):
        return json.loads(text)
    if pat.is_boolean(kind):
        return {"true": True, "false": False}[text]
    if pat.is_date(kind):
        return date.fromisoformat(text)
    if pat.is_decimal(kind):
        return Decimal(text)
    if pat.is_floating(kind):
        return float(text)
    return int(text) if pat.is_integer(kind) else text


def _instant(text: str) -> datetime:
    seconds = Decimal(0)
    for part in text.split(":"):
        seconds = seconds * 60 + Decimal(part)
    return START + timedelta(microseconds=int(seconds * 1_000_000))


def spell_rows(rows: Iterable[Sequence[Any]]) -> list[str]:
    """Rows as a file writes them, sorted: equal values are written alike, whatever their types."""
    return sorted(" ".join(map(_spell, row)) for row in rows)


def tidy_rows(rows: Sequence[str]) -> list[str]:
    """Rows as they are in a file, in the spelling of `spell_rows`."""
    return sorted(" ".join(match[0] for match in _VALUE.finditer(row)) for row in rows)


def _spell(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case datetime():
            return _spell_instant(value)
        case Decimal():
            return f"{value.normalize() + 0:f}"
        case float():
            return repr(value).removesuffix(".0")
        case dict() | list():
            return json.dumps(value, separators=(",", ":"), default=_spell)
        case str() if not value or " " in value or "'" in value or value == "NULL":
            return "'" + value.replace("'", "''") + "'"
    return str(value)


def _spell_instant(value: datetime) -> str:
    """A time such as 1:30.5 for ninety and a half seconds, 1:00:00 for an hour."""
    utc = value if value.tzinfo else value.replace(tzinfo=UTC)
    micros = (utc - START) // timedelta(microseconds=1)
    sign, micros = ("-", -micros) if micros < 0 else ("", micros)
    seconds, rest = divmod(micros, 1_000_000)
    part = f".{rest:06d}".rstrip("0") if rest else ""
    hours, minutes = seconds // 3600, seconds // 60 % 60
    if hours:
        return f"{sign}{hours}:{minutes:02d}:{seconds % 60:02d}{part}"
    if minutes:
        return f"{sign}{minutes}:{seconds % 60:02d}{part}"
    return f"{sign}{seconds}{part}"
