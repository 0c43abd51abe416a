"""DATE plus days, DATE minus DATE, and dates beside intervals and instants, as Spark has them.

A date plus a number, or plus an interval that is written in days or weeks, is a date; a date plus
any other interval is an instant, counted from the date's midnight in the session's time zone.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.types as pat

from nilometer.errors import PredicateError, UnavailableError
from nilometer.kernels.arithmetic import as_type
from nilometer.kernels.arithmetic_errors import overflow
from nilometer.kernels.arrays import Int64s
from nilometer.kernels.cast_values import cast_values
from nilometer.kernels.expression_types import INTERVAL, type_name
from nilometer.kernels.local_days import add_locally
from nilometer.kernels.local_times import DAY, INSTANT, days_of
from nilometer.model.expressions import Interval, Operator

_DATE: Final = pa.date32()
_NUMBERS: Final = (pa.int8(), pa.int16(), pa.int32())


def date_result(
    operator: Operator, left: tuple[pa.DataType, object], right: tuple[pa.DataType, object]
) -> pa.DataType | None:
    """The type of a sum or a difference with dates, given types and constants; None without."""
    kinds = (left[0], right[0])
    if not operator.is_sum or _DATE not in kinds:
        return None
    if kinds[0] == _DATE and kinds[1] != _DATE:
        other, constant = right
    else:
        other, constant = left
    is_minus = operator is Operator.MINUS
    if is_minus and all(kind == _DATE or _is_instant(kind) for kind in kinds):
        return INTERVAL
    if is_minus and kinds[0] != _DATE:
        return None
    if other in _NUMBERS:
        return _DATE
    if other == pa.int64():
        raise PredicateError(
            "the number of days added to a DATE must be an INT",
            detail="got BIGINT: write d + CAST(n AS INT)",
        )
    if other != INTERVAL:
        return None
    if not isinstance(constant, Interval):
        raise UnavailableError(
            f"{type_name(_DATE)} {operator.value} a computed interval is not available",
            hint="write CAST(d AS TIMESTAMP) + …",
        )
    return _DATE if constant.in_days else INSTANT


def add_dates(
    operator: Operator, left: pa.Array, right: pa.Array, kind: pa.DataType, zone: str
) -> pa.Array:
    """The sum or difference, of the type that `date_result` gives."""
    if kind == _DATE:
        return _move(operator, left, right)
    left, right = (
        cast_values(one, INSTANT, zone) if one.type == _DATE else one for one in (left, right)
    )
    return add_locally(operator, left, right, zone)


def _move(operator: Operator, left: pa.Array, right: pa.Array) -> pa.Array:
    """Dates a number of days later, or earlier."""
    if left.type != _DATE:
        left, right = right, left
    numbers = right.cast(pa.int64()) if right.type == INTERVAL else as_type(right, pa.int64())
    more: Int64s = numbers.fill_null(0).to_numpy(zero_copy_only=False)
    if right.type == INTERVAL:
        more = more // DAY
    days = days_of(left) + (more if operator is Operator.PLUS else -more)
    if (abs(days) >= 2**31).any():
        raise overflow()
    both = left.is_valid().to_numpy(zero_copy_only=False) & right.is_valid().to_numpy(
        zero_copy_only=False
    )
    return pa.array(days, pa.int64(), mask=~both).cast(pa.int32()).cast(_DATE)


def _is_instant(kind: pa.DataType) -> bool:
    return bool(pat.is_timestamp(kind) and kind.tz)
