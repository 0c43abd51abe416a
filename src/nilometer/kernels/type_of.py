"""The type of an expression, by Spark's (ANSI) rules; raises an error if it has none."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as pat

from nilometer.errors import PredicateError, UnavailableError
from nilometer.kernels.date_arithmetic import date_result
from nilometer.kernels.decimals import decimal_result
from nilometer.kernels.expression_types import (
    INTEGERS,
    INTERVAL,
    chosen_type,
    common_type,
    constant_type,
    field_place,
    is_integer,
    is_number,
    moment_type,
    signed_type,
    type_name,
)
from nilometer.kernels.function_types import cast_type, is_local_cast
from nilometer.kernels.functions.function import NO_CONSTANT, Operand, type_of_call
from nilometer.kernels.functions.table import FUNCTIONS
from nilometer.kernels.iterate import iteration_type
from nilometer.model.expressions import (
    Apply,
    Argument,
    Binary,
    Call,
    Case,
    Cast,
    Coalesce,
    Constant,
    Expression,
    IsNull,
    Iterate,
    Negative,
    Not,
    Operator,
)


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
        case Negative(operand):
            return signed_type(type_of(operand, arguments), "a minus sign")
        case Binary(operator, left, right, zone):
            first, second = type_of(left, arguments), type_of(right, arguments)
            dated = date_result(operator, (first, constant_of(left)), (second, constant_of(right)))
            if dated is not None:
                if dated != pa.date32() and first != second and not zone:
                    raise UnavailableError(
                        "a DATE beside times is not available here in the session's time zone"
                    )
                return dated
            decimal = decimal_result(
                operator, (first, constant_of(left)), (second, constant_of(right))
            )
            moment = moment_type(first, second) if operator.is_comparison else None
            if moment is not None:
                _cast(second if first == moment else first, moment, zone)
                return pa.bool_()
            return decimal or _binary(operator, first, second)
        case Case(branches, otherwise, written, zone):
            for condition, _ in branches:
                _require(type_of(condition, arguments), pa.bool_(), written)
            values = [value for _, value in branches] + [otherwise]
            what = f"the branches of {written.split()[0]}"
            return chosen_type([type_of(value, arguments) for value in values], what, zone)
        case Coalesce(operands, zone):
            what = "the arguments of COALESCE"
            return chosen_type([type_of(value, arguments) for value in operands], what, zone)
        case Cast(operand, to, zone):
            return _cast(type_of(operand, arguments), to, zone)
        case Apply(name, operands, zone):
            known = [Operand(type_of(one, arguments), constant_of(one)) for one in operands]
            return type_of_call(name, FUNCTIONS[name], known, zone)
        case Iterate(name, operands, lambdas):
            kinds = [type_of(one, arguments) for one in operands]
            return iteration_type(
                name,
                kinds,
                [one.parameters for one in lambdas],
                lambda number, variables: type_of(lambdas[number].body, [*arguments, *variables]),
            )
        case Call():
            for one in expression.arguments:
                type_of(one, arguments)
            returns: pa.DataType = expression.returns
            return returns


def _binary(operator: Operator, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if operator.is_logic:
        _require(left, pa.bool_(), operator.value)
        return _require(right, pa.bool_(), operator.value)
    if operator.is_comparison:
        if common_type(left, right) is None:
            raise _mismatch(operator, left, right)
        if pat.is_nested(left):
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
        if both not in INTEGERS:
            raise _mismatch(operator, left, right)
        return pa.int64()
    if operator is Operator.DIVIDE:
        return pa.float64()
    return both


def _time_arithmetic(
    operator: Operator, left: pa.DataType, right: pa.DataType
) -> pa.DataType | None:
    if operator not in (Operator.PLUS, Operator.MINUS, Operator.TIMES):
        return None
    if operator is Operator.TIMES and INTERVAL in (left, right):
        other = right if left == INTERVAL else left
        return INTERVAL if is_integer(other) or pat.is_null(other) else None
    if pat.is_timestamp(left) and pat.is_timestamp(right) and operator is Operator.MINUS:
        return INTERVAL
    if pat.is_timestamp(left) and right == INTERVAL:
        return left
    if left == INTERVAL and pat.is_timestamp(right) and operator is Operator.PLUS:
        return right
    return INTERVAL if left == INTERVAL == right else None


def _field_type(kind: pa.DataType, fields: Sequence[str]) -> pa.DataType:
    for name in fields:
        kind = kind.field(field_place(kind, name)).type
    return kind


def constant_of(expression: Expression) -> Any:
    """The value of a literal; `NO_CONSTANT` if it is computed."""
    match expression:
        case Constant(value):
            return value
        case Negative(Constant(int() | float() | Decimal() as value)):
            return -value
    return NO_CONSTANT


def _cast(source: pa.DataType, to: pa.DataType, zone: str) -> pa.DataType:
    kind = cast_type(source, to)
    what = f"CAST of {type_name(source)} values to {type_name(to)}"
    if kind is None:
        raise UnavailableError(f"{what} is not available here")
    if is_local_cast(source, to) and not zone:
        raise UnavailableError(f"{what} is not available here in the session's time zone")
    return kind


def _require(kind: pa.DataType, wanted: pa.DataType, where: str) -> pa.DataType:
    if kind != wanted and not pat.is_null(kind):
        raise PredicateError(f"{where} needs a condition", detail=f"got {type_name(kind)}")
    return wanted


def _mismatch(operator: Operator, left: pa.DataType, right: pa.DataType) -> PredicateError:
    return PredicateError(
        f"cannot apply {operator.value} to {type_name(left)} and {type_name(right)}",
        hint="cast one side to the type of the other",
    )
