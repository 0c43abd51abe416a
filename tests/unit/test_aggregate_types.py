"""The types of aggregates are Spark's."""

from __future__ import annotations

import pyarrow as pa
import pytest

from nilometer.errors import PredicateError
from nilometer.kernels.aggregate_types import aggregate_type
from nilometer.operators.change_specs import AggregateCall, AggregateFunction

F = AggregateFunction


@pytest.mark.parametrize(
    ("function", "kind", "expected"),
    [
        (F.COUNT, pa.string(), pa.int64()),
        (F.SUM, pa.int8(), pa.int64()),
        (F.SUM, pa.float32(), pa.float64()),
        (F.SUM, pa.decimal128(10, 2), pa.decimal128(20, 2)),
        (F.SUM, pa.decimal128(38, 6), pa.decimal128(38, 6)),
        (F.SUM, pa.null(), pa.float64()),
        (F.SUM, pa.duration("us"), pa.duration("us")),
        (F.AVG, pa.duration("us"), pa.duration("us")),
        (F.AVG, pa.int32(), pa.float64()),
        (F.AVG, pa.decimal128(10, 2), pa.decimal128(14, 6)),
        (F.AVG, pa.decimal128(38, 36), pa.decimal128(38, 38)),
        (F.MIN, pa.timestamp("us", "UTC"), pa.timestamp("us", "UTC")),
        (F.MAX, pa.string(), pa.string()),
        (F.MAX, pa.null(), pa.null()),
        (F.VAR_POP, pa.decimal128(5, 1), pa.float64()),
        (F.PERCENTILE, pa.int64(), pa.float64()),
    ],
)
def test_types(function: F, kind: pa.DataType, expected: pa.DataType) -> None:
    assert aggregate_type(AggregateCall(function, 1), [pa.int8(), kind]) == expected


def test_count_of_rows_has_no_argument() -> None:
    assert aggregate_type(AggregateCall(F.COUNT_ROWS), []) == pa.int64()


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (AggregateCall(F.SUM, 0), pa.string(), "SUM needs a number"),
        (AggregateCall(F.PERCENTILE, 0), pa.bool_(), "PERCENTILE needs a number"),
        (AggregateCall(F.MIN, 0), pa.list_(pa.int8()), "MIN needs values that have an order"),
        (
            AggregateCall(F.COUNT, 0, distinct=True),
            pa.struct({"m": pa.map_(pa.string(), pa.int8())}),
            "COUNT(DISTINCT …) cannot compare maps",
        ),
    ],
)
def test_arguments_that_do_not_fit(call: AggregateCall, kind: pa.DataType, message: str) -> None:
    with pytest.raises(PredicateError) as caught:
        aggregate_type(call, [kind])
    assert caught.value.message == message
    assert caught.value.detail is not None
    assert caught.value.hint is not None
