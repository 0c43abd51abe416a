"""The statements that forms produce; users see them before they are run."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nilometer.errors import InputError
from nilometer.server.console.examples import quote
from nilometer.server.console.highlighted_sql import keywords
from nilometer.sql.expressions.scalars import quote_name

_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_NUMBERS: Final = ("INT", "BIGINT", "SMALLINT", "TINYINT", "LONG", "SHORT", "BYTE")
_FRACTIONS: Final = ("DOUBLE", "FLOAT", "REAL", "DECIMAL", "NUMERIC")
_READING: Final = "Reading"


@dataclass(frozen=True)
class Column:
    """A column in a form."""

    name: str
    kind: str


@dataclass(frozen=True)
class StreamForm:
    """The fields of a new stream; with static columns it is a sensor table."""

    name: str
    columns: str
    """A column on each line: name and type."""
    stream_type: str
    options: Mapping[str, str] = field(default_factory=dict)
    """Empty options are omitted."""
    time: str = ""
    """The column that holds the time; empty: the arrival time."""
    lateness: str = ""
    idle: str = ""
    history: str = ""
    static: str | None = None
    """The static columns of a sensor table, one on each line; None: a stream."""
    sensors: str = ""
    """Its first sensors: on each line the static values and the address."""


def text_literal(text: str) -> str:
    r"""A text as an SQL literal.

    >>> print(text_literal("it's a \\"))
    'it''s a \\'
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def written_name(name: str) -> str:
    """A name as statements write it: in backquotes if necessary.

    >>> written_name("Farm"), written_name("order"), written_name("2nd floor")
    ('Farm', '`order`', '`2nd floor`')
    """
    return quote_name(name) if name.upper() in set(keywords()) else quote(name)


def read_columns(text: str) -> list[Column]:
    """The columns in a form's lines: name and type.

    >>> read_columns("ts TIMESTAMP\\n\\nwind speed  DOUBLE")
    [Column(name='ts', kind='TIMESTAMP'), Column(name='wind speed', kind='DOUBLE')]
    """
    columns = []
    for line in text.splitlines():
        words = line.strip().rstrip(",")
        if not words:
            continue
        name, kind = _cut(words)
        if not name or not kind:
            raise InputError(
                "a column is a name and a type", detail=f"got {words}", hint="such as wind DOUBLE"
            )
        columns.append(Column(name, kind))
    return columns


def _cut(words: str) -> tuple[str, str]:
    """Name and type of a column; a type may contain spaces only within brackets."""
    bracket = re.search(r"\s+(\S+\s*[(<].*)$", words)
    if bracket is not None:
        return words[: bracket.start()].strip(), bracket[1]
    *names, kind = words.split()
    return words.removesuffix(kind).strip() if names else "", kind


def create_stream(form: StreamForm) -> str:
    """CREATE STREAM, or CREATE SENSOR TABLE with its first sensors."""
    _require_name(form.name)
    body = _stream_body(form)
    source = f"FROM {_type_name(form.stream_type)}{option_list(form.options)}"
    name = written_name(form.name.strip())
    if form.static is None:
        return f"CREATE STREAM {name} (\n  {body}\n)\n{source}"
    static = read_columns(form.static)
    if not static:
        raise InputError(
            "a sensor table has a column that distinguishes its sensors",
            hint="such as place STRING",
        )
    columns = ", ".join(f"{written_name(one.name)} {one.kind}" for one in static)
    made = (
        f"CREATE SENSOR TABLE {name} (\n  {columns},\n"
        f"  {_READING} STREAM(\n  {body}\n)\n{source}\n)"
    )
    if not form.sensors.strip():
        return made
    return f"{made};\n{insert_sensors(form.name.strip(), static, len(static), form.sensors)}"


