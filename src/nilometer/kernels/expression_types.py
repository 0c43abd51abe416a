"""The type of an expression, by Spark's (ANSI) rules; an error where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.types as pat

from nilometer.errors import PredicateError, UnavailableError
from nilometer.kernels.function_types import cast_type, is_text, round_type, whole_type
from nilometer.model.expressions import (
    Absolute,
    Argument,
    Binary,
    Call,
    Case,
    Cast,
    Ceiling,
    Coalesce,
    Concat,
    Constant,
    Expression,
    Floor,
    Greatest,
    Interval,
    IsNull,
    Least,
    Length,
    Like,
    Negative,
    Not,
    Operator,
    Round,
    Struct,
)

INTERVAL: Final = pa.duration("us")
_INTEGERS: Final = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_DIGITS: Final = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}


def type_of(expression: Expression, arguments: Sequence[pa.DataType]) -> pa.DataType:
    """The type of the values of an expression over columns of the given types."""
    match expression:
        case Argument(number, fields):
            return _field_type(arguments[number], fields)
        case Constant(value):
            return constant_type(value)
        case IsNull(operand):
            type_of(operand, arguments)
            return pa.bool_()
        case Not(operand):
            return _require(type_of(operand, arguments), pa.bool_(), "NOT")
        case Like(operand, _):
            return _like(type_of(operand, arguments))
        case Negative(operand) | Absolute(operand):
            return _signed(type_of(operand, arguments), expression)
        case Binary(operator, left, right):
            return _binary(operator, type_of(left, arguments), type_of(right, arguments))
        case Case(branches, otherwise, written):
            for condition, _ in branches:
                _require(type_of(condition, arguments), pa.bool_(), written)
            values = [value for _, value in branches] + [otherwise]
            what = f"the branches of {written.split()[0]}"
            return _common_of_all([type_of(value, arguments) for value in values], what)
        case Coalesce(operands) | Greatest(operands) | Least(operands):
            what = f"the arguments of {type(expression).__name__.upper()}"
            return _common_of_all([type_of(value, arguments) for value in operands], what)
        case Cast(operand, to):
            given = type_of(operand, arguments)
            what = f"CAST of {type_name(given)} values to {type_name(to)}"
            return _available(cast_type(given, to), what)
        case Round(operand, digits):
            given = type_of(operand, arguments)
            return _available(round_type(given, digits), _of_values("ROUND", given))
        case Floor(operand) | Ceiling(operand):
            given, name = type_of(operand, arguments), type(expression).__name__.upper()
            return _available(whole_type(given), _of_values(name, given))
        case Concat(operands):
            for given in (type_of(one, arguments) for one in operands):
                _available(cast_type(given, pa.string()), _of_values("CONCAT", given))
            return pa.string()
        case Length(operand):
            given = type_of(operand, arguments)
            is_usable = is_text(given) or pat.is_null(given)
            return _available(pa.int32() if is_usable else None, _of_values("LENGTH", given))
        case Struct(names, operands):
            kinds = [type_of(one, arguments) for one in operands]
            return pa.struct(list(zip(names, kinds, strict=True)))
        case Call():
            for one in expression.arguments:
                type_of(one, arguments)
            returns: pa.DataType = expression.returns
            return returns


def constant_type(value: object) -> pa.DataType:
    """The type that Spark gives to a literal."""
    match value:
        case None:
            return pa.null()
        case bool():
            return pa.bool_()
        case int():
            return pa.int32() if -(2**31) <= value < 2**31 else pa.int64()
        case float():
            return pa.float64()
        case Decimal():
            _, digits, exponent = value.as_tuple()
            scale = max(0, -int(exponent))
            return pa.decimal128(max(len(digits), scale, 1), scale)
        case Interval():
            return INTERVAL
        case datetime():
            return pa.timestamp("us", tz="UTC")
        case date():
            return pa.date32()
        case _:
            return pa.string()


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type in which values of two types are compared, if there is one."""
    if left == right:
        return left
    if pat.is_null(left) or pat.is_null(right):
        return right if pat.is_null(left) else left
    if is_text(left) and is_text(right):
        return left
    if pat.is_timestamp(left) and pat.is_timestamp(right) and bool(left.tz) == bool(right.tz):
        return left
    if not (is_number(left) and is_number(right)):
        return None
    if left in _INTEGERS and right in _INTEGERS:
        return max(left, right, key=_INTEGERS.index)
    if pat.is_floating(left) or pat.is_floating(right):
        return pa.float64()
    left, right = as_decimal(left), as_decimal(right)
    scale = max(left.scale, right.scale)
    return _decimal(max(left.precision - left.scale, right.precision - right.scale) + scale, scale)


