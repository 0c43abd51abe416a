"""ROUND, FLOOR and CEIL as in Spark: halves are rounded away from zero, in decimal notation.

Spark rounds the shortest decimal number that parses to a DOUBLE: 2.675 to 2.68, although the
DOUBLE itself is a little less than 2.675.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from nilometer.kernels.arithmetic import checked
from nilometer.kernels.arithmetic_errors import overflow
from nilometer.kernels.arrays import Bools, Float64s, Int64s

_HALF_UP: Final = "half_towards_infinity"
_WIDEST: Final = 76
_MOST_EXACT: Final = 22
"""Powers of ten up to this one are exact DOUBLEs."""
DIGITS: Final = Context(prec=800, rounding=ROUND_HALF_UP)
_RANGE: Final = np.iinfo(np.int64)


def round_values(column: pa.Array, digits: int, kind: pa.DataType) -> pa.Array:
    """The column rounded to this many fractional digits, in the given type."""
    if pat.is_floating(kind):
        rounded = _round_doubles(doubles(column), digits)
        return pa.array(rounded, mask=missing(column)).cast(kind)
    if not pat.is_decimal(kind) and digits >= 0:
        return column
    return checked(lambda values: round_decimals(values, digits).cast(kind), column)


def round_decimals(column: pa.Array, digits: int) -> pa.Array:
    """Integers or decimals rounded, in a type wide enough for the result."""
    scale = column.type.scale if pat.is_decimal(column.type) else 0
    wide = column.cast(pa.decimal256(_WIDEST, scale))
    return pc.round(wide, ndigits=max(digits, -_WIDEST // 2), round_mode=_HALF_UP)


def whole_values(column: pa.Array, upward: bool, kind: pa.DataType) -> pa.Array:
    """The nearest whole numbers that are not smaller, or not larger."""
    if pat.is_decimal(kind):
        wide = column.cast(pa.decimal256(_WIDEST, column.type.scale))
        return (pc.ceil(wide) if upward else pc.floor(wide)).cast(kind)
    if not pat.is_floating(column.type):
        return column.cast(kind)
    values = doubles(column)
    return pa.array(as_longs(np.ceil(values) if upward else np.floor(values)), mask=missing(column))


def as_longs(values: Float64s) -> Int64s:
    """Whole DOUBLEs as BIGINTs, as in Java: NaN as 0, and 2^63 as the last BIGINT."""
    if (np.abs(values) > 2.0**63).any():
        raise overflow()
    usable = np.abs(values) < 2.0**63
    longs: Int64s = np.where(usable, values, 0.0).astype(np.int64)
    longs[values == 2.0**63] = _RANGE.max
    longs[values == -(2.0**63)] = _RANGE.min
    return longs


def doubles(column: pa.Array) -> Float64s:
    """Floating numbers as they are, NULLs as 0."""
    values: Float64s = column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    return values


def missing(column: pa.Array) -> Bools:
    """The positions where a column is NULL."""
    bools: Bools = column.is_null().to_numpy(zero_copy_only=False)
    return bools


def _round_doubles(values: Float64s, digits: int) -> Float64s:
    """Rounded as numbers where that is safe; near halves, and where large, as texts."""
    if abs(digits) > _MOST_EXACT:
        return np.array([_round_one(value, digits) for value in values.tolist()], np.float64)
    power = 10.0 ** abs(digits)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.abs(values) * power if digits >= 0 else np.abs(values) / power
        units = np.floor(scaled + 0.5)
        doubt = np.abs(scaled + 0.5 - np.rint(scaled + 0.5)) <= scaled * 2.0**-49
        rounded = units / power if digits >= 0 else units * power
    rounded = np.copysign(rounded, values) + 0.0  # Spark rounds to no -0.0
    for place in np.flatnonzero(doubt & (scaled != 0) | ~(scaled < 2.0**51)):
        rounded[place] = _round_one(float(values[place]), digits)
    return rounded


def _round_one(value: float, digits: int) -> float:
    if not math.isfinite(value):
        return value
    return float(Decimal(repr(value)).quantize(Decimal((0, (1,), -digits)), context=DIGITS)) + 0.0