def insert_sensors(table: str, static: Sequence[Column], place: int, lines: str) -> str:
    """INSERT of sensors, one on each line: its static values, then its address.

    `place` is the position of the address among the columns of the table.
    """
    rows = []
    for line in lines.splitlines():
        if not line.strip():
            continue
        values = [one.strip() for one in next(csv.reader([line], skipinitialspace=True))]
        if len(values) != len(static) + 1:
            wanted = ", ".join([*(one.name for one in static), "address"])
            raise InputError(
                "a sensor has a value for each column, and an address",
                detail=f"got {line.strip()}",
                hint=f"write {wanted}",
            )
        *static_values, address = values
        written = [
            _value(value, one.kind) for value, one in zip(static_values, static, strict=True)
        ]
        written.insert(place, text_literal(address))
        rows.append(f"({', '.join(written)})")
    if not rows:
        raise InputError("there is no sensor to add", hint="write one on each line")
    return f"INSERT INTO {written_name(table)} VALUES\n  " + ",\n  ".join(rows)


def create_delivery(name: str, query: str, unit: str, options: Mapping[str, str]) -> str:
    """CREATE DELIVERY."""
    _require_name(name)
    if not query:
        raise InputError("a delivery hands on the results of a query", hint="choose one")
    source, target = written_name(query), f"{_type_name(unit)}{option_list(options)}"
    return f"CREATE DELIVERY {written_name(name.strip())} FROM {source}\nTO {target}"


def change_delivery(verb: str, name: str) -> str:
    """START, STOP or DROP DELIVERY."""
    return f"{verb} DELIVERY {written_name(name)}"


def alter_limits(query: str, changed: Mapping[str, str]) -> str:
    """ALTER QUERY; an empty limit is removed."""
    if not changed:
        raise InputError("nothing has changed", hint="write another limit")
    limits = {name: value.strip() or "none" for name, value in changed.items()}
    parts = ", ".join(f"{name} = {text_literal(value)}" for name, value in limits.items())
    return f"ALTER QUERY {written_name(query)} SET ({parts})"


def option_lines(text: str) -> dict[str, str]:
    """Additional options, one on each line: name = value.

    >>> option_lines("interval = 5 s\\nunit=celsius")
    {'interval': '5 s', 'unit': 'celsius'}
    """
    options = {}
    for line in text.splitlines():
        if not line.strip():
            continue
        name, equals, value = (one.strip() for one in line.partition("="))
        if not equals or not name:
            raise InputError(
                "an option is name = value", detail=f"got {line.strip()}", hint="one on each line"
            )
        options[name] = value.strip("'")
    return options


def _stream_body(form: StreamForm) -> str:
    columns = read_columns(form.columns)
    if not columns:
        raise InputError(
            "a stream must have at least one column", hint="such as temperature DOUBLE"
        )
    parts = [f"{written_name(one.name)} {one.kind}" for one in columns]
    if form.time.strip():
        parts.append(f"TIME {written_name(form.time.strip())}")
    lengths = {"LATENESS": form.lateness, "IDLE": form.idle, "HISTORY": form.history}
    parts += [f"{word} {value.strip()}" for word, value in lengths.items() if value.strip()]
    return ", ".join(parts)


def option_list(options: Mapping[str, str]) -> str:
    """WITH and the options that are not empty, or an empty text."""
    filled = {name: value for name, value in options.items() if value.strip()}
    if not filled:
        return ""
    parts = ", ".join(f"{_option_name(name)} = {_option(value)}" for name, value in filled.items())
    return f" WITH ({parts})"


def _option(value: str) -> str:
    """A text literal, or a reference to a secret: `secret('NAME')`."""
    match = re.fullmatch(r"\s*secret\('([^'\\]+)'\)\s*", value)
    return f"secret('{match[1]}')" if match is not None else text_literal(value.strip())


def _option_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise InputError(f"{name} is not a valid option name", hint="letters, digits and _")
    return name


def _type_name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else text_literal(name)


def _value(text: str, kind: str) -> str:
    """A value of a row, by the type of its column."""
    if text.upper() == "NULL" or not text:
        return "NULL"
    upper = kind.upper()
    if upper.startswith((*_NUMBERS, *_FRACTIONS)):
        if _NUMBER.fullmatch(text):
            return text
        raise InputError(f"{text} is not a number", hint=f"the column is of type {kind}")
    if upper.startswith("BOOL") and text.upper() in ("TRUE", "FALSE"):
        return text.upper()
    return text_literal(text)


def _require_name(name: str) -> None:
    if not name.strip():
        raise InputError("it needs a name")
