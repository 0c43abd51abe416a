"""Functions that turn numbers and strings into dates and instants, and back."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from nilometer.errors import PredicateError, UnavailableError
from nilometer.kernels.arithmetic import checked
from nilometer.kernels.arrays import Int64s
from nilometer.kernels.cast_values import cast_values
from nilometer.kernels.function_types import is_text
from nilometer.kernels.functions.function import (
    Applied,
    Function,
    day,
    each,
    instant,
    int32,
    int64,
    plain_text,
    text,
    tried,
)
from nilometer.kernels.functions.time_formats import TimeFormat, read_format
from nilometer.kernels.functions.times import masked
from nilometer.kernels.local_times import DAY, INSTANT, instants, micros_of, to_instant, to_local
from nilometer.kernels.read_texts import day_number, is_region

_INT: Final = pa.int32()
_LONG: Final = pa.int64()
_STRING: Final = pa.string()
_SECOND: Final = 1_000_000
_USUAL: Final = "yyyy-MM-dd HH:mm:ss"


def _make_date(year: int, month: int, date: int) -> int:
    days = day_number(year, month, date)
    if days is None:
        raise PredicateError(f"there is no day {year}-{month:02}-{date:02}")
    return days


def _make_dates(applied: Applied) -> pa.Array:
    days = each(_make_date)(Applied(applied.columns, applied.size, _INT, "", ()))
    return days.cast(pa.date32())


def _make_timestamp(applied: Applied) -> pa.Array:
    rows = zip(*(column.to_pylist() for column in applied.columns), strict=True)
    local = [None if any(v is None for v in row) else _local_micros(*row) for row in rows]
    known = np.array([0 if v is None else v for v in local], np.int64)
    return pa.array(to_instant(known, applied.zone), mask=~applied.present()).cast(INSTANT)


def _local_micros(year: int, month: int, date: int, hour: int, minute: int, second: Decimal) -> int:
    micros = int(second.scaleb(6))
    days = day_number(year, month, date)
    is_next = micros == 60 * _SECOND  # as in Postgres: the next minute
    is_clock = 0 <= hour < 24 and 0 <= minute < 60 and (0 <= micros < 60 * _SECOND or is_next)
    if days is None or not is_clock:
        raise PredicateError(
            f"there is no time {year}-{month:02}-{date:02} {hour:02}:{minute:02}:{second}"
        )
    return days * DAY + (hour * 60 + minute) * 60 * _SECOND + micros


def _seconds_decimal(kind: pa.DataType) -> pa.DataType | None:
    is_number = pat.is_signed_integer(kind) or pat.is_decimal(kind) or pat.is_null(kind)
    return pa.decimal128(16, 6) if is_number else None


def _epoch(unit: int) -> Function:
    return Function(
        (instant,),
        _LONG,
        lambda applied: masked(micros_of(applied.columns[0]) // unit, applied, _LONG),
    )


def _from_epoch(unit: int) -> Function:
    def run(applied: Applied) -> pa.Array:
        micros = checked(pc.multiply_checked, applied.columns[0], pa.scalar(unit))
        return micros.cast(INSTANT)

    return Function((_whole,), INSTANT, run)


def _whole(kind: pa.DataType) -> pa.DataType | None:
    return _LONG if pat.is_signed_integer(kind) or pat.is_null(kind) else None


def _from_seconds(applied: Applied) -> pa.Array:
    [column] = applied.columns
    if pat.is_floating(column.type):
        return each(_exact_micros)(Applied([column], applied.size, _LONG, "", ())).cast(INSTANT)
    return checked(pc.multiply_checked, column, pa.scalar(_SECOND)).cast(INSTANT)


def _exact_micros(seconds: float) -> int | None:
    if not np.isfinite(seconds):
        return None
    return max(-(2**63), min(int(seconds * 1e6), 2**63 - 1))  # as Java converts to a long


def _seconds(kind: pa.DataType) -> pa.DataType | None:
    return pa.float64() if pat.is_floating(kind) else _whole(kind)


def _check_zone(name: str) -> None:
    if name != "UTC" and not is_region(name):
        raise UnavailableError(
            f"the time zone {name} is not available here",
            hint="write, for example, 'Europe/Berlin'",
        )


def _shift_zone(convert: Callable[[Int64s, str], Int64s]) -> Function:
    def run(applied: Applied) -> pa.Array:
        column, zone = applied.columns[0], applied.constants[1]
        if zone is None:
            return pa.nulls(applied.size, INSTANT)
        return instants(convert(micros_of(column), zone), column)

    return Function((instant, text), INSTANT, run, literals={1: _check_zone})


# Formats


def _check_written(pattern: Any) -> None:
    read_format(pattern)


def _check_read(pattern: Any) -> None:
    read_format(pattern).require_readable()


def _write(column: pa.Array, pattern: str, applied: Applied) -> pa.Array:
    micros = micros_of(column)
    written = read_format(pattern).write(micros, to_local(micros, applied.zone))
    return pa.array(written, _STRING, mask=column.is_null().to_numpy(zero_copy_only=False))


def _date_format(applied: Applied) -> pa.Array:
    pattern = applied.constants[1]
    if pattern is None:
        return pa.nulls(applied.size, _STRING)
    return _write(applied.columns[0], pattern, applied)


def _from_unixtime(applied: Applied) -> pa.Array:
    pattern = applied.constants[1] if len(applied.columns) > 1 else _USUAL
    if pattern is None:
        return pa.nulls(applied.size, _STRING)
    seconds = applied.columns[0].fill_null(0).to_numpy()
    with np.errstate(over="ignore"):
        micros = seconds * np.int64(_SECOND)  # past the last instant as in Java
    return _write(instants(micros, applied.columns[0]), pattern, applied)


def _read(column: pa.Array, pattern: TimeFormat, zone: str) -> pa.Array:
    """The instants of strings in a given format."""
    local = [None if one is None else pattern.read(one) for one in column.to_pylist()]
    known = np.array([0 if one is None else one for one in local], np.int64)
    return instants(to_instant(known, zone), column)


def _to_timestamp(applied: Applied) -> pa.Array:
    column = applied.columns[0]
    if len(applied.columns) == 1 or not is_text(column.type):
        return cast_values(column, INSTANT, applied.zone)
    pattern = applied.constants[1]
    if pattern is None:
        return pa.nulls(applied.size, INSTANT)
    return _read(column, read_format(pattern), applied.zone)


def _to_date(applied: Applied) -> pa.Array:
    if len(applied.columns) == 1 or not is_text(applied.columns[0].type):
        return cast_values(applied.columns[0], pa.date32(), applied.zone)
    return cast_values(_to_timestamp(applied), pa.date32(), applied.zone)


def _unix_timestamp(applied: Applied) -> pa.Array:
    column = applied.columns[0]
    pattern = applied.constants[1] if len(applied.columns) > 1 else _USUAL
    if is_text(column.type):
        if pattern is None:
            return pa.nulls(applied.size, _LONG)
        column = _read(column, read_format(pattern), applied.zone)
    else:
        column = cast_values(column, INSTANT, applied.zone)
    micros = micros_of(column)
    seconds = np.sign(micros) * (np.abs(micros) // _SECOND)  # towards zero, as in Java
    return pa.array(seconds, mask=~applied.present())


def _time(kind: pa.DataType) -> pa.DataType | None:
    """A string, a date or an instant, unchanged."""
    is_usable = plain_text(kind) or pat.is_date32(kind) or (pat.is_timestamp(kind) and kind.tz)
    return (pa.string() if pat.is_null(kind) else kind) if is_usable else None


def _moment(kind: pa.DataType) -> pa.DataType | None:
    """A date or an instant; other formats of to_char are of numbers."""
    return None if is_text(kind) else instant(kind)


def _formatted(kind: pa.DataType, evaluate: Callable[[Applied], pa.Array]) -> Function:
    return Function(
        (_time, plain_text), kind, evaluate, optional=1, literals={1: _check_read}, local=True
    )


_MAKE_TIMESTAMP: Final = Function(
    (int32, int32, int32, int32, int32, _seconds_decimal), INSTANT, _make_timestamp, local=True
)
_UNIX_TIMESTAMP: Final = _formatted(_LONG, _unix_timestamp)
_TO_TIMESTAMP: Final = _formatted(INSTANT, _to_timestamp)

_DATE_FORMAT: Final = Function(
    (instant, plain_text), _STRING, _date_format, literals={1: _check_written}, local=True
)
_TO_CHAR: Final = Function(
    (_moment, plain_text), _STRING, _date_format, literals={1: _check_written}, local=True
)

FUNCTIONS: Final = {
    "make_date": Function((int32, int32, int32), pa.date32(), _make_dates),
    "make_timestamp": _MAKE_TIMESTAMP,
    "make_timestamp_ltz": _MAKE_TIMESTAMP,
    "unix_date": Function((day,), _INT, lambda applied: applied.columns[0].cast(_INT)),
    "date_from_unix_date": Function(
        (int32,), pa.date32(), lambda a: a.columns[0].cast(pa.date32())
    ),
    "unix_seconds": _epoch(_SECOND),
    "unix_millis": _epoch(1000),
    "unix_micros": _epoch(1),
    "timestamp_seconds": Function((_seconds,), INSTANT, _from_seconds),
    "timestamp_millis": _from_epoch(1000),
    "timestamp_micros": _from_epoch(1),
    "from_utc_timestamp": _shift_zone(to_local),
    "to_utc_timestamp": _shift_zone(to_instant),
    "date_format": _DATE_FORMAT,
    "to_char": _TO_CHAR,
    "to_varchar": _TO_CHAR,
    "from_unixtime": Function(
        (int64, plain_text),
        _STRING,
        _from_unixtime,
        optional=1,
        literals={1: _check_written},
        local=True,
    ),
    "to_timestamp": _TO_TIMESTAMP,
    "to_timestamp_ltz": _TO_TIMESTAMP,
    "try_to_timestamp": _formatted(INSTANT, tried(_to_timestamp)),
    "to_date": _formatted(pa.date32(), _to_date),
    "try_to_date": _formatted(pa.date32(), tried(_to_date)),
    "unix_timestamp": _UNIX_TIMESTAMP,
    "to_unix_timestamp": _UNIX_TIMESTAMP,
}
