"""Days and hours of a time zone, as in Java, over columns of microseconds since 1970.

A local time that a clock skips is as much later as it skips; of two instants with the same local
time the earlier is meant.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nilometer.kernels.arithmetic_errors import overflow
from nilometer.kernels.arrays import Bools, Int64s, as_int64

INSTANT: Final = pa.timestamp("us", tz="UTC")
DAY: Final = 86_400_000_000
_BEGIN: Final = datetime(1970, 1, 1)
_LATE: Final = 2_114_380_800_000_000
"""The beginning of 2037."""
_CYCLE: Final = 146_097 * DAY
_LAST_KNOWN: Final = 253_370_764_800_000_000
"""The beginning of 9999."""
_MOST: Final = 2**63 - 2 * DAY


def micros_of(column: pa.Array) -> Int64s:
    """Instants as microseconds, NULLs as 0."""
    return as_int64(
        column.cast(pa.timestamp("us", tz=column.type.tz)).cast(pa.int64()).fill_null(0)
    )


def days_of(column: pa.Array) -> Int64s:
    """Dates as days since 1970, NULLs as 0."""
    days: Int64s = column.cast(pa.int32()).cast(pa.int64()).fill_null(0).to_numpy()
    return days


def instants(micros: Int64s, like: pa.Array | None = None) -> pa.Array:
    """Microseconds as instants, NULL where another column is."""
    return pa.array(micros, pa.int64(), mask=_nulls(like)).cast(INSTANT)


def dates(days: Int64s, like: pa.Array | None = None) -> pa.Array:
    """Days since 1970 as dates, NULL where another column is."""
    return pa.array(days, pa.int64(), mask=_nulls(like)).cast(pa.int32()).cast(pa.date32())


def _nulls(like: pa.Array | None) -> object:
    return None if like is None else like.is_null().to_numpy(zero_copy_only=False)


def to_local(micros: Int64s, zone: str) -> Int64s:
    """The local time of instants, as microseconds since its own 1970."""
    if zone == "UTC":
        return micros
    late = micros >= _LATE
    column = pa.array(np.where(late, 0, micros), pa.int64()).cast(pa.timestamp("us", tz=zone))
    local = as_int64(pc.local_timestamp(column).cast(pa.int64()))
    if not late.any():
        return local
    known = ZoneInfo(zone)
    later = [one + _offset(one, known, UTC) for one in micros[late].tolist()]
    return _with(local, late, later)


def to_instant(local: Int64s, zone: str) -> Int64s:
    """The instants of local times."""
    if zone == "UTC":
        return local
    late = local >= _LATE
    column = pa.array(np.where(late, 0, local), pa.int64()).cast(pa.timestamp("us"))
    instants = pc.assume_timezone(column, zone, ambiguous="earliest", nonexistent="earliest")
    micros = as_int64(instants.cast(pa.int64()))
    again = to_local(micros, zone)
    skipped: Int64s = np.where(late, 0, local) - again  # the gap that a clock skips
    micros = micros + skipped
    if not late.any():
        return micros
    known = ZoneInfo(zone)
    later = [one - _offset(one, known, None) for one in local[late].tolist()]
    return _with(micros, late, later)


def begin_of_1970(zone: str) -> int:
    """The instant at which 1970 began in a zone."""
    return int(to_instant(np.zeros(1, np.int64), zone)[0])


def _with(values: Int64s, places: Bools, others: list[int]) -> Int64s:
    if max(others) > _MOST:
        raise overflow()
    changed = values.copy()
    changed[places] = others
    return changed


def _offset(micros: int, zone: ZoneInfo, of: tzinfo | None) -> int:
    """The offset of a zone's clock in microseconds: at an instant (UTC) or a local time.

    Arrow does not know DST after 2037. The calendar repeats itself after 400 years.
    """
    beyond = max(0, -((_LAST_KNOWN - micros) // _CYCLE))
    within = micros - beyond * _CYCLE
    moment = _BEGIN + timedelta(microseconds=within)
    if of is None:
        offset = moment.replace(tzinfo=zone).utcoffset()
    else:
        offset = moment.replace(tzinfo=UTC).astimezone(zone).utcoffset()
    assert offset is not None
    return offset // timedelta(microseconds=1)


def civil(days: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Year, month and day of days since 1970."""
    dated = days.astype("datetime64[D]")
    months = dated.astype("datetime64[M]")
    years = dated.astype("datetime64[Y]")
    year = years.astype(np.int64) + 1970
    month = (months - years.astype("datetime64[M]")).astype(np.int64) + 1
    day = (dated - months.astype("datetime64[D]")).astype(np.int64) + 1
    return year, month, day


def days_from_civil(year: Int64s, month: Int64s, day: Int64s) -> Int64s:
    """Days since 1970 of a year, a month (which may be beyond 1 to 12) and a day of it."""
    months = (year - 1970) * 12 + (month - 1)
    first = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    days: Int64s = first + day - 1
    return days


def month_length(year: Int64s, month: Int64s) -> Int64s:
    """The number of days of months."""
    one = np.ones_like(year)
    return days_from_civil(year, month + 1, one) - days_from_civil(year, month, one)
