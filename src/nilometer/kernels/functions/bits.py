"""Functions of the bits of whole numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from nilometer.errors import UnavailableError
from nilometer.kernels.expression_types import (
    common_of_all,
    is_integer,
    type_name,
)
from nilometer.kernels.functions.function import (
    Applied,
    Function,
    Operand,
    each,
    int32,
    number,
    over,
)


def _whole_common(operands: Sequence[Operand]) -> pa.DataType:
    kind = common_of_all([one.kind for one in operands], "the arguments")
    if not (is_integer(kind) or pat.is_null(kind)):
        raise UnavailableError(f"bitwise operators on {type_name(kind)} are not available here")
    return kind


def _on_bits(function: Callable[..., pa.Array]) -> Function:
    def run(applied: Applied) -> pa.Array:
        return function(*(column.cast(applied.kind) for column in applied.columns))

    def null_or(applied: Applied) -> pa.Array:
        is_null = pat.is_null(applied.kind)
        return pa.nulls(applied.size) if is_null else run(applied)

    return Function((number, number), _whole_common, null_or)


def _shifted(operands: Sequence[Operand]) -> pa.DataType:
    kind = operands[0].kind
    return pa.int32() if kind in (pa.int8(), pa.int16()) or pat.is_null(kind) else kind


def _shift(function: Callable[[Any, Any, int], Any]) -> Function:
    def run(applied: Applied) -> pa.Array:
        bits = applied.kind.bit_width
        columns = [column.cast(applied.kind) for column in applied.columns]
        present = applied.present()
        values, by = (column.fill_null(0).to_numpy(zero_copy_only=False) for column in columns)
        shifted = function(values, by & (bits - 1), bits)
        return pa.array(shifted.astype(values.dtype), mask=~present)

    return Function((_whole_number, int32), _shifted, run)


def _whole_number(kind: pa.DataType) -> pa.DataType | None:
    return kind if is_integer(kind) or pat.is_null(kind) else None


def _unsigned_right(values: Any, by: Any, bits: int) -> Any:
    unsigned = np.uint64 if bits == 64 else np.uint32
    return (values.astype(unsigned) >> by.astype(unsigned)).astype(values.dtype)


def _bit_count(applied: Applied) -> pa.Array:
    [column] = applied.columns
    longs = column.cast(pa.int64()).to_pylist()
    return pa.array(
        [None if v is None else (v & (2**64 - 1)).bit_count() for v in longs], pa.int32()
    )


def _countable(kind: pa.DataType) -> pa.DataType | None:
    return kind if pat.is_boolean(kind) else _whole_number(kind)


def _getbit(value: int, place: int) -> int:
    if not 0 <= place < 64:
        raise UnavailableError("bit_get of a position outside 0 to 63 is not available here")
    return value >> place & 1


_BIT_GET: Final = Function((_whole_number, int32), pa.int8(), each(_getbit))

FUNCTIONS: Final = {
    "bit_count": Function((_countable,), pa.int32(), _bit_count),
    "bit_get": _BIT_GET,
    "getbit": _BIT_GET,
    "&": _on_bits(pc.bit_wise_and),
    "|": _on_bits(pc.bit_wise_or),
    "^": _on_bits(pc.bit_wise_xor),
    "~": Function((_whole_number,), lambda o: o[0].kind, over(pc.bit_wise_not)),
    "shiftleft": _shift(lambda values, by, _: values << by),
    "shiftright": _shift(lambda values, by, _: values >> by),
    "shiftrightunsigned": _shift(_unsigned_right),
}