def is_number(kind: pa.DataType) -> bool:
    return kind in _INTEGERS or pat.is_floating(kind) or pat.is_decimal(kind)


def is_integer(kind: pa.DataType) -> bool:
    return kind in _INTEGERS


def as_decimal(kind: pa.DataType) -> pa.DataType:
    """The decimal type that holds every value of an integer type."""
    return kind if pat.is_decimal(kind) else pa.decimal128(_DIGITS[kind], 0)


def _binary(operator: Operator, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if operator.is_logic:
        _require(left, pa.bool_(), operator.value)
        return _require(right, pa.bool_(), operator.value)
    if operator.is_comparison:
        if common_type(left, right) is None:
            raise _mismatch(operator, left, right)
        if _is_nested(left):
            raise UnavailableError(
                f"comparing {type_name(left)} is not available here", hint="compare single fields"
            )
        return pa.bool_()
    moment = _time_arithmetic(operator, left, right)
    if moment is not None:
        return moment
    both = common_type(left, right)
    if both is None or not (is_number(both) or pat.is_null(both)):
        raise _mismatch(operator, left, right)
    return _arithmetic(operator, left, right, both)


def _arithmetic(
    operator: Operator, left: pa.DataType, right: pa.DataType, both: pa.DataType
) -> pa.DataType:
    if operator is Operator.WHOLE_DIVIDE:
        if both not in _INTEGERS:
            raise _mismatch(operator, left, right)
        return pa.int64()
    if pat.is_decimal(both):
        return _decimal_arithmetic(operator, as_decimal(left), as_decimal(right))
    if operator is Operator.DIVIDE:
        return pa.float64()
    return both


def _decimal_arithmetic(operator: Operator, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    whole = max(left.precision - left.scale, right.precision - right.scale)
    if operator in (Operator.PLUS, Operator.MINUS):
        scale = max(left.scale, right.scale)
        return _decimal(whole + scale + 1, scale)
    if operator is Operator.TIMES:
        return _decimal(left.precision + right.precision + 1, left.scale + right.scale)
    raise UnavailableError(
        f"{operator.value} of DECIMAL values is not available here",
        hint="cast one of them to DOUBLE: CAST(x AS DOUBLE)",
    )


def _decimal(precision: int, scale: int) -> pa.DataType:
    if precision > 38:
        raise UnavailableError(
            "a DECIMAL result would need more than 38 digits",
            hint="cast one part to DOUBLE: CAST(x AS DOUBLE)",
        )
    return pa.decimal128(precision, scale)


def _time_arithmetic(
    operator: Operator, left: pa.DataType, right: pa.DataType
) -> pa.DataType | None:
    if operator not in (Operator.PLUS, Operator.MINUS):
        return None
    if pat.is_timestamp(left) and pat.is_timestamp(right) and operator is Operator.MINUS:
        return INTERVAL
    if pat.is_timestamp(left) and right == INTERVAL:
        return left
    if left == INTERVAL and pat.is_timestamp(right) and operator is Operator.PLUS:
        return right
    return INTERVAL if left == INTERVAL == right else None


def _signed(kind: pa.DataType, expression: Negative | Absolute) -> pa.DataType:
    if is_number(kind) or kind == INTERVAL or pat.is_null(kind):
        return kind
    what = "abs()" if isinstance(expression, Absolute) else "a minus sign"
    raise PredicateError(f"{what} needs a number or an interval", detail=f"got {type_name(kind)}")


def _like(kind: pa.DataType) -> pa.DataType:
    if not (is_text(kind) or pat.is_null(kind)):
        raise PredicateError("LIKE needs a string", detail=f"got {type_name(kind)}")
    return pa.bool_()


def _available(kind: pa.DataType | None, what: str) -> pa.DataType:
    """The type of what a function gives, if it is evaluated here for such an argument."""
    if kind is None:
        raise UnavailableError(f"{what} is not available here")
    return kind


def _of_values(name: str, kind: pa.DataType) -> str:
    return f"{name} of {type_name(kind)} values"


def _common_of_all(kinds: Sequence[pa.DataType], what: str) -> pa.DataType:
    both: pa.DataType | None = kinds[0]
    for kind in kinds[1:]:
        both = None if both is None else common_type(both, kind)
    if both is None:
        names = ", ".join(sorted({type_name(kind) for kind in kinds}))
        raise PredicateError(f"{what} have different types", detail=f"got {names}")
    return both


def _field_type(kind: pa.DataType, fields: Sequence[str]) -> pa.DataType:
    for name in fields:
        kind = kind.field(field_place(kind, name)).type
    return kind


def field_place(kind: pa.DataType, name: str) -> int:
    """The place of a struct's field, named in any case unless that is ambiguous."""
    names = [kind.field(i).name for i in range(kind.num_fields)] if pat.is_struct(kind) else []
    same = [i for i, known in enumerate(names) if known == name]
    same = same or [i for i, known in enumerate(names) if known.lower() == name.lower()]
    if len(same) != 1:
        fields = f"it has {', '.join(names)}" if names else f"it is {type_name(kind)}"
        raise PredicateError(f"there is no field {name}", detail=fields)
    return same[0]


def _require(kind: pa.DataType, wanted: pa.DataType, where: str) -> pa.DataType:
    if kind != wanted and not pat.is_null(kind):
        raise PredicateError(f"{where} needs a condition", detail=f"got {type_name(kind)}")
    return wanted


def _mismatch(operator: Operator, left: pa.DataType, right: pa.DataType) -> PredicateError:
    return PredicateError(
        f"cannot apply {operator.value} to {type_name(left)} and {type_name(right)}",
        hint="cast one side to the type of the other",
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(pat.is_string(kind) or pat.is_large_string(kind))


def _is_nested(kind: pa.DataType) -> bool:
    return bool(pat.is_nested(kind))


def type_name(kind: pa.DataType) -> str:
    """A type as Spark calls it."""
    names = {
        pa.int8(): "TINYINT",
        pa.int16(): "SMALLINT",
        pa.int32(): "INT",
        pa.int64(): "BIGINT",
        pa.float32(): "FLOAT",
        pa.float64(): "DOUBLE",
        pa.bool_(): "BOOLEAN",
        pa.date32(): "DATE",
        pa.null(): "NULL",
        INTERVAL: "INTERVAL",
    }
    if kind in names:
        return names[kind]
    if pat.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz else "TIMESTAMP_NTZ"
    if pat.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pat.is_struct(kind):
        fields = (
            f"{kind.field(i).name}: {type_name(kind.field(i).type)}" for i in range(len(kind))
        )
        return f"STRUCT<{', '.join(fields)}>"
    if pat.is_map(kind):
        return f"MAP<{type_name(kind.key_type)}, {type_name(kind.item_type)}>"
    if pat.is_list(kind) or pat.is_large_list(kind):
        return f"ARRAY<{type_name(kind.value_type)}>"
    if pat.is_binary(kind) or pat.is_large_binary(kind):
        return "BINARY"
    return "STRING" if is_text(kind) else str(kind).upper()
