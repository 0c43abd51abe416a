"""What a user declares about a stream or a table, wherever its rows are stored."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.types as pat

from nilometer.errors import DurationError, InputError, SchemaError
from nilometer.kernels.expression_types import is_number, type_name
from nilometer.model.names import find_column
from nilometer.model.time import Duration, parse_signed_duration
from nilometer.model.time_forms import meanings
from nilometer.operators.watermarks import StreamClock
from nilometer.sql.catalog import Relation, Statistics

_OWN_NAMES: Final = ("_time", "_diff")


@dataclass(frozen=True)
class InputColumns:
    """The columns of a stream or a table before anything is declared about it."""

    columns: tuple[str, ...]
    types: tuple[pa.DataType | None, ...]
    """None: a type without an Arrow form."""
    is_streaming: bool = False


def describe_stream(
    name: str,
    source: InputColumns,
    time: str | None,
    lateness: Duration | None = None,
    idle: Duration | None = None,
    rate: float | None = None,
    distinct: Mapping[str, float] | None = None,
) -> Relation:
    """A stream; raises an error if its description is wrong."""
    if not source.is_streaming and time is None:
        raise InputError(
            f"{name} is static and has no time column",
            hint=f'name its time column, or make it a table: db.create_table("{name}", df)',
        )
    place = time_column(name, source, time)
    column = None if place is None else source.columns[place]
    _check_names(name, source.columns, column)
    return Relation(
        name,
        source.columns,
        source.types,
        column,
        replace(clock_of(name, {name: source}, lateness, idle), by_arrival=column is None),
        statistics=_statistics(name, source.columns, rate, distinct or {}),
    )


def end_column(name: str, source: InputColumns, start: str | None, end: str) -> str:
    """The column until which rows count, in its declared spelling."""
    place = time_column(name, source, end)
    assert place is not None
    if source.columns[place] == start:
        raise InputError(
            f"{end} cannot be both the start and the end of the rows of {name}",
            hint='name two columns: time=("start", "end")',
        )
    return source.columns[place]


def describe_table(name: str, source: InputColumns) -> Relation:
    """A static table."""
    if source.is_streaming:
        raise InputError(
            f"the table {name} cannot be streaming",
            hint=f'use db.create_stream("{name}", df, time="ts")',
        )
    _check_names(name, source.columns, None)
    return Relation(
        name, source.columns, source.types, clock=StreamClock(ended=True), is_table=True
    )


def time_column(stream: str, source: InputColumns, column: str | None) -> int | None:
    """The position of the time column; None: the arrival time."""
    if column is None:
        if not source.is_streaming:
            raise InputError(
                f"stream {stream} is static and has no time column",
                detail="a static input has no arrival time",
                hint=f'name its time column: time={{"{stream}": "ts"}}',
            )
        return None
    place = find_column(stream, source.columns, column)
    kind = source.types[place]
    if kind is None or not pat.is_timestamp(kind) or kind.tz is None:
        raise SchemaError(
            f"the time column {column} of stream {stream} must be a TIMESTAMP",
            detail="it is of another type" if kind is None else f"it is {type_name(kind)}",
            hint=f'for seconds since 1970 use col("{column}").cast("timestamp")'
            if kind is not None and is_number(kind)
            else f'convert it first, such as to_timestamp(col("{column}"))',
        )
    return place


def without_unit(
    stream: str, column: str, kind: str, value: float | Decimal | None = None
) -> SchemaError:
    """The refusal of a number whose unit is unknown."""
    return SchemaError(
        f"the time column {column} of stream {stream} must be a TIMESTAMP, or its unit must be "
        "given",
        detail=f"it is {kind}" + ("" if value is None else f": {meanings(value)}"),
        hint='for seconds since 1970 write epoch="s" (or "ms", "us", "ns"); '
        f"on the command line {column}[epoch s]",
    )


def clock_of(
    stream: str,
    inputs: Mapping[str, InputColumns],
    lateness: Duration | None,
    idle: Duration | None,
) -> StreamClock:
    """How the watermark of one of these streams follows its rows."""
    given = inputs[stream]
    if given.is_streaming:
        return StreamClock(
            0 if lateness is None else _length("lateness", stream, lateness),
            None if idle is None else _length("idle", stream, idle),
        )
    for what, length in (("lateness", lateness), ("idle", idle)):
        if length is not None:
            raise InputError(
                f"stream {stream} is static, so it cannot have {what}",
                detail="all its rows are there from the start; none can be late",
                hint=_only_for_streaming(what, inputs),
            )
    return StreamClock(ended=True)


def _only_for_streaming(what: str, inputs: Mapping[str, InputColumns]) -> str:
    live = next((n for n, one in inputs.items() if one.is_streaming), None)
    if live is None:
        return f"leave {what} out"
    return f'leave {what} out, or give it to streaming inputs only: {what}={{"{live}": "2s"}}'


def _length(what: str, stream: str, duration: Duration) -> int:
    length = parse_signed_duration(duration)
    if length < 0:
        raise DurationError(
            f"{what} cannot be negative", detail=f"got {duration!r} for stream {stream}"
        )
    return length


def _check_names(name: str, columns: Sequence[str], time: str | None) -> None:
    lowered = [column.lower() for column in columns]
    for column in columns:
        if lowered.count(column.lower()) > 1:
            raise InputError(f"{name} has two columns named {column}", hint="rename one of them")
        if column.lower() in _OWN_NAMES and column != time:
            raise InputError(
                f"a column of {name} is named {column}, which results already have",
                hint="rename it, or make it the time of the stream",
            )


def _statistics(
    name: str, columns: Sequence[str], rate: float | None, distinct: Mapping[str, float]
) -> Statistics:
    counts = {}
    for column, values in distinct.items():
        spelled = columns[find_column(name, columns, column)]
        if not values >= 1:
            raise InputError(
                f"column {column} of {name} has at least one value", detail=f"got {values!r}"
            )
        counts[spelled] = float(values)
    if rate is not None and not rate > 0:
        raise InputError(f"the rate of {name} must be positive", detail=f"got {rate!r}")
    return Statistics(rate, counts)


def check_function(name: str, function: object) -> None:
    """Refuse a value that cannot be called, or a name that statements cannot use."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise InputError(
            "a function name may only contain letters, digits and underscores",
            detail=f"got {name!r}",
        )
    if not callable(function):
        raise InputError(
            f"the function {name} is not callable", detail=f"got {type(function).__name__}"
        )


def no_such_return(name: str, returns: object) -> InputError:
    """The refusal of a type that a function cannot return."""
    return InputError(
        f"the function {name} cannot return {returns!r}",
        hint='name a type of Spark, such as returns="boolean" or returns="double"',
    )
