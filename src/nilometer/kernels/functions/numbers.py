"""Functions of numbers.

Roots and the four basic operations are exact. Exponentials, logarithms and trigonometry may differ
from Java's in the last bit, as Java's own may from one machine to another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from nilometer.errors import UnavailableError
from nilometer.kernels.arithmetic import calculate, checked
from nilometer.kernels.arrays import Float64s
from nilometer.kernels.decimals import decimal_result
from nilometer.kernels.expression_types import (
    common_of_all,
    signed_type,
)
from nilometer.kernels.function_types import round_type, whole_type
from nilometer.kernels.functions.function import (
    Applied,
    Function,
    Operand,
    anything,
    double,
    each,
    int32,
    int64,
    number,
    numpy_of,
    over,
    tried,
)
from nilometer.kernels.round_values import round_values, whole_values
from nilometer.model.expressions import Operator

_DOUBLE: Final = pa.float64()
_INT: Final = pa.int32()
_LONG: Final = pa.int64()
_FACTORIALS: Final = 20
_EVEN: Final = Context(prec=800, rounding=ROUND_HALF_EVEN)


def _of_double(function: Callable[..., Any]) -> Function:
    return Function((double,), _DOUBLE, numpy_of(function))


def _logarithm(function: Callable[[Any], Any], lowest: float = 0.0) -> Function:
    """A logarithm; NULL where it is undefined."""

    def run(applied: Applied) -> pa.Array:
        logarithms = numpy_of(function)(applied)
        exists = pc.invert(pc.less_equal(applied.columns[0], lowest))
        return pc.if_else(exists, logarithms, None)

    return Function((double,), _DOUBLE, run)


def _log(applied: Applied) -> pa.Array:
    """The logarithm of the second to the base of the first; NULL where it is undefined."""
    base, value = applied.columns
    logarithms = numpy_of(lambda b, x: np.log(x) / np.log(b))(applied)
    exists = pc.invert(pc.or_(pc.less_equal(base, 0.0), pc.less_equal(value, 0.0)))
    return pc.if_else(exists, logarithms, None)


_LN: Final = _logarithm(np.log)


def _any_log(applied: Applied) -> pa.Array:
    return (_LN.evaluate if len(applied.columns) == 1 else _log)(applied)


def _power(base: Float64s, exponent: Float64s) -> Float64s:
    """As in Java: of NaN, and of ±1 to an infinite power, NaN; but anything to 0 is 1."""
    powers = np.power(base, exponent)
    undefined = np.isnan(exponent) | ((np.abs(base) == 1) & np.isinf(exponent))
    result: Float64s = np.where(undefined, np.nan, powers)
    return result


def _signum(x: Float64s) -> Float64s:
    signs: Float64s = np.where(x == 0, x, np.sign(x))
    return signs


def _factorial(n: int) -> int | None:
    return math.factorial(n) if 0 <= n <= _FACTORIALS else None


# Rounding


def _rounded(operands: Sequence[Operand]) -> pa.DataType:
    digits = operands[1].constant if len(operands) > 1 else 0
    kind = round_type(operands[0].kind, digits) if isinstance(digits, int) else None
    if kind is None:
        raise UnavailableError("rounding to a computed number of digits is not available here")
    return kind


def _round(applied: Applied) -> pa.Array:
    digits = applied.constants[1] if len(applied.columns) > 1 else 0
    return round_values(applied.columns[0], digits, applied.kind)


def _bround(applied: Applied) -> pa.Array:
    """Round half to even."""
    digits = applied.constants[1] if len(applied.columns) > 1 else 0
    unit = Decimal((0, (1,), -digits))
    kind = applied.columns[0].type

    def one(value: Any) -> Any:
        if isinstance(value, float) and not math.isfinite(value):
            return value
        exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
        if pat.is_integer(kind) and digits >= 0:
            return value
        rounded = exact.quantize(unit, context=_EVEN)
        return float(rounded) + 0.0 if isinstance(value, float) else rounded

    if pat.is_null(kind):
        return pa.nulls(applied.size, applied.kind)
    shown = applied.columns[0]
    if pat.is_float32(kind):
        shown = shown.cast(pa.string()).cast(pa.float64())
    values = [None if v is None else one(v) for v in shown.to_pylist()]
    if pat.is_integer(kind):
        values = [None if v is None else int(v) for v in values]
        return checked(lambda: pa.array(values, pa.decimal256(40, 0)).cast(applied.kind))
    return checked(
        lambda: pa.array(
            values, pa.decimal256(76, max(digits, 0)) if pat.is_decimal(kind) else _DOUBLE
        ).cast(applied.kind)
    )


def _whole(upward: bool) -> Function:
    def gives(operands: Sequence[Operand]) -> pa.DataType:
        kind = operands[0].kind
        return pa.int64() if pat.is_null(kind) else whole_type(kind)

    def run(applied: Applied) -> pa.Array:
        if pat.is_null(applied.columns[0].type):
            return pa.nulls(applied.size, applied.kind)
        return whole_values(applied.columns[0], upward, applied.kind)

    return Function((number,), gives, run)


# Of several numbers


def _common(operands: Sequence[Operand]) -> pa.DataType:
    return common_of_all([one.kind for one in operands], "the arguments")


def _pmod(applied: Applied) -> pa.Array:
    """The remainder of a division, not negative for a positive divisor."""
    kind = applied.kind
    left, right = (column.cast(kind, safe=False) for column in applied.columns)
    rest = calculate(Operator.REMAINDER, left, right, kind)
    if pat.is_null(kind):
        return rest
    below = pc.less(rest, pa.scalar(0, kind))
    moved = pc.add(pc.if_else(below, rest, None), right)  # past the last number as in Java
    again = calculate(Operator.REMAINDER, moved, right, kind)
    return pc.if_else(below.fill_null(False), again, rest)


def _decimal(operator: Operator, operands: Sequence[Operand]) -> pa.DataType | None:
    left, right = ((one.kind, one.constant) for one in operands)
    return decimal_result(operator, left, right)


def _remainder_type(operands: Sequence[Operand]) -> pa.DataType:
    return _decimal(Operator.REMAINDER, operands) or _common(operands)


def _not_decimal(operands: Sequence[Operand]) -> pa.DataType:
    kind = _common(operands)
    if pat.is_decimal(kind):
        raise UnavailableError("the remainder of DECIMAL values is not available here")
    return kind


def _isnan(applied: Applied) -> pa.Array:
    return pc.is_nan(applied.columns[0].cast(_DOUBLE)).fill_null(False)


def _nanvl(applied: Applied) -> pa.Array:
    first, second = (column.cast(applied.kind) for column in applied.columns)
    if pat.is_null(applied.kind):
        return pa.nulls(applied.size)
    return pc.if_else(pc.is_nan(first), second, first)


def _float_common(operands: Sequence[Operand]) -> pa.DataType:
    kind = _common(operands)
    return kind if pat.is_float32(kind) or pat.is_null(kind) else _DOUBLE


def _signed(operands: Sequence[Operand]) -> pa.DataType:
    return signed_type(operands[0].kind, "abs()")


def _width_bucket(value: float, first: float, last: float, buckets: int) -> int | None:
    if buckets <= 0 or buckets == 2**63 - 1 or math.isnan(value) or first == last:
        return None
    if not (math.isfinite(first) and math.isfinite(last)):
        return None
    low, high = min(first, last), max(first, last)
    if first < last:
        if value < low:
            return 0
        if value >= high:
            return buckets + 1
        return int(buckets * (value - low) / (high - low)) + 1
    if value > high:
        return 0
    if value <= low:
        return buckets + 1
    return int(buckets * (high - value) / (high - low)) + 1


def _try_operator(operator: Operator) -> Function:
    """An operator that is NULL where it fails."""

    def gives(operands: Sequence[Operand]) -> pa.DataType:
        decimal = _decimal(operator, operands)
        if decimal is not None:
            return decimal
        return _DOUBLE if operator is Operator.DIVIDE else _common(operands)

    def run(applied: Applied) -> pa.Array:
        left, right = applied.columns
        return calculate(operator, left, right, applied.kind)

    return Function((number, number), gives, tried(run))


def _constant_number(value: float) -> Function:
    return Function((), _DOUBLE, lambda applied: pa.repeat(pa.scalar(value), applied.size))


_SIGN: Final = _of_double(_signum)
_POWER: Final = Function((double, double), _DOUBLE, numpy_of(_power))
_CEIL: Final = _whole(upward=True)
_MOD: Final = Function(
    (number, number),
    _remainder_type,
    lambda a: calculate(Operator.REMAINDER, a.columns[0], a.columns[1], a.kind),
)

FUNCTIONS: Final = {
    "abs": Function((anything,), _signed, over(lambda column: checked(pc.abs_checked, column))),
    "negative": Function(
        (anything,),
        lambda operands: signed_type(operands[0].kind, "negative()"),
        over(lambda column: checked(pc.negate_checked, column)),
    ),
    "positive": Function(
        (anything,),
        lambda operands: signed_type(operands[0].kind, "positive()"),
        over(lambda column: column),
    ),
    "round": Function((number, int32), _rounded, _round, optional=1),
    "bround": Function((number, int32), _rounded, _bround, optional=1),
    "floor": _whole(upward=False),
    "ceil": _CEIL,
    "ceiling": _CEIL,
    "rint": _of_double(np.rint),
    "sign": _SIGN,
    "signum": _SIGN,
    "sqrt": _of_double(np.sqrt),
    "cbrt": _of_double(np.cbrt),
    "exp": _of_double(np.exp),
    "expm1": _of_double(np.expm1),
    "ln": _LN,
    "log": Function((double, double), _DOUBLE, _any_log, optional=1),
    "log10": _logarithm(np.log10),
    "log2": _logarithm(lambda x: np.log(x) / np.log(2.0)),
    "log1p": _logarithm(np.log1p, -1.0),
    "pow": _POWER,
    "power": _POWER,
    "hypot": Function((double, double), _DOUBLE, numpy_of(np.hypot)),
    "sin": _of_double(np.sin),
    "cos": _of_double(np.cos),
    "tan": _of_double(np.tan),
    "cot": _of_double(lambda x: 1.0 / np.tan(x)),
    "sec": _of_double(lambda x: 1.0 / np.cos(x)),
    "csc": _of_double(lambda x: 1.0 / np.sin(x)),
    "asin": _of_double(np.arcsin),
    "acos": _of_double(np.arccos),
    "atan": _of_double(np.arctan),
    "atan2": Function(
        (double, double), _DOUBLE, numpy_of(lambda y, x: np.arctan2(y + 0.0, x + 0.0))
    ),
    "sinh": _of_double(np.sinh),
    "cosh": _of_double(np.cosh),
    "tanh": _of_double(np.tanh),
    "asinh": _of_double(np.arcsinh),
    "acosh": _of_double(np.arccosh),
    "atanh": _of_double(lambda x: 0.5 * (np.log1p(x) - np.log1p(-x))),
    "degrees": _of_double(lambda x: x * 57.29577951308232),
    "radians": _of_double(lambda x: x * 0.017453292519943295),
    "pi": _constant_number(math.pi),
    "e": _constant_number(math.e),
    "factorial": Function((int32,), _LONG, each(_factorial)),
    "mod": _MOD,
    "pmod": Function((number, number), _not_decimal, _pmod),
    "isnan": Function((double,), pa.bool_(), _isnan),
    "nanvl": Function((number, number), _float_common, _nanvl),
    "width_bucket": Function((double, double, double, int64), _LONG, each(_width_bucket)),
    "try_add": _try_operator(Operator.PLUS),
    "try_subtract": _try_operator(Operator.MINUS),
    "try_multiply": _try_operator(Operator.TIMES),
    "try_divide": _try_operator(Operator.DIVIDE),
    "try_mod": _try_operator(Operator.REMAINDER),
}
