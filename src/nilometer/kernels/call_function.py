"""Calling a user's function on columns: over pandas Series, or value by value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from nilometer.errors import PredicateError
from nilometer.kernels.expression_types import type_name
from nilometer.model.expressions import Call
from nilometer.model.names import count


def call_function(call: Call, values: Sequence[pa.Array], size: int) -> pa.Array:
    """The function's values for all rows, in its declared return type."""
    if size == 0:
        return pa.nulls(0, call.returns)
    answer = _by_row(call, values, size) if call.by_row else _by_column(call, values, size)
    if len(answer) != size:
        raise PredicateError(
            f"the function {call.name} returned {len(answer)} values for {size} rows",
            hint="it must return one value per row, in the same order",
        )
    return _typed(call, answer)


def _by_row(call: Call, values: Sequence[pa.Array], size: int) -> list[Any]:
    rows = zip(*(column.to_pylist() for column in values), strict=True) if values else [()] * size
    return [_called(call, row, "plain values, row by row") for row in rows]


def _by_column(call: Call, values: Sequence[pa.Array], size: int) -> Any:
    series = [column.to_pandas() for column in values]
    answer = _called(call, series, f"pandas Series of {size} rows")
    if np.ndim(answer) != 1:
        raise PredicateError(
            f"the function {call.name} returned a {type(answer).__name__} for {size} rows",
            hint="it must return one value per row, in the same order",
        )
    return answer


def _called(call: Call, arguments: Sequence[Any], arguments_text: str) -> Any:
    try:
        return call.function(*arguments)
    except Exception as error:
        raise PredicateError(
            f"the function {call.name} raised {type(error).__name__}: {error}",
            detail=f"it was given {count(len(arguments), 'argument')}: {arguments_text}",
            hint="a function of plain values is registered with by_row=True"
            if not call.by_row
            else None,
        ) from error


def _typed(call: Call, answer: Any) -> pa.Array:
    try:
        values = pa.array(answer, from_pandas=True)
        right_kind = pat.is_boolean(values.type) == pat.is_boolean(call.returns)
        if not right_kind and not pat.is_null(values.type):
            raise pa.ArrowInvalid
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        return values.cast(call.returns)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        got = getattr(answer, "dtype", type(answer).__name__)
        raise PredicateError(
            f"the function {call.name} returned values of type {got}",
            detail=f"it was declared to return {type_name(call.returns)}",
            hint="it must return booleans, such as (a - b).abs() < 3"
            if pat.is_boolean(call.returns)
            else None,
        ) from None
