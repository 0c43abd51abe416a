"""Functions of dates and instants. Days and hours begin as in the session's time zone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
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
    Operand,
    day,
    instant,
    int32,
    text,
)
from nilometer.kernels.local_times import (
    DAY,
    INSTANT,
    civil,
    dates,
    days_from_civil,
    days_of,
    instants,
    micros_of,
    month_length,
    to_instant,
    to_local,
)

_INT: Final = pa.int32()
_LONG: Final = pa.int64()
_SECOND: Final = 1_000_000
_WEEKDAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_DAY_NAMES: Final = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
_FIXED: Final = {
    "MICROSECOND": 1,
    "MILLISECOND": 1000,
    "SECOND": _SECOND,
    "MINUTE": 60 * _SECOND,
    "HOUR": 3600 * _SECOND,
}
_MONTHS: Final = {
    **dict.fromkeys(("MONTH", "MON", "MM"), 1),
    "QUARTER": 3,
    **dict.fromkeys(("YEAR", "YYYY", "YY"), 12),
}
_DAYS: Final = ("DAY", "DD")


# Parts of dates


def masked(values: Int64s, applied: Applied, kind: pa.DataType = _INT) -> pa.Array:
    """Values of a type, NULL where an operand is."""
    return pa.array(values, mask=~applied.present()).cast(kind)


def _part(compute: Callable[[Int64s], Int64s]) -> Function:
    """An integer field of a date, computed from its days since 1970."""
    return Function(
        (day,), _INT, lambda applied: masked(compute(days_of(applied.columns[0])), applied)
    )


def _clock_part(compute: Callable[[Int64s], Int64s]) -> Function:
    """An integer field of an instant, computed from the microseconds of its day."""

    def run(applied: Applied) -> pa.Array:
        local = to_local(micros_of(applied.columns[0]), applied.zone)
        return masked(compute(local % DAY), applied)

    return Function((instant,), _INT, run, local=True)


def _year(days: Int64s) -> Int64s:
    return civil(days)[0]


def _month(days: Int64s) -> Int64s:
    return civil(days)[1]


def _day(days: Int64s) -> Int64s:
    return civil(days)[2]


def _quarter(days: Int64s) -> Int64s:
    return (_month(days) + 2) // 3


def _weekday(days: Int64s) -> Int64s:
    """0 is Monday."""
    return (days + 3) % 7


def _day_of_week(days: Int64s) -> Int64s:
    """1 is Sunday."""
    return (days + 4) % 7 + 1


def _iso_day(days: Int64s) -> Int64s:
    return _weekday(days) + 1


def _day_of_year(days: Int64s) -> Int64s:
    year = _year(days)
    one = np.ones_like(year)
    return days - days_from_civil(year, one, one) + 1


def _iso_year(days: Int64s) -> Int64s:
    """The year that the Thursday of the week is in."""
    return _year(days - _weekday(days) + 3)


def _week(days: Int64s) -> Int64s:
    """The week of ISO 8601."""
    return (_day_of_year(days - _weekday(days) + 3) - 1) // 7 + 1


_DATE_PARTS: Final[dict[str, Callable[[Int64s], Int64s]]] = {
    **dict.fromkeys(("YEAR", "Y", "YEARS", "YR", "YRS"), _year),
    "YEAROFWEEK": _iso_year,
    **dict.fromkeys(("QUARTER", "QTR"), _quarter),
    **dict.fromkeys(("MONTH", "MON", "MONS", "MONTHS"), _month),
    **dict.fromkeys(("WEEK", "W", "WEEKS"), _week),
    **dict.fromkeys(("DAY", "D", "DAYS"), _day),
    **dict.fromkeys(("DAYOFWEEK", "DOW"), _day_of_week),
    **dict.fromkeys(("DAYOFWEEK_ISO", "DOW_ISO"), _iso_day),
    "DOY": _day_of_year,
}
_CLOCK_PARTS: Final = {
    **dict.fromkeys(("HOUR", "H", "HOURS", "HR", "HRS"), 3600 * _SECOND),
    **dict.fromkeys(("MINUTE", "M", "MIN", "MINS", "MINUTES"), 60 * _SECOND),
}
_SECONDS: Final = ("SECOND", "S", "SEC", "SECONDS", "SECS")


def _check_part(name: str) -> None:
    if str(name).upper() not in (*_DATE_PARTS, *_CLOCK_PARTS, *_SECONDS):
        raise UnavailableError(
            f"the part {name} of a time is not available here",
            hint="unix_timestamp(ts) counts seconds since 1970, unix_millis(ts) milliseconds"
            if str(name).upper() == "EPOCH"
            else None,
        )


def _part_type(operands: Sequence[Operand]) -> pa.DataType:
    is_seconds = str(operands[0].constant).upper() in _SECONDS
    return pa.decimal128(8, 6) if is_seconds else _INT


def _date_part(applied: Applied) -> pa.Array:
    name = str(applied.constants[0]).upper()
    local = to_local(micros_of(applied.columns[1]), applied.zone)
    if name in _DATE_PARTS:
        return masked(_DATE_PARTS[name](local // DAY), applied)
    if name in _CLOCK_PARTS:
        unit = _CLOCK_PARTS[name]
        return masked(local % DAY // unit % (24 if unit == 3600 * _SECOND else 60), applied)
    micros = (local % (60 * _SECOND)).tolist()
    seconds = [Decimal(one).scaleb(-6) for one in micros]
    return pa.array(seconds, applied.kind, mask=~applied.present())


# Arithmetic of dates


def _add_days(sign: int) -> Function:
    def run(applied: Applied) -> pa.Array:
        start, by = applied.columns
        numbers = by.cast(_LONG).fill_null(0).to_numpy()
        return _as_dates(days_of(start) + sign * numbers, applied)

    return Function((day, int32), pa.date32(), run)


def _as_dates(days: Int64s, applied: Applied) -> pa.Array:
    present = applied.present()
    if (np.abs(np.where(present, days, 0)) >= 2**31).any():
        raise overflow()
    return pa.array(np.where(present, days, 0), _LONG, mask=~present).cast(_INT).cast(pa.date32())


def _date_diff(applied: Applied) -> pa.Array:
    return masked(days_of(applied.columns[0]) - days_of(applied.columns[1]), applied)


def plus_months(days: Int64s, months: Int64s) -> Int64s:
    """Days a number of months later, not past the end of the month."""
    year, month, date = civil(days)
    total = year * 12 + month - 1 + months
    year, month = total // 12, total % 12 + 1
    return days_from_civil(year, month, np.minimum(date, month_length(year, month)))


def _add_months(applied: Applied) -> pa.Array:
    start, by = applied.columns
    months = by.cast(_LONG).fill_null(0).to_numpy()
    return _as_dates(plus_months(days_of(start), months), applied)


def _last_day(applied: Applied) -> pa.Array:
    days = days_of(applied.columns[0])
    year, month, _ = civil(days)
    return dates(days_from_civil(year, month, month_length(year, month)), applied.columns[0])


def _check_weekday(name: str) -> None:
    if _weekday_number(name) is None:
        raise UnavailableError(
            f"{name} is not a day of the week", hint="write 'Monday', 'Mon' or 'Mo'"
        )


def _weekday_number(name: str) -> int | None:
    upper = str(name).upper()
    if len(upper) < 2 or upper[:2] not in _WEEKDAYS:
        return None
    place = _WEEKDAYS.index(upper[:2])
    full = _DAY_NAMES[place]
    return place if upper in (full[:2], full[:3], full) else None


def _next_day(applied: Applied) -> pa.Array:
    days = days_of(applied.columns[0])
    wanted = _weekday_number(applied.constants[1]) if applied.constants[1] is not None else 0
    assert wanted is not None
    ahead = (wanted - _weekday(days) - 1) % 7 + 1
    return _as_dates(days + ahead, applied)


def _months_between(applied: Applied) -> pa.Array:
    """Months of 31 days, by default rounded to eight digits."""
    micros = [micros_of(one) for one in applied.columns[:2]]
    first, second = (to_local(one, applied.zone) for one in micros)
    clocks = [
        (one - to_instant(local // DAY * DAY, applied.zone)) // _SECOND
        for one, local in zip(micros, (first, second), strict=True)
    ]
    rounds = True if len(applied.columns) < 3 else applied.constants[2]
    (year1, month1, day1), (year2, month2, day2) = civil(first // DAY), civil(second // DAY)
    months = ((year1 - year2) * 12 + month1 - month2).astype(np.float64)
    both_last = (day1 == month_length(year1, month1)) & (day2 == month_length(year2, month2))
    seconds = (day1 - day2) * 86400 + clocks[0] - clocks[1]
    result = months + seconds / (31 * 86400.0)
    if rounds:
        # Java's Math.round: half up
        result = np.floor(result * 1e8 + 0.5) / 1e8
    result = np.where((day1 == day2) | both_last, months, result)
    return pa.array(result, mask=~applied.present())


# Truncation


def _truncate_days(days: Int64s, unit: str) -> Int64s:
    if unit == "WEEK":
        return days - _weekday(days)
    if unit in _DAYS:
        return days
    year, month, _ = civil(days)
    size = _MONTHS[unit]
    return days_from_civil(year, (month - 1) // size * size + 1, np.ones_like(days))


def _check_trunc(name: str) -> None:
    if str(name).upper() not in (*_MONTHS, "WEEK"):
        raise UnavailableError(
            f"trunc to {name} is not available here",
            hint="write 'year', 'quarter', 'month' or 'week'",
        )


def _trunc(applied: Applied) -> pa.Array:
    unit = applied.constants[1]
    if unit is None:
        return pa.nulls(applied.size, pa.date32())
    return dates(_truncate_days(days_of(applied.columns[0]), str(unit).upper()), applied.columns[0])


def _check_date_trunc(name: str) -> None:
    if str(name).upper() not in (*_FIXED, *_MONTHS, *_DAYS, "WEEK"):
        raise UnavailableError(
            f"date_trunc to {name} is not available here",
            hint="write 'year', 'month', 'week', 'day', 'hour', 'minute' or 'second'",
        )


def _date_trunc(applied: Applied) -> pa.Array:
    unit = applied.constants[0]
    column = applied.columns[1]
    if unit is None:
        return pa.nulls(applied.size, INSTANT)
    return instants(truncate(micros_of(column), str(unit).upper(), applied.zone), column)


def truncate(micros: Int64s, unit: str, zone: str) -> Int64s:
    """The start of the unit of time that each instant is in."""
    local = to_local(micros, zone)
    size = _FIXED.get(unit)
    if size is None:
        return to_instant(_truncate_days(local // DAY, unit) * DAY, zone)
    # an hour that the clock repeats starts twice
    return micros - local % size


def _names(names: Sequence[str], compute: Callable[[Int64s], Int64s]) -> Function:
    def run(applied: Applied) -> pa.Array:
        texts = [names[one] for one in compute(days_of(applied.columns[0])).tolist()]
        return pa.array(texts, mask=~applied.present())

    return Function((day,), pa.string(), run)


_MONTH_NAMES: Final = (
    "Jan",
    "Feb",
    "Mar",
    "Apr",
    "May",
    "Jun",
    "Jul",
    "Aug",
    "Sep",
    "Oct",
    "Nov",
    "Dec",
)
_SHORT_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY_PART: Final = _part(_day)
_DATE_ADD: Final = _add_days(1)
_DATE_DIFF: Final = Function((day, day), _INT, _date_diff)
_DATE_PART: Final = Function(
    (text, instant), _part_type, _date_part, literals={0: _check_part}, local=True
)


def _bool_literal(value: Any) -> None:
    if not isinstance(value, bool):
        raise UnavailableError("months_between takes true or false as its third argument")


def _boolean(kind: pa.DataType) -> pa.DataType | None:
    return pa.bool_() if pat.is_boolean(kind) else None


FUNCTIONS: Final = {
    "year": _part(_year),
    "quarter": _part(_quarter),
    "month": _part(_month),
    "day": _DAY_PART,
    "dayofmonth": _DAY_PART,
    "dayofyear": _part(_day_of_year),
    "dayofweek": _part(_day_of_week),
    "weekday": _part(_weekday),
    "weekofyear": _part(_week),
    "hour": _clock_part(lambda micros: micros // (3600 * _SECOND)),
    "minute": _clock_part(lambda micros: micros // (60 * _SECOND) % 60),
    "second": _clock_part(lambda micros: micros // _SECOND % 60),
    "date_part": _DATE_PART,
    "datepart": _DATE_PART,
    "dayname": _names(_SHORT_DAYS, _weekday),
    "monthname": _names(_MONTH_NAMES, lambda days: _month(days) - 1),
    "date_add": _DATE_ADD,
    "dateadd": _DATE_ADD,
    "date_sub": _add_days(-1),
    "datediff": _DATE_DIFF,
    "date_diff": _DATE_DIFF,
    "add_months": Function((day, int32), pa.date32(), _add_months),
    "months_between": Function(
        (instant, instant, _boolean),
        pa.float64(),
        _months_between,
        optional=1,
        literals={2: _bool_literal},
        local=True,
    ),
    "last_day": Function((day,), pa.date32(), _last_day),
    "next_day": Function((day, text), pa.date32(), _next_day, literals={1: _check_weekday}),
    "trunc": Function((day, text), pa.date32(), _trunc, literals={1: _check_trunc}),
    "date_trunc": Function(
        (text, instant), INSTANT, _date_trunc, literals={0: _check_date_trunc}, local=True
    ),
}
