"""Keys of tuples are equal exactly where Spark's equality says so."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from math import nan
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nilometer.kernels.chunk import RowLayout
from nilometer.kernels.equality import equal_rows
from nilometer_papers.algorithms.conditions import Always, LinkedKeys, SameKey
from nilometer_papers.algorithms.tuple_keys import condition_of, tuple_keys

POINT = pa.struct([("x", pa.float64()), ("name", pa.string())])
VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int64(), [0, 1, -1, 1 << 62]),
    (pa.int32(), [0, 1, -1]),
    (pa.bool_(), [True, False]),
    (pa.float64(), [0.0, -0.0, nan, -nan, 1.5]),
    (pa.float32(), [0.0, -0.0, nan, 1.5]),
    (pa.string(), ["", "a", "b", "ab"]),
    (pa.binary(), [b"", b"a"]),
    (pa.timestamp("us", "UTC"), [datetime(2026, 1, 1, tzinfo=UTC), datetime(1970, 1, 1)]),
    (pa.decimal128(10, 2), [Decimal("1.00"), Decimal("-1.00")]),
    (pa.decimal128(38, 2), [Decimal("1.00"), Decimal("-1.00")]),
    (POINT, [{"x": 0.0, "name": "a"}, {"x": -0.0, "name": "a"}, {"x": nan, "name": None}]),
    (POINT, [{"x": None, "name": None}, {"x": nan, "name": None}]),
    (pa.list_(pa.float64()), [[], [0.0], [-0.0], [nan, None], [nan, None], [None], [nan]]),
    (pa.list_(POINT), [[{"x": nan, "name": "a"}], [None], []]),
]


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=lambda one: str(one)[:20])
def test_keys_are_equal_where_values_are(kind: pa.DataType, values: list[Any]) -> None:
    column = pa.array([values[0], *values, *values], kind).slice(1)
    keys = tuple_keys(batch(column), RowLayout(0, ((1,),)), SameKey())
    places = np.arange(len(column))
    left, right = (p.ravel() for p in np.meshgrid(places, places))
    same = equal_rows(column.take(pa.array(left)), column.take(pa.array(right)))
    assert [keys[a] == keys[b] for a, b in zip(left, right, strict=True)] == same.tolist()
    assert all(hash(keys[a]) == hash(keys[b]) for a, b in zip(left[same], right[same], strict=True))


def batch(*columns: pa.Array) -> pa.RecordBatch:
    times = pa.array(range(len(columns[0])), pa.timestamp("us", "UTC"))
    names = ["ts", *(f"c{i}" for i in range(len(columns)))]
    return pa.RecordBatch.from_arrays([times, *columns], names)


def test_a_condition_for_every_form_of_keys() -> None:
    none, x, y = RowLayout(0, ()), RowLayout(0, ((1,), None)), RowLayout(0, ((1,), (2,)))
    assert condition_of([none, none]) == Always()
    assert condition_of([y, y]) == SameKey()
    assert condition_of([x, y]) == LinkedKeys((frozenset({0, 1}), frozenset({1})))


def test_a_place_for_every_key() -> None:
    rows = batch(pa.array(["a", "b"]), pa.array(["c", "d"]))
    assert tuple_keys(rows, RowLayout(0, ((1, 2),)), SameKey()) == [("a", "c"), ("b", "d")]
    assert tuple_keys(rows, RowLayout(0, ((1,), (2,))), SameKey()) == [("a", "c"), ("b", "d")]
    one, two = LinkedKeys((frozenset({0}),)), LinkedKeys((frozenset({1}), frozenset({0, 1})))
    assert tuple_keys(rows, RowLayout(0, (None, (2,))), two) == [(None, "c"), (None, "d")]
    assert tuple_keys(rows, RowLayout(0, ((1,),)), one) == [("a",), ("b",)]
    assert tuple_keys(rows, RowLayout(0, ()), Always()) == [None, None]
