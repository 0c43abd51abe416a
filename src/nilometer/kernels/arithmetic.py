"""Arithmetic over Arrow columns with Spark's (ANSI) semantics: overflow is an error."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from nilometer.kernels.arithmetic_errors import division_by_zero, overflow
from nilometer.kernels.arrays import as_floating
from nilometer.kernels.decimals import MOST_DIGITS, calculate_decimals
from nilometer.kernels.expression_types import as_decimal, is_integer
from nilometer.model.expressions import Operator


def calculate(operator: Operator, left: pa.Array, right: pa.Array, kind: pa.DataType) -> pa.Array:
    """The results of an operator, of the given type."""
    if pat.is_null(left.type) or pat.is_null(right.type):
        return pa.nulls(len(left), kind)
    if pat.is_temporal(left.type) or pat.is_temporal(right.type):
        if operator is Operator.TIMES:
            return _times(left, right)
        add = operator is Operator.PLUS
        return checked(pc.add_checked if add else pc.subtract_checked, left, right).cast(kind)
    if operator is Operator.WHOLE_DIVIDE:
        kind = pa.int64()
    if not pat.is_decimal(kind):
        left, right = as_type(left, kind), as_type(right, kind)
    elif operator in (Operator.DIVIDE, Operator.REMAINDER) or _is_wide(left.type, right.type):
        return calculate_decimals(operator, left, right, kind)
    match operator:
        case Operator.PLUS:
            return checked(pc.add_checked, left, right).cast(kind)
        case Operator.MINUS:
            return checked(pc.subtract_checked, left, right).cast(kind)
        case Operator.TIMES:
            return checked(pc.multiply_checked, left, right).cast(kind)
        case Operator.REMAINDER:
            return _remainder(left, right)
        case _:
            return checked(pc.divide_checked, left, right)


def _times(left: pa.Array, right: pa.Array) -> pa.Array:
    """Intervals as often as numbers say."""
    interval = left.type if pat.is_duration(left.type) else right.type
    numbers = (one.cast(pa.int64()) for one in (left, right))
    return checked(pc.multiply_checked, *numbers).cast(interval)


def _is_wide(left: pa.DataType, right: pa.DataType) -> bool:
    """Whether a sum or product of DECIMALs may have more digits than Arrow has."""
    digits: int = as_decimal(left).precision + as_decimal(right).precision
    return digits >= MOST_DIGITS


def _remainder(left: pa.Array, right: pa.Array) -> pa.Array:
    """The remainder of a division, with the sign of the dividend."""
    valid = pc.and_(left.is_valid(), right.is_valid())
    if pc.any(pc.and_(valid, pc.equal(right, 0).fill_null(False))).as_py():
        raise division_by_zero()
    divisor = pc.if_else(valid, right, pa.scalar(1, right.type))
    if is_integer(left.type):
        # the smallest integer divided by -1 overflows, although its remainder is 0
        safe = pc.if_else(pc.equal(divisor, -1), pa.scalar(1, right.type), divisor)
        rest = np.fmod(_numbers(left.fill_null(0)), _numbers(safe))
    else:
        with np.errstate(invalid="ignore"):
            rest = np.fmod(_numbers(left.fill_null(0)), _numbers(divisor))
    return pc.if_else(valid, pa.array(rest, left.type), None)


def checked(function: Callable[..., pa.Array], *values: pa.Array) -> pa.Array:
    """The result of an Arrow function; raises our own error on overflow."""
    try:
        return function(*values)
    except pa.ArrowInvalid as error:
        raise division_by_zero() if "divide by zero" in str(error) else overflow() from None


def as_type(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The column cast to a type that holds its values."""
    if column.type == kind:
        return column
    return as_floating(column, kind) if pat.is_floating(kind) else column.cast(kind, safe=False)


def _numbers(column: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.generic]]:
    numbers: np.ndarray[tuple[int], np.dtype[np.generic]] = column.to_numpy(zero_copy_only=False)
    return numbers
