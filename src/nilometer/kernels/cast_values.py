"""CAST between numbers and truth values, and of whole numbers to text, as Spark (ANSI) has it."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from nilometer.kernels.arithmetic import checked, overflow
from nilometer.kernels.function_types import is_text
from nilometer.kernels.round_values import DIGITS, as_longs, doubles, missing, round_decimals


def cast_values(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The column in another type; a number that the type does not hold is an error."""
    given = column.type
    if given == kind or pat.is_null(given) or is_text(kind):
        return column.cast(kind)
    if pat.is_boolean(kind):
        return pc.not_equal(column, pa.scalar(0, given))
    if pat.is_boolean(given):
        return cast_values(column.cast(pa.int8()), kind)
    if pat.is_decimal(kind):
        return _to_decimal(column, kind)
    if pat.is_floating(kind):
        exact = column.cast(pa.string()) if pat.is_decimal(given) else column
        return exact.cast(kind, safe=False)
    return _to_integer(column, kind)


def _to_integer(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """What stands before the point."""
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
    """The number that is read as the DOUBLE; as in Spark, NULL where there is none."""
    if value is None or not math.isfinite(value):
        return None
    return Decimal(repr(value)).quantize(unit, context=DIGITS)
