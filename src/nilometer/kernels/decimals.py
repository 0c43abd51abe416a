"""Arithmetic of DECIMALs with Spark's digits: exact up to 38 of them, then rounded."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from nilometer.kernels.arithmetic_errors import division_by_zero, overflow
from nilometer.kernels.arrays import Bools
from nilometer.kernels.exact_results import decimals_of_words
from nilometer.kernels.expression_types import as_decimal, is_integer
from nilometer.model.expressions import Operator

MOST_DIGITS: Final = 38
_LEAST_SCALE: Final = 6
"""The number of fractional digits kept where not all digits of a result fit."""
_STEPS: Final = MOST_DIGITS + 1
"""Java computes with one digit more than the type has, then rounds to the type."""
_WORD: Final = (1 << 64) - 1
_ARITHMETIC: Final = (
    *(Operator.PLUS, Operator.MINUS, Operator.TIMES),
    *(Operator.DIVIDE, Operator.REMAINDER),
)

Integers: TypeAlias = np.ndarray[tuple[int], np.dtype[np.object_]]
"""Python integers, which are unbounded."""
Known: TypeAlias = tuple[pa.DataType, Any]
"""The type of an operand, and its value if it is a literal."""


def decimal_result(operator: Operator, left: Known, right: Known) -> pa.DataType | None:
    """The result type of DECIMAL arithmetic; None if it is not that."""
    kinds = [kind for kind, _ in (left, right) if not pat.is_null(kind)]
    if operator not in _ARITHMETIC or not any(map(pat.is_decimal, kinds)):
        return None
    if not all(pat.is_decimal(kind) or is_integer(kind) for kind in kinds):
        return None
    first, second = _decimal_type(left, kinds[0]), _decimal_type(right, kinds[0])
    return result_type(operator, first, second)


def _decimal_type(operand: Known, other: pa.DataType) -> pa.DataType:
    """The DECIMAL type of an operand: of an integer literal, with the digits it is written with."""
    kind, constant = operand
    if pat.is_null(kind):
        return as_decimal(other)
    if is_integer(kind) and isinstance(constant, int):
        return pa.decimal128(len(str(abs(constant))), 0)
    return as_decimal(kind)


def result_type(operator: Operator, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The type that Spark gives to the result of an operator on two DECIMALs."""
    whole = max(left.precision - left.scale, right.precision - right.scale)
    scale = max(left.scale, right.scale)
    match operator:
        case Operator.TIMES:
            return _fitted(left.precision + right.precision + 1, left.scale + right.scale)
        case Operator.DIVIDE:
            scale = max(_LEAST_SCALE, left.scale + right.precision + 1)
            return _fitted(left.precision - left.scale + right.scale + scale, scale)
        case Operator.REMAINDER:
            least = min(left.precision - left.scale, right.precision - right.scale)
            return _fitted(least + scale, scale)
        case _:
            return _fitted(whole + scale + 1, scale)


def _fitted(precision: int, scale: int) -> pa.DataType:
    """The type with these digits; if there are too many, the integer digits are kept."""
    if precision <= MOST_DIGITS:
        return pa.decimal128(precision, scale)
    whole = precision - scale
    return pa.decimal128(MOST_DIGITS, max(MOST_DIGITS - whole, min(scale, _LEAST_SCALE)))


def calculate_decimals(
    operator: Operator, left: pa.Array, right: pa.Array, kind: pa.DataType
) -> pa.Array:
    """The results of an operator, of the given type; an error where one does not fit."""
    valid: Bools = np.asarray(left.is_valid()) & np.asarray(right.is_valid())
    (a, first), (b, second) = _unscaled(left, valid), _unscaled(right, valid)
    if operator in (Operator.DIVIDE, Operator.REMAINDER):
        if bool((valid & (b == 0)).any()):
            raise division_by_zero()
        b = np.where(valid, b, 1).astype(object)
    match operator:
        case Operator.TIMES:
            values = _rescaled(_shortened(a * b), first + second, kind.scale)
        case Operator.DIVIDE:
            values = _divided(a * 10 ** (_STEPS - first + second), b)
            values = _rescaled(values, _STEPS, kind.scale)
        case Operator.REMAINDER:
            scale = max(first, second)
            values = _rest(_rescaled(a, first, scale), _rescaled(b, second, scale))
            values = _rescaled(values, scale, kind.scale)
        case _:
            scale = max(first, second)
            a, b = _rescaled(a, first, scale), _rescaled(b, second, scale)
            values = _rescaled(a + b if operator is Operator.PLUS else a - b, scale, kind.scale)
    return _decimals(values, kind, valid)


def _unscaled(column: pa.Array, valid: Bools) -> tuple[Integers, int]:
    """The values as integers, 0 where NULL, and the number of fractional digits."""
    if not pat.is_decimal(column.type):
        return np.asarray(column.fill_null(0)).astype(object), 0
    words = np.frombuffer(column.buffers()[1], np.int64)
    words = words[2 * column.offset : 2 * (column.offset + len(column))]
    low, high = words[0::2].view(np.uint64).astype(object), words[1::2].astype(object)
    values: Integers = np.where(valid, (high << 64) | low, 0).astype(object)
    return values, column.type.scale


def _decimals(values: Integers, kind: pa.DataType, valid: Bools) -> pa.Array:
    values = np.where(valid, values, 0).astype(object)
    if bool((abs(values) >= 10**kind.precision).any()):
        raise overflow()
    low = (values & _WORD).astype(np.uint64).view(np.int64)
    words = np.stack([low, (values >> 64).astype(np.int64)], axis=1)
    return decimals_of_words(words, kind, valid)


def _divided(values: Integers, by: Integers | int) -> Integers:
    """Quotients, halves rounded away from zero."""
    size: Any = abs(by)
    sign = np.where((values < 0) == (by < 0), 1, -1)
    quotients: Integers = (2 * abs(values) + size) // (2 * size) * sign
    return quotients


def _rescaled(values: Integers, scale: int, to: int) -> Integers:
    if to >= scale:
        wider: Integers = values * 10 ** (to - scale)
        return wider
    return _divided(values, 10 ** (scale - to))


def _rest(a: Integers, b: Integers) -> Integers:
    """The remainder of a division, with the sign of the dividend."""
    if bool((abs(a) // abs(b) >= 10**_STEPS).any()):
        raise overflow()
    remainders: Integers = abs(a) % abs(b) * np.where(a < 0, -1, 1)
    return remainders


def _shortened(values: Integers) -> Integers:
    """Products cut to as many digits as Java computes with; further ones are zeros."""
    for place in np.flatnonzero(abs(values) >= 10**_STEPS):
        more = len(str(abs(values[place]))) - _STEPS
        values[place] = _divided(values[place : place + 1], 10**more)[0] * 10**more
    return values
