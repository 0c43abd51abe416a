"""Example statements for the existing streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import pyarrow as pa
import pyarrow.types as pat

from nilometer.sensors.declaration import Declaration
from nilometer.server.console.chart_points import is_number
from nilometer.sql.expressions.scalars import quote_name

DEMO_STREAM: Final = """\
CREATE STREAM Weather (station STRING, temperature DOUBLE, wind DOUBLE)
FROM synthetic WITH (
  rate = 20,
  values = 'station=choice(harbour,hill,roof), temperature=normal(18,1.5), wind=walk(12,0.3)')"""
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyz_0123456789")


@dataclass(frozen=True)
class Example:
    """A statement and its purpose."""

    title: str
    text: str


@dataclass(frozen=True)
class Source:
    """A stream or sensor table as statements name it."""

    name: str
    value: str | None
    """A measured number; None: there is none."""
    value_name: str
    key: str | None
    """A column that distinguishes its readings."""
    time: str

    @classmethod
    def of(cls, declared: Declaration) -> Source:
        value = _measured(declared.readings, declared.time)
        if declared.static is None:
            key = _first_key(declared.readings, value)
            time = quote(declared.time or "_time")
            return cls(quote(declared.name), _quoted(value), value or "", _quoted(key), time)
        path = f"{quote(declared.column or '')}.{quote(value)}" if value else None
        key = _first_key(declared.static, None)
        return cls(quote(declared.name), path, value or "", _quoted(key), "_time")


def first_query(declared: Declaration) -> str:
    """A query over one stream whose answer changes immediately."""
    source = Source.of(declared)
    measured = f"AVG({source.value}) AS {quote(source.value_name)}" if source.value else None
    columns = [source.key, measured, "COUNT(*) AS readings"]
    lines = [
        f"SELECT   {', '.join(one for one in columns if one)}",
        f"FROM     {source.name} [RANGE 30 SECONDS]",
        f"GROUP BY {source.key}" if source.key else None,
        "EMIT CHANGES EVERY 1 SECOND",
    ]
    return "\n".join(one for one in lines if one)


def examples(declared: Sequence[Declaration]) -> list[Example]:
    """A few statements over these streams, simplest first."""
    listed = [
        Example(f"Readings of {one.name}, as they come", f"SELECT *\nFROM   {quote(one.name)}")
        for one in declared[:2]
    ]
    listed += [
        Example(f"{one.name}: the last 30 seconds", first_query(one)) for one in declared[:2]
    ]
    pair = next((two for two in combinations(declared, 2) if _shared(*two)), None)
    if pair is not None:
        listed += _of_two(*pair)
    return [*listed, Example("Streams and how they are doing", "SHOW STREAMS")]


def _of_two(first: Declaration, second: Declaration) -> list[Example]:
    key = quote(_shared(first, second) or "")
    a, b = Source.of(first), Source.of(second)
    joined = (
        f"SELECT A.{key}, A.{a.time} AS {quote(f'at_{first.name}')},"
        f" B.{b.time} AS {quote(f'at_{second.name}')}\n"
        f"FROM   {a.name} A, {b.name} B\n"
        f"WINDOW(A, B) = 5 SECONDS\n"
        f"WHERE  A.{key} = B.{key}"
    )
    absent = (
        f"SELECT {key} FROM {a.name} [RANGE 30 SECONDS]\nEXCEPT\n"
        f"SELECT {key} FROM {b.name} [RANGE 30 SECONDS]"
    )
    return [
        Example(f"{first.name} and {second.name} within 5 seconds", joined),
        Example(f"In {first.name}, but not in {second.name}", absent),
    ]


def _shared(first: Declaration, second: Declaration) -> str | None:
    """A column of both streams that may identify things."""
    if first.static is not None or second.static is not None:
        return None
    others = {one.name.lower(): one.type for one in second.readings}
    for one in first.readings:
        if others.get(one.name.lower()) == one.type and _is_key(one.type):
            return str(one.name)
    return None


def _measured(schema: pa.Schema, time: str | None) -> str | None:
    numbers = [one for one in schema if is_number(one.type) and one.name != time]
    numbers.sort(key=lambda one: pat.is_integer(one.type))
    return str(numbers[0].name) if numbers else None


def _first_key(schema: pa.Schema, value: str | None) -> str | None:
    keys = [one for one in schema if _is_key(one.type) and one.name != value]
    keys.sort(key=lambda one: pat.is_integer(one.type))
    return str(keys[0].name) if keys else None


def _is_key(kind: pa.DataType) -> bool:
    return bool(pat.is_string(kind) or pat.is_integer(kind))


def _quoted(name: str | None) -> str | None:
    return None if name is None else quote(name)


def quote(name: str) -> str:
    """A name as statements write it: in backquotes only if necessary.

    >>> quote("Wind"), quote("2nd floor")
    ('Wind', '`2nd floor`')
    """
    is_plain = set(name.lower()) <= _PLAIN and not name[:1].isdigit()
    return name if is_plain and name else quote_name(name)
