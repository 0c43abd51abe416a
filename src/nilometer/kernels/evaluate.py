"""Expressions over Arrow columns with Spark's (ANSI) semantics.

Comparisons treat NaN as equal to itself and larger than every number; arithmetic that
overflows, or divides by zero, is an error, but only in rows whose value is needed: the right
side of AND and OR and the branches of CASE are evaluated where they matter, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from nilometer.kernels.arithmetic import calculate, checked
from nilometer.kernels.arrays import Bools, Int64s
from nilometer.kernels.call_function import call_function
from nilometer.kernels.cast_values import cast_values, in_common, try_cast
from nilometer.kernels.compare import compare
from nilometer.kernels.date_arithmetic import add_dates
from nilometer.kernels.expression_types import constant_type, field_place, moment_type
from nilometer.kernels.functions.function import apply_function
from nilometer.kernels.functions.table import FUNCTIONS
from nilometer.kernels.iterate import ITERATIONS, Iterated
from nilometer.kernels.local_days import add_locally, is_local_sum
from nilometer.kernels.type_of import constant_of, type_of
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
    Interval,
    IsNull,
    Iterate,
    Negative,
    Not,
    Operator,
    arguments_in,
)


@dataclass(frozen=True)
class _Rows:
    """Argument columns, and how many rows they have."""

    columns: Sequence[pa.Array]
    size: int

    def only(self, places: Int64s) -> _Rows:
        chosen = pa.array(places)
        return _Rows([column.take(chosen) for column in self.columns], len(places))

    def type_of(self, expression: Expression) -> pa.DataType:
        return type_of(expression, [column.type for column in self.columns])


def is_true(expression: Expression, columns: Sequence[pa.Array], size: int) -> Bools:
    """The rows in which a condition holds; NULL counts as false."""
    result = _evaluate(expression, _Rows(columns, size))
    truth: Bools = result.cast(pa.bool_()).fill_null(False).to_numpy(zero_copy_only=False)
    return truth


def evaluate(expression: Expression, columns: Sequence[pa.Array], size: int) -> pa.Array:
    """The values of an expression for all rows."""
    return _evaluate(expression, _Rows(columns, size))


def _evaluate(expression: Expression, rows: _Rows) -> pa.Array:
    match expression:
        case Argument(number, fields):
            return _field(rows.columns[number], fields)
        case Constant(value):
            return _constant(value, rows.size)
        case IsNull(operand):
            return _evaluate(operand, rows).is_null()
        case Not(operand):
            return pc.invert(_evaluate(operand, rows).cast(pa.bool_()))
        case Negative(operand):
            return checked(pc.negate_checked, _evaluate(operand, rows))
        case Case():
            return _case(expression, rows, rows.type_of(expression))
        case Coalesce():
            return _coalesce(expression, rows, rows.type_of(expression))
        case Cast(operand, kind, zone, safe):
            column = _evaluate(operand, rows)
            return try_cast(column, kind, zone) if safe else cast_values(column, kind, zone)
        case Apply(name, operands, zone):
            values = [_evaluate(one, rows) for one in operands]
            constants = [constant_of(one) for one in operands]
            return apply_function(name, FUNCTIONS[name], values, rows.size, zone, constants)
        case Iterate():
            return _iterate(expression, rows)
        case Call():
            values = [_evaluate(value, rows) for value in expression.arguments]
            return call_function(expression, values, rows.size)
        case Binary(operator, left, right) if operator.is_logic:
            return _logic(operator, left, right, rows)
        case Binary(operator, left, right, zone):
            first, second = _evaluate(left, rows), _evaluate(right, rows)
            if operator.is_comparison:
                moment = moment_type(first.type, second.type)
                if moment is not None:
                    first = _as_moment(left, first, moment, zone)
                    second = _as_moment(right, second, moment, zone)
                return compare(operator, first, second)
            if operator.is_sum and pa.date32() in (first.type, second.type):
                return add_dates(operator, first, second, rows.type_of(expression), zone)
            if is_local_sum(first.type, second.type, zone):
                return add_locally(operator, first, second, zone)
            return calculate(operator, first, second, rows.type_of(expression))


def _iterate(expression: Iterate, rows: _Rows) -> pa.Array:
    """A function of lambdas; those see the columns of the row that an item belongs to."""
    values = [_evaluate(one, rows) for one in expression.operands]
    seen = [arguments_in(one.body) for one in expression.lambdas]

    def ask(number: int, parents: Int64s, variables: Sequence[pa.Array]) -> pa.Array:
        chosen, nothing = pa.array(parents), pa.nulls(len(parents))
        every = len(rows.columns) + len(variables)
        around = [
            column.take(chosen) if seen[number] & {place, place - every} else nothing
            for place, column in enumerate(rows.columns)
        ]
        inner = _Rows([*around, *variables], len(parents))
        return _evaluate(expression.lambdas[number].body, inner)

    kind, parameters = rows.type_of(expression), [one.parameters for one in expression.lambdas]
    return ITERATIONS[expression.name].run(Iterated(values, kind, parameters, ask))


def _as_moment(expression: Expression, column: pa.Array, kind: pa.DataType, zone: str) -> pa.Array:
    """A text or a date compared with a moment, as one; a constant is read only once."""
    if column.type == kind or not len(column) or not isinstance(expression, Constant):
        return cast_values(column, kind, zone)
    return pa.repeat(cast_values(column.slice(0, 1), kind, zone)[0], len(column))


def _field(column: pa.Array, fields: Sequence[str]) -> pa.Array:
    for name in fields:
        column = pc.struct_field(column, [field_place(column.type, name)])
    return column


def _constant(value: object, size: int) -> pa.Array:
    if isinstance(value, Interval):
        return pa.repeat(pa.scalar(value.microseconds, pa.duration("us")), size)
    return pa.nulls(size) if value is None else pa.repeat(_scalar(value), size)


def _scalar(value: object) -> pa.Scalar:
    return pa.scalar(value, constant_type(value))


def _logic(operator: Operator, left: Expression, right: Expression, rows: _Rows) -> pa.Array:
    settles = operator is Operator.OR
    first = _evaluate(left, rows).cast(pa.bool_())
    open_rows = np.flatnonzero(_bools(pc.not_equal(first, settles).fill_null(True)))
    if len(open_rows) == rows.size:
        second = _evaluate(right, rows)
    elif len(open_rows) == 0:
        return first
    else:
        second = _spread(_evaluate(right, rows.only(open_rows)), open_rows, rows.size)
    join = pc.or_kleene if settles else pc.and_kleene
    return join(first, second.cast(pa.bool_()))


def _case(case: Case, rows: _Rows, kind: pa.DataType) -> pa.Array:
    result = pa.nulls(rows.size, kind)
    places = np.arange(rows.size)
    for condition, value in (*case.branches, (Constant(True), case.otherwise)):
        chosen = is_true_in(condition, rows)
        if chosen.any():
            mine = rows.only(np.flatnonzero(chosen))
            values = in_common(_evaluate(value, mine), kind, case.zone)
            result = _put(result, places[chosen], values)
        rows, places = rows.only(np.flatnonzero(~chosen)), places[~chosen]
    return result


def is_true_in(condition: Expression, rows: _Rows) -> Bools:
    return _bools(_evaluate(condition, rows).cast(pa.bool_()).fill_null(False))


def _coalesce(coalesce: Coalesce, rows: _Rows, kind: pa.DataType) -> pa.Array:
    """The first non-NULL value of each row; later ones are not evaluated there."""
    result, places = pa.nulls(rows.size, kind), np.arange(rows.size)
    for operand in coalesce.operands:
        values = _evaluate(operand, rows)
        valid = _bools(values.is_valid())
        if valid.any():
            mine = in_common(values.filter(pa.array(valid)), kind, coalesce.zone)
            result = _put(result, places[valid], mine)
        if valid.all():
            break
        rows, places = rows.only(np.flatnonzero(~valid)), places[~valid]
    return result


def _spread(values: pa.Array, places: Int64s, size: int) -> pa.Array:
    """Values put into their positions among NULLs."""
    return _put(pa.nulls(size, values.type), places, values)


def _put(column: pa.Array, places: Int64s, values: pa.Array) -> pa.Array:
    """A column with other values at some positions."""
    if not pat.is_nested(column.type):
        return pc.replace_with_mask(column, _mask(places, len(column)), values)
    order = np.arange(len(column))
    order[places] = len(column) + np.arange(len(places))
    return pa.concat_arrays([column, values]).take(pa.array(order))


def _mask(places: Int64s, size: int) -> pa.Array:
    mask = np.zeros(size, dtype=np.bool_)
    mask[places] = True
    return pa.array(mask)


def _bools(column: pa.Array) -> Bools:
    bools: Bools = column.to_numpy(zero_copy_only=False)
    return bools
