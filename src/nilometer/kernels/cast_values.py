"""CAST as in Spark (ANSI): between numbers, booleans, times and texts."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from nilometer.kernels.arithmetic import as_type, checked
from nilometer.kernels.arithmetic_errors import overflow
from nilometer.kernels.arrays import Int64s, as_floating
from nilometer.kernels.attempt import attempt
from nilometer.kernels.function_types import is_text
from nilometer.kernels.local_times import (
    DAY,
    dates,
    days_of,
    instants,
    micros_of,
    to_instant,
    to_local,
)
from nilometer.kernels.print_values import print_values
from nilometer.kernels.read_texts import read_texts
from nilometer.kernels.round_values import DIGITS, as_longs, doubles, missing, round_decimals

_LAST: Final = 2**63 - 1


def try_cast(column: pa.Array, kind: pa.DataType, zone: str = "") -> pa.Array:
    """The same, but NULL where the cast fails."""
    return attempt(
        lambda columns, _: cast_values(columns[0], kind, zone), [column], len(column), kind
    )


def in_common(column: pa.Array, kind: pa.DataType, zone: str) -> pa.Array:
    """A column in the type that it has in common with others; its dates are midnights."""
    if pat.is_date32(column.type) and pat.is_timestamp(kind):
        return cast_values(column, kind, zone)
    return as_type(column, kind)


def cast_values(column: pa.Array, kind: pa.DataType, zone: str = "") -> pa.Array:
    """The column in another type; raises an error if the type cannot hold a value."""
    source = column.type
    if source == kind or pat.is_null(source):
        return column.cast(kind)
    if is_text(kind):
        return print_values(column, zone)
    if is_text(source) and not pat.is_binary(kind):
        return read_texts(column, kind, zone)
    if pat.is_temporal(source) or pat.is_temporal(kind):
        return _cast_times(column, kind, zone)
    if pat.is_nested(kind) or pat.is_binary(kind):
        return column.cast(kind)
    if pat.is_boolean(kind):
        return pc.not_equal(column, pa.scalar(0, source))
    if pat.is_boolean(source):
        return cast_values(column.cast(pa.int8()), kind)
    if pat.is_decimal(kind):
        return _to_decimal(column, kind)
    if pat.is_floating(kind):
        return as_floating(column, kind)
    return _to_integer(column, kind)


def _cast_times(column: pa.Array, kind: pa.DataType, zone: str) -> pa.Array:
    """Between dates, instants, and numbers of seconds since 1970."""
    source = column.type
    if pat.is_date32(source):
        return instants(to_instant(days_of(column) * DAY, zone), column)
    if pat.is_date32(kind):
        return dates(to_local(micros_of(column), zone) // DAY, column)
    if not pat.is_timestamp(kind):
        return _seconds(column, kind)
    if pat.is_timestamp(source):
        return column.cast(kind)
    if pat.is_floating(source):
        return _from_doubles(column)
    if pat.is_decimal(source):
        wide = column.cast(pa.decimal256(76, source.scale))
        micros = pc.multiply(
            wide.cast(pa.decimal256(60, source.scale)),
            pa.scalar(Decimal(1_000_000), pa.decimal256(8, 0)),
        )
        return checked(lambda numbers: pc.trunc(numbers).cast(pa.int64()), micros).cast(kind)
    return instants(_saturated(column), column)


def _saturated(column: pa.Array) -> Int64s:
    """Microseconds of whole seconds, saturated at the last instant, as in Java."""
    seconds = column.cast(pa.int64()).fill_null(0).to_numpy()
    limit = _LAST // 1_000_000
    clipped = np.clip(seconds, -limit - 1, limit + 1)
    micros: Int64s = np.where(
        clipped > limit, _LAST, np.where(clipped < -limit, -_LAST - 1, clipped * 1_000_000)
    )
    return micros


def _seconds(column: pa.Array, kind: pa.DataType) -> pa.Array:
    micros = pa.array(micros_of(column), mask=missing(column))
    if pat.is_floating(kind):
        return pc.divide(micros.cast(pa.float64(), safe=False), 1e6).cast(kind, safe=False)
    if pat.is_decimal(kind):
        exact = [None if v is None else Decimal(v).scaleb(-6, DIGITS) for v in micros.to_pylist()]
        return cast_values(pa.array(exact, pa.decimal128(25, 6)), kind)
    whole = pa.array(micros_of(column) // 1_000_000, mask=missing(column))
    return _to_integer(whole, kind)


def _from_doubles(column: pa.Array) -> pa.Array:
    values = doubles(column.cast(pa.float64()))
    if not np.isfinite(values[~missing(column)]).all():
        raise overflow()
    with np.errstate(over="ignore", invalid="ignore"):
        micros = np.trunc(values * 1e6)
    return instants(as_longs(micros), column)


def _to_integer(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The integer part."""
    if pat.is_decimal(column.type):
        return checked(lambda values: pc.trunc(values).cast(kind), _wide(column))
    if not pat.is_floating(column.type):
        return checked(lambda values: values.cast(kind), column)
    values, null = doubles(column), missing(column)
    whole = np.trunc(values)
    bits = kind.bit_width - 1
    if not (null | ((whole >= -(2.0**bits)) & (whole <= 2.0**bits))).all():
        raise overflow()
    longs = pa.array(as_longs(whole), mask=null)
    return checked(lambda numbers: numbers.cast(kind), longs)


def _wide(column: pa.Array) -> pa.Array:
    return column.cast(pa.decimal256(76, column.type.scale))


def _to_decimal(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The number rounded to the digits of the type."""
    if not pat.is_floating(column.type):
        return checked(lambda values: round_decimals(values, kind.scale).cast(kind), column)
    unit = Decimal((0, (1,), -kind.scale))
    values = column.cast(pa.float64()).to_pylist()
    return checked(lambda: pa.array([_decimal(value, unit) for value in values], kind))


def _decimal(value: float | None, unit: Decimal) -> Decimal | None:
    """The decimal that the DOUBLE prints as; as in Spark, NULL where there is none."""
    if value is None or not math.isfinite(value):
        return None
    return Decimal(repr(value)).quantize(unit, context=DIGITS)
