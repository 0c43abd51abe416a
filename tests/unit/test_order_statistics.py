"""The k-th smallest value against sorted lists, and values as integers of the same order."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.kernels.order_keys import order_keys, values_of_keys
from nilometer.kernels.order_statistics import Elements, kth_smallest, order_by_two
from tests.aggregates import order

elements = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from([-(2**63), -5, 0, 3, 4, 2**63 - 1]),
        st.integers(-2, 3),
    ),
    max_size=30,
)


@settings(max_examples=300, deadline=None)
@given(elements)
def test_every_rank_after_every_element(given_elements: list[tuple[int, int, int]]) -> None:
    held: dict[int, Counter[int]] = {}
    rows: list[tuple[int, int, int]] = []
    queries: list[tuple[int, int, int, int]] = []
    for group, value, wanted in sorted(given_elements, key=lambda element: element[0]):
        mine = held.setdefault(group, Counter())
        count = max(wanted, -mine[value])
        mine[value] += count
        rows.append((group, value, count))
        begin = next(i for i, row in enumerate(rows) if row[0] == group)
        for rank, expected in enumerate(sorted(mine.elements())):
            queries.append((begin, len(rows), rank, expected))
    groups, values, counts = np.array(rows, np.int64).reshape(-1, 3).T
    begins, ends, ranks, expected_values = np.array(queries, np.int64).reshape(-1, 4).T
    got = kth_smallest(Elements(groups, values, counts), begins, ends, ranks)
    assert got.tolist() == expected_values.tolist()


@given(st.lists(st.tuples(st.sampled_from([0, 1, 2, 2**62]), st.integers(-3, 3)), max_size=20))
def test_order_by_two(pairs: list[tuple[int, int]]) -> None:
    major, minor = np.array(pairs, np.int64).reshape(-1, 2).T
    assert [pairs[i] for i in order_by_two(major, minor)] == sorted(pairs)


NUMBERS = [-math.inf, -1.5, -5e-324, 0.0, 5e-324, 1.0, 1e300, math.inf, math.nan]


@pytest.mark.parametrize(
    ("kind", "ascending"),
    [
        (pa.float64(), NUMBERS),
        (pa.float32(), [-math.inf, -1.5, 0.0, 0.5, math.inf, math.nan]),
        (pa.int64(), [-(2**63), -1, 0, 2**63 - 1]),
        (pa.int8(), [-128, 0, 127]),
        (pa.bool_(), [False, True]),
        (pa.date32(), [datetime.date(1900, 1, 1), datetime.date(2026, 5, 5)]),
        (pa.timestamp("us"), [datetime.datetime(1969, 1, 1), datetime.datetime(2026, 1, 1)]),
        (pa.decimal128(18, 2), [Decimal("-9999.99"), Decimal("0.00"), Decimal("0.01")]),
        (pa.duration("us"), [datetime.timedelta(-1), datetime.timedelta(1)]),
    ],
)
def test_keys_keep_the_order_and_lead_back(kind: pa.DataType, ascending: list[Any]) -> None:
    column = pa.array([None, *ascending], kind).slice(1)
    keys = order_keys(column)
    assert (np.diff(keys) > 0).all()
    valid = np.ones(len(keys), np.bool_)
    back = values_of_keys(keys, kind, valid)
    assert back.type == kind
    assert list(map(str, back.to_pylist())) == list(map(str, ascending))
    valid[0] = False
    assert values_of_keys(keys, kind, valid).is_null().to_pylist() == (~valid).tolist()


def test_zeros_are_one_value() -> None:
    assert len(set(order_keys(pa.array([0.0, -0.0])).tolist())) == 1


@given(st.lists(st.floats()))
def test_doubles_in_order(values: list[float]) -> None:
    keys = order_keys(pa.array(values, pa.float64()))
    ordered = [order(values[i]) for i in np.argsort(keys, kind="stable")]
    assert ordered == sorted(ordered)
