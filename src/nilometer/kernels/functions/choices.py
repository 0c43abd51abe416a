"""Functions that choose among values, search for them, or convert them to another type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from nilometer.kernels.arithmetic import as_type
from nilometer.kernels.cast_values import in_common
from nilometer.kernels.compare import choose, compare
from nilometer.kernels.expression_types import (
    chosen_type,
    common_of_all,
    common_type,
    field_place,
)
from nilometer.kernels.function_types import cast_type
from nilometer.kernels.functions.function import Applied, Function, Operand, anything, number
from nilometer.model.expressions import Operator


def _common(name: str) -> Callable[[Sequence[Operand]], pa.DataType]:
    return lambda operands: chosen_type(
        [one.kind for one in operands], f"the arguments of {name}", "UTC"
    )


def _extreme(operator: Operator) -> Callable[[Applied], pa.Array]:
    def run(applied: Applied) -> pa.Array:
        columns = (in_common(column, applied.kind, applied.zone) for column in applied.columns)
        return reduce(lambda left, right: choose(operator, left, right), columns)

    return run


def _same(applied: Applied) -> pa.Array:
    return compare(Operator.SAME, *applied.columns)


def _boolean(operands: Sequence[Operand]) -> pa.DataType:
    common_of_all([one.kind for one in operands], "the arguments of equal_null")
    return pa.bool_()


def _zero_if_null(applied: Applied) -> pa.Array:
    return as_type(applied.columns[0], applied.kind).fill_null(0)


def _null_if_zero(applied: Applied) -> pa.Array:
    [column] = applied.columns
    if pat.is_null(column.type):
        return pa.nulls(applied.size, applied.kind)
    return pc.if_else(pc.equal(column, pa.scalar(0, column.type)), None, column)


def _struct_type(operands: Sequence[Operand]) -> pa.DataType:
    return pa.struct(
        [(name.constant, one.kind) for name, one in zip(operands[::2], operands[1::2], strict=True)]
    )


def _with_int(operands: Sequence[Operand]) -> pa.DataType:
    return common_type(operands[0].kind, pa.int32()) or operands[0].kind


def _struct(applied: Applied) -> pa.Array:
    return pa.StructArray.from_arrays(list(applied.columns[1::2]), fields=list(applied.kind))


def _field_type(operands: Sequence[Operand]) -> pa.DataType:
    kind, name = operands[0].kind, operands[1].constant
    return kind.field(field_place(kind, name)).type


def _field(applied: Applied) -> pa.Array:
    [column, _] = applied.columns
    place = field_place(column.type, applied.constants[1])
    return pc.struct_field(column, [place])


def _cast(to: pa.DataType) -> Function:
    """A cast written as a function; the parser turns those to other types into casts."""

    def accept(kind: pa.DataType) -> pa.DataType | None:
        return cast_type(kind, to)

    return Function((accept,), to, lambda applied: applied.columns[0])


FUNCTIONS: Final = {
    "tinyint": _cast(pa.int8()),
    "smallint": _cast(pa.int16()),
    "bigint": _cast(pa.int64()),
    "decimal": _cast(pa.decimal128(10, 0)),
    "binary": _cast(pa.binary()),
    "greatest": Function(
        (anything, anything), _common("GREATEST"), _extreme(Operator.AT_LEAST), several=True
    ),
    "least": Function(
        (anything, anything), _common("LEAST"), _extreme(Operator.AT_MOST), several=True
    ),
    "equal_null": Function((anything, anything), _boolean, _same),
    "isnull": Function((anything,), pa.bool_(), lambda applied: applied.columns[0].is_null()),
    "isnotnull": Function((anything,), pa.bool_(), lambda applied: applied.columns[0].is_valid()),
    "zeroifnull": Function((number,), _with_int, _zero_if_null),
    "nullifzero": Function((number,), lambda o: o[0].kind, _null_if_zero),
    "named_struct": Function((anything, anything), _struct_type, _struct, several=True),
    ".": Function((anything, anything), _field_type, _field),
}
