"""What a user says about a stream or a table when it gets its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pyspark.sql import DataFrame

from nilometer.errors import InputError
from nilometer.model.time import Duration
from nilometer.operators.watermarks import StreamClock
from nilometer.spark.relations import arrow_types
from nilometer.spark.streams import Input, clock_of, find_column, time_column
from nilometer.sql.catalog import Relation, Statistics

_OWN_NAMES: Final = ("_time", "_diff")


def describe_stream(
    name: str,
    frame: DataFrame,
    time: str | None,
    lateness: Duration | None,
    idle: Duration | None,
    rate: float | None,
    distinct: Mapping[str, float] | None,
) -> Relation:
    """A stream; an error says what is wrong with its description."""
    given = Input(frame.schema, frame.isStreaming)
    if not given.is_streaming and time is None:
        raise InputError(
            f"{name} is static and has no time column",
            hint=f'name its time column, or make it a table: db.create_table("{name}", df)',
        )
    place = time_column(name, given, time)
    column = None if place is None else frame.columns[place]
    _check_names(name, frame, column)
    return Relation(
        name,
        tuple(frame.columns),
        arrow_types(frame.schema),
        column,
        replace(clock_of(name, {name: given}, lateness, idle), by_arrival=column is None),
        statistics=_statistics(name, frame, rate, distinct or {}),
    )


def end_column(name: str, frame: DataFrame, start: str | None, end: str) -> str:
    """The column until which rows count, as it is spelled."""
    place = time_column(name, Input(frame.schema, frame.isStreaming), end)
    assert place is not None
    if frame.columns[place] == start:
        raise InputError(
            f"{end} is the start and the end of the rows of {name}",
            hint='name two columns: time=("start", "end")',
        )
    return frame.columns[place]


def describe_table(name: str, frame: DataFrame) -> Relation:
    """A static table."""
    if frame.isStreaming:
        raise InputError(
            f"the table {name} cannot be streaming",
            hint=f'use db.create_stream("{name}", df, time="ts")',
        )
    _check_names(name, frame, None)
    return Relation(
        name,
        tuple(frame.columns),
        arrow_types(frame.schema),
        clock=StreamClock(ended=True),
        is_table=True,
    )


def _check_names(name: str, frame: DataFrame, time: str | None) -> None:
    lowered = [column.lower() for column in frame.columns]
    for column in frame.columns:
        if lowered.count(column.lower()) > 1:
            raise InputError(f"{name} has two columns named {column}", hint="rename one of them")
        if column.lower() in _OWN_NAMES and column != time:
            raise InputError(
                f"a column of {name} is named {column}, which results have of their own",
                hint="rename it, or make it the time of the stream",
            )


def _statistics(
    name: str, frame: DataFrame, rate: float | None, distinct: Mapping[str, float]
) -> Statistics:
    found = {}
    for column, values in distinct.items():
        spelled = frame.columns[find_column(name, frame.schema, column)]
        if not values >= 1:
            raise InputError(
                f"column {column} of {name} has at least one value", detail=f"got {values!r}"
            )
        found[spelled] = float(values)
    if rate is not None and not rate > 0:
        raise InputError(f"the rate of {name} must be positive", detail=f"got {rate!r}")
    return Statistics(rate, found)
