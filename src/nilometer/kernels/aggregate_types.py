"""The type of an aggregate's result, by Spark's rules; an error if its argument does not fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.types as pat

from nilometer.errors import PredicateError
from nilometer.kernels.expression_types import INTERVAL, is_integer, is_number, type_name

_MOST_DIGITS: Final = 38
_OF_VALUES: Final = ("MIN_BY", "MAX_BY", "COLLECT_LIST", "COLLECT_SET", "STRING_AGG", "MODE")


class _Call(Protocol):
    """An aggregate function of a column, as `operators.change_specs` has it."""

    @property
    def function(self) -> str:
        """Its name in SQL."""

    @property
    def column(self) -> int | None:
        """The position of its argument; None for COUNT(*)."""

    @property
    def distinct(self) -> bool:
        """Whether equal values count once."""


def aggregate_type(
    call: _Call, types: Sequence[pa.DataType], written: str | None = None
) -> pa.DataType:
    """The type of the results of a call over columns of the given types.

    Errors name the function as it was written, if that is given.
    """
    if call.column is None:
        return pa.int64()
    name, kind = call.function, types[call.column]
    label = written or name
    if call.distinct and has_map(kind):
        raise PredicateError(
            f"{label}(DISTINCT …) cannot compare maps",
            detail=f"got {type_name(kind)}",
            hint="use single entries of the map",
        )
    if name == "COUNT":
        return pa.int64()
    if name in ("MIN", "MAX"):
        return _orderable(label, kind, or_struct=True)
    if name in ("BIT_AND", "BIT_OR", "BIT_XOR"):
        return _whole_number(label, kind)
    if name in _OF_VALUES:
        return _of_values(name, label, kind)
    if name in ("COVAR_SAMP", "COVAR_POP"):  # of pairs of doubles
        return pa.float64()
    if pat.is_null(kind):
        return pa.float64()
    if kind == INTERVAL and name in ("SUM", "AVG"):
        return kind
    if not is_number(kind):
        raise PredicateError(
            f"{label} needs a number", detail=f"got {type_name(kind)}", hint=_number_hint(kind)
        )
    if name == "APPROX_PERCENTILE":
        return kind
    if name == "SUM":
        return _sum(kind)
    if name == "AVG" and pat.is_decimal(kind):
        return pa.decimal128(
            min(_MOST_DIGITS, kind.precision + 4), min(_MOST_DIGITS, kind.scale + 4)
        )
    return pa.float64()


def _of_values(name: str, label: str, kind: pa.DataType) -> pa.DataType:
    """The type of results that are one value of a group, or all of them."""
    if name == "MODE":
        return _orderable(label, kind)
    if name == "COLLECT_SET":
        return pa.list_(_orderable(label, kind))
    parts = [kind.field(i).type for i in range(kind.num_fields)]
    for one in parts if name == "STRING_AGG" else parts[:-1]:
        _orderable(label, one)
    value = parts[-1]
    if name == "COLLECT_LIST" and has_map(value):
        raise PredicateError(
            f"{label} needs values that have an order",
            detail=f"got {type_name(value)}",
            hint="use single entries of the map",
        )
    if name == "STRING_AGG":
        if not (pat.is_string(value) or pat.is_large_string(value) or pat.is_null(value)):
            raise PredicateError(
                f"{label} needs texts", detail=f"got {type_name(value)}", hint="cast them to STRING"
            )
        return pa.string()
    return pa.list_(value) if name == "COLLECT_LIST" else value


def _number_hint(kind: pa.DataType) -> str:
    """The hint how values that are not numbers can be aggregated."""
    if pat.is_nested(kind):
        return "use single fields or elements"
    if pat.is_boolean(kind):
        return "cast it: CAST(x AS INT)"
    if pat.is_string(kind) or pat.is_large_string(kind) or pat.is_timestamp(kind):
        return "cast it: CAST(x AS DOUBLE)"
    return "use COUNT, MIN or MAX"


def _sum(kind: pa.DataType) -> pa.DataType:
    if is_integer(kind):
        return pa.int64()
    if pat.is_decimal(kind):
        return pa.decimal128(min(_MOST_DIGITS, kind.precision + 10), kind.scale)
    return pa.float64()


def _whole_number(name: str, kind: pa.DataType) -> pa.DataType:
    if is_integer(kind):
        return kind
    raise PredicateError(
        f"{name} needs whole numbers",
        detail=f"got {type_name(kind)}",
        hint="cast it: CAST(x AS BIGINT)",
    )


def _orderable(name: str, kind: pa.DataType, *, or_struct: bool = False) -> pa.DataType:
    """The type itself; structs are ordered by their fields, one after the other."""
    if or_struct and pat.is_struct(kind):
        for number in range(kind.num_fields):
            _orderable(name, kind.field(number).type)
    elif pat.is_nested(kind):
        raise PredicateError(
            f"{name} needs values that have an order",
            detail=f"got {type_name(kind)}",
            hint="use single fields or elements",
        )
    return kind


def has_map(kind: pa.DataType) -> bool:
    """Whether a value of a type is a map, or has one inside."""
    if pat.is_map(kind):
        return True
    return any(has_map(kind.field(i).type) for i in range(kind.num_fields))
