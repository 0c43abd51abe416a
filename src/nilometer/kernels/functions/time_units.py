"""TIMESTAMPADD and TIMESTAMPDIFF, intervals of months, and TIME_BUCKET."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from nilometer.errors import UnavailableError
from nilometer.kernels.arithmetic_errors import overflow
from nilometer.kernels.arrays import Int64s
from nilometer.kernels.functions.function import (
    Applied,
    Function,
    instant,
    int32,
    int64,
    plain_text,
)
from nilometer.kernels.functions.times import masked, plus_months
from nilometer.kernels.local_days import plus_local
from nilometer.kernels.local_times import (
    DAY,
    INSTANT,
    begin_of_1970,
    civil,
    days_of,
    micros_of,
    to_instant,
    to_local,
)
from nilometer.model.expressions import Interval

_MONTHS: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_DAYS: Final = {"DAY": 1, "DAYOFYEAR": 1, "WEEK": 7}
_MICROS: Final = {
    "MICROSECOND": 1,
    "MILLISECOND": 1000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
}
UNITS: Final = frozenset({*_MONTHS, *_DAYS, *_MICROS})
_MOST: Final = 2**62


def _check(unit: Any) -> None:
    if unit not in UNITS:
        raise UnavailableError(
            f"unknown unit of time {unit}", hint=f"write one of {', '.join(sorted(UNITS))}"
        )


def _add(applied: Applied) -> pa.Array:
    unit = applied.constants[0]
    count = applied.columns[1].fill_null(0).to_numpy()
    micros = micros_of(applied.columns[2])
    if unit in _MICROS:
        return _instants(micros, count, _MICROS[unit], applied)
    local = to_local(micros, applied.zone)
    if unit in _DAYS:
        moved = _moved(local, count, _DAYS[unit] * DAY)
    else:
        if (np.abs(count) > 10_000_000).any():
            raise overflow()
        moved = plus_months(local // DAY, count * _MONTHS[unit]) * DAY + local % DAY
    return _masked(plus_local(micros, moved - local, applied.zone), applied)


def _masked(micros: Int64s, applied: Applied) -> pa.Array:
    return pa.array(micros, mask=~applied.present()).cast(INSTANT)


def _instants(micros: Int64s, count: Int64s, size: int, applied: Applied) -> pa.Array:
    return _masked(_moved(micros, count, size), applied)


def _moved(start: Int64s, count: Int64s, size: int) -> Int64s:
    far = np.abs(count.astype(np.float64)) * size + np.abs(start.astype(np.float64))
    if (far > _MOST).any():
        raise overflow()
    return start + count * size


def _diff(applied: Applied) -> pa.Array:
    """Whole units from the first to the second, by the local clock."""
    unit = applied.constants[0]
    first, last = (to_local(micros_of(one), applied.zone) for one in applied.columns[1:])
    if unit in _MONTHS:
        differences = _toward_zero(_months(first, last), _MONTHS[unit])
    elif unit in _DAYS:
        differences = _toward_zero(_toward_zero(last - first, DAY), _DAYS[unit])
    else:
        differences = _toward_zero(last - first, _MICROS[unit])
    return masked(differences, applied, pa.int64())


def _toward_zero(value: Int64s, size: int) -> Int64s:
    quotients: Int64s = np.sign(value) * (np.abs(value) // size)
    return quotients


def _months(first: Int64s, last: Int64s) -> Int64s:
    clocks = first % DAY, last % DAY
    start, end = first // DAY, last // DAY
    end = np.where((end > start) & (clocks[1] < clocks[0]), end - 1, end)
    end = np.where((end < start) & (clocks[1] > clocks[0]), end + 1, end)
    packed = [(year * 12 + month) * 32 + day for year, month, day in map(civil, (start, end))]
    return _toward_zero(packed[1] - packed[0], 32)


def _plus_months(applied: Applied) -> pa.Array:
    """A date or an instant a number of months later, not past the end of the month."""
    start, by = applied.columns
    count = by.cast(pa.int64()).fill_null(0).to_numpy()
    if pat.is_date32(start.type):
        days = plus_months(days_of(start), count)
        return pa.array(days, mask=~applied.present()).cast(pa.int32()).cast(pa.date32())
    micros = micros_of(start)
    local = to_local(micros, applied.zone)
    moved = plus_months(local // DAY, count) * DAY + local % DAY
    return _masked(plus_local(micros, moved - local, applied.zone), applied)


def _moment(kind: pa.DataType) -> pa.DataType | None:
    """A date or an instant, unchanged."""
    is_instant = pat.is_timestamp(kind) and bool(kind.tz)
    return kind if pat.is_date32(kind) or is_instant or pat.is_null(kind) else None


# Buckets


def _interval(kind: pa.DataType) -> pa.DataType | None:
    return kind if pat.is_duration(kind) else None


def _check_bucket(size: Any) -> None:
    if not isinstance(size, Interval) or size.microseconds <= 0:
        raise UnavailableError(
            "time_bucket needs a length above zero", hint="write INTERVAL '5' MINUTES"
        )
    if size.microseconds > DAY and size.microseconds % DAY:
        raise UnavailableError(
            "time_bucket of days and hours is not available here", hint="write whole days"
        )


def _bucket(applied: Applied) -> pa.Array:
    """The start of the length of time that an instant is in, counted from 1970."""
    size = applied.constants[0].microseconds
    micros = micros_of(applied.columns[1])
    if size % DAY:
        since = micros - begin_of_1970(applied.zone)
        return _masked(micros - since % size, applied)
    local = to_local(micros, applied.zone)
    return _masked(to_instant(local - local % size, applied.zone), applied)


FUNCTIONS: Final = {
    "+ months": Function((_moment, int32), lambda o: o[0].kind, _plus_months, local=True),
    "time_bucket": Function(
        (_interval, instant), INSTANT, _bucket, literals={0: _check_bucket}, local=True
    ),
    "timestampadd": Function(
        (plain_text, int64, instant), INSTANT, _add, literals={0: _check}, local=True
    ),
    "timestampdiff": Function(
        (plain_text, instant, instant), pa.int64(), _diff, literals={0: _check}, local=True
    ),
}
