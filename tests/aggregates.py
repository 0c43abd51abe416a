"""Aggregates in plain Python, from all values of a group: fractions, sorted lists, and no state."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from nilometer.operators.change_specs import AggregateCall, AggregateFunction
from tests.changes import identity

F = AggregateFunction
_WIDE = Context(prec=100, rounding=ROUND_HALF_UP)


def naive_aggregate(
    call: AggregateCall, rows: Sequence[tuple[Any, ...]], types: Sequence[pa.DataType]
) -> Any:
    """The value of a call over the rows of a group."""
    if call.column is None:
        return len(rows)
    values = [row[call.column] for row in rows if row[call.column] is not None]
    if call.distinct:
        values = list({identity(value): value for value in values}.values())
    if call.function is F.COUNT:
        return len(values)
    if not values:
        return None
    kind = types[call.column]
    match call.function:
        case F.MIN:
            return min(values, key=order)
        case F.MAX:
            return max(values, key=order)
        case F.PERCENTILE:
            assert call.fraction is not None
            return _percentile(values, call.fraction)
        case F.SUM:
            return _sum(values, kind)
        case F.AVG:
            return _average(values, kind)
        case _:
            return _deviation(call.function, values)


def order(value: Any) -> Any:
    """A sort key for Spark's order: NaN is the largest, texts compare by their bytes."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


def _special(values: Sequence[Any]) -> float | None:
    odd = {str(v) for v in values if isinstance(v, float) and not math.isfinite(v)}
    if not odd:
        return None
    return math.nan if len(odd) > 1 or "nan" in odd else float(odd.pop())


def _sum(values: Sequence[Any], kind: pa.DataType) -> Any:
    if (odd := _special(values)) is not None:
        return odd
    if pat.is_duration(kind):
        return sum(values, timedelta())
    if pat.is_floating(kind):
        return math.fsum(values)
    total = sum((Fraction(value) for value in values), Fraction())
    return _decimal(total, kind.scale) if pat.is_decimal(kind) else int(total)


def _decimal(value: Fraction, scale: int) -> Decimal:
    doubled = abs(value) * 10**scale * 2
    whole = (math.floor(doubled) + 1) // 2
    return Decimal(whole if value >= 0 else -whole).scaleb(-scale, _WIDE)


def _average(values: Sequence[Any], kind: pa.DataType) -> Any:
    if (odd := _special(values)) is not None:
        return odd
    if pat.is_duration(kind):
        whole = sum(value // timedelta(microseconds=1) for value in values)
        return timedelta(microseconds=int(_decimal(Fraction(whole, len(values)), 0)))
    mean = sum((Fraction(value) for value in values), Fraction()) / len(values)
    return _decimal(mean, min(38, kind.scale + 4)) if pat.is_decimal(kind) else float(mean)


def _deviation(function: AggregateFunction, values: Sequence[Any]) -> float | None:
    sample = function in (F.VAR_SAMP, F.STDDEV_SAMP)
    if sample and len(values) == 1:
        return None
    if _special(values) is not None:
        return math.nan
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / len(exact)
    squares = sum((value - mean) ** 2 for value in exact)
    try:
        variance = float(squares / (len(exact) - 1 if sample else len(exact)))
    except OverflowError:
        variance = math.inf
    return math.sqrt(variance) if function in (F.STDDEV_SAMP, F.STDDEV_POP) else variance


def _percentile(values: Sequence[Any], fraction: float) -> float:
    ordered = sorted((float(value) for value in values), key=order)
    place = (len(ordered) - 1) * fraction
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    if identity(low) == identity(high):
        return low
    return (math.ceil(place) - place) * low + (place - math.floor(place)) * high


def close(left: Any, right: Any) -> bool:
    """Whether two values are the same; doubles may differ in the last digit."""
    if isinstance(left, float) and isinstance(right, float) and math.isfinite(left):
        return math.isclose(left, right, rel_tol=4e-16, abs_tol=5e-324)
    return bool(identity(left) == identity(right))
