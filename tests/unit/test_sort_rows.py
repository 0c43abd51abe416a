"""Rows in order: the kernel against a naive version, and complete answers against DuckDB."""

from __future__ import annotations

import math
from functools import cmp_to_key
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import nilometer as nm
from nilometer.kernels.sort_rows import Sorted, sort_places
from tests.duck import connect

VALUES = {
    pa.int64(): st.integers(-3, 3),
    pa.float64(): st.sampled_from([0.0, -0.0, 1.5, -2.0, math.nan, math.inf, -math.inf]),
    pa.string(): st.sampled_from(["", "a", "B", "é", "aa", "\U0001f600", "\uffff"]),
    pa.bool_(): st.booleans(),
    pa.decimal128(6, 2): st.integers(-300, 300),
    pa.list_(pa.int64()): st.lists(st.none() | st.integers(0, 2), max_size=3),
}


@st.composite
def columns(draw: st.DrawFn) -> list[Sorted]:
    size = draw(st.integers(0, 12))
    kinds = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3))
    return [
        Sorted(
            pa.array(draw(st.lists(st.none() | VALUES[k], min_size=size, max_size=size)), k),
            draw(st.booleans()),
            draw(st.booleans()),
        )
        for k in kinds
    ]


def compare(one: Any, other: Any) -> int:
    """Which of two values is larger in Spark."""
    if isinstance(one, list):
        for pair in zip(one, other, strict=False):
            if order := compare_known(*pair):
                return order
        return compare(len(one), len(other))
    if isinstance(one, str):
        return compare(list(one.encode()), list(other.encode()))
    if isinstance(one, float) and (math.isnan(one) or math.isnan(other)):
        return math.isnan(one) - math.isnan(other)
    return (one > other) - (one < other)


def compare_known(one: Any, other: Any) -> int:
    """The same of values that may be missing, which come first."""
    if one is None or other is None:
        return (one is not None) - (other is not None)
    return compare(one, other)


def naive(by: list[Sorted], size: int) -> list[int]:
    values = [one.column.to_pylist() for one in by]

    def order(first: int, second: int) -> int:
        for one, column in zip(by, values, strict=True):
            a, b = column[first], column[second]
            if a is None or b is None:
                sign = (a is not None) - (b is not None)
                sign = sign if one.nulls_first else -sign
            else:
                sign = -compare(a, b) if one.descending else compare(a, b)
            if sign:
                return sign
        return first - second

    return sorted(range(size), key=cmp_to_key(order))


@settings(max_examples=400, deadline=None)
@given(columns())
def test_rows_are_in_the_order_of_spark(by: list[Sorted]) -> None:
    size = len(by[0].column)
    assert sort_places(by, size).tolist() == naive(by, size)


TERMS = ("k", "s", "x", "2", "-k", "k + length(s)", "coalesce(x, 0.5)", "_order", "k % 2")


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_ordered_answers_of_tables_and_streams_beside_duckdb(data: st.DataObject) -> None:
    rows = data.draw(
        st.lists(
            st.tuples(
                st.none() | st.integers(-3, 3),
                st.none() | st.sampled_from(["a", "b", "ab"]),
                st.none() | st.sampled_from([0.25, -1.5, 2.0]),
            ),
            max_size=12,
        )
    )
    names = ("k", "s", "x", "_order")
    kinds = (pa.int64(), pa.string(), pa.float64(), pa.int64())
    given_columns = list(zip(*rows, strict=True)) or [[], [], []]
    table = pa.table(
        [
            *(pa.array(c, k) for c, k in zip(given_columns, kinds, strict=False)),
            pa.array(range(len(rows)), pa.int64()),
        ],
        names,
    )
    terms = data.draw(st.lists(st.sampled_from(TERMS), max_size=3, unique=True))
    order, truth = [], []
    for term in terms:
        descending = data.draw(st.booleans())
        nulls = data.draw(st.sampled_from([None, "FIRST", "LAST"]))
        way = " DESC" if descending else ""
        order.append(f"{term}{way}" + (f" NULLS {nulls}" if nulls else ""))
        spark = nulls or ("LAST" if descending else "FIRST")
        truth.append(f"{term}{way or ' ASC'} NULLS {spark}")
    tail = f" ORDER BY {', '.join(order)}" if order else ""
    count = data.draw(st.none() | st.integers(0, 5))
    last = "" if count is None else f" LIMIT {count}"
    skip = data.draw(st.integers(0, 3)) if last else 0
    last += f" OFFSET {skip}" if skip else ""
    every = [f"{name} ASC NULLS FIRST" for name in names]
    asked = f"SELECT k, s, x, _order FROM t ORDER BY {', '.join([*truth, *every])}{last}"
    con = connect()
    con.register("t", table)
    expected = con.execute(asked).fetchall()
    db = nm.connect()
    db.create_table("T", table)
    times = pa.array([0] * len(rows), pa.timestamp("us", "UTC"))
    db.create_stream("S", table.append_column("ts", times), time="ts")
    for source in ("T", "S"):
        answer = db.sql(f"SELECT k, s, x, _order FROM {source}{tail}{last}")
        plain = answer.select(names).to_pylist()
        assert [tuple(row.values()) for row in plain] == expected, (source, tail, last)
    if "2" not in terms:
        assert db.sql(f"SELECT k FROM T{tail}{last}").column_names == ["k"]
