"""The most frequent keys of a bucket, against exact counts."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.kernels.frequent_hashes import frequent_hashes
from nilometer.kernels.routing import Routing, route_by_keys, route_without_key
from nilometer.operators.key_counts import (
    MOST_KEYS,
    MOST_ROWS,
    RoutingKey,
    count_keys,
    routing_keys,
)

_ONE = RoutingKey((((0,)),), (("k",),))
_HASHES = st.lists(st.integers(0, 40), max_size=300)


def _batch(*columns: object) -> pa.RecordBatch:
    arrays = [pa.array(one) for one in columns]
    return pa.RecordBatch.from_arrays(arrays, [f"c{i}" for i in range(len(arrays))])


@settings(max_examples=1000)
@given(_HASHES, st.integers(1, 50), st.sampled_from([1, 1 << 54, 0x9E3779B97F4A7C15]))
def test_frequent_hashes_are_exact(values: list[int], least: int, factor: int) -> None:
    hashes = np.array([value * factor % (1 << 64) for value in values], np.uint64)
    frequent, counts = frequent_hashes(hashes, least)
    exact = {one: n for one, n in Counter(hashes.tolist()).items() if n >= least}
    assert dict(zip(frequent.tolist(), counts.tolist(), strict=True)) == exact
    assert frequent.tolist() == sorted(exact)


@settings(max_examples=1000)
@given(st.lists(_HASHES, min_size=1, max_size=3))
def test_every_key_with_its_part_of_few_rows_is_counted_exactly(streams: list[list[int]]) -> None:
    key = RoutingKey(((0,),) * len(streams), (("k",),) * len(streams))
    counted = count_keys([key], [_batch(pa.array(one, pa.int64())) for one in streams])
    exact = Counter(value for one in streams for value in one)
    least = exact.total() / MOST_KEYS
    wanted = {f"k = {value}": n for value, n in exact.items() if n > least}
    assert {one.text: one.rows for one in counted} == wanted
    assert len(counted) <= MOST_KEYS


@pytest.mark.parametrize("seed", range(5))
def test_many_rows_are_estimated(seed: int) -> None:
    random = np.random.default_rng(seed)
    first = np.where(random.random(300_000) < 0.4, 7, random.zipf(1.3, 300_000) % 5000)
    second = np.sort(random.zipf(1.5, 100_000) % 5000)  # in order, which no stride may fall for
    key = RoutingKey(((0,), (0,)), (("k",), ("k",)))
    counted = count_keys([key], [_batch(first), _batch(second)])
    exact = Counter([*first.tolist(), *second.tolist()])
    estimates = {int(one.text.removeprefix("k = ")): one.rows for one in counted}
    total, sampled = exact.total(), 0.03
    for value, n in exact.items():
        assert estimates.get(value, 0) <= n + sampled * total
        assert estimates.get(value, 0) >= n - (sampled + 1 / MOST_KEYS) * total
    assert max(estimates, key=lambda value: estimates[value]) == exact.most_common(1)[0][0]
    assert total > 40 * MOST_ROWS


def test_keys_are_shown_as_conditions() -> None:
    values = [
        ("it's", "'it''s'"),
        ("x" * 100, f"'{'x' * 60}…'"),
        (None, None),
        (1.5, "1.5"),
        (True, "True"),
        (b"\x01\xff", "01ff"),
        (Decimal("1.50"), "1.50"),
        (date(2026, 1, 31), "'2026-01-31'"),
        (datetime(2026, 1, 31, 12, tzinfo=UTC), "'2026-01-31 12:00:00'"),
        ([1, 2], "[1, 2]"),
        ({"a": 1}, "{'a': 1}"),
    ]
    for value, shown in values:
        kind = pa.string() if value is None else None
        (one,) = count_keys([_ONE], [_batch(pa.array([value], kind))])
        assert one.text == ("k IS NULL" if shown is None else f"k = {shown}")
    (one,) = count_keys([RoutingKey(((1, 0),), (("b", "a"),))], [_batch([1, 1], ["x", "x"])])
    assert one.text == "b = 'x' AND a = 1"


def test_dates_that_python_does_not_know_are_shown() -> None:
    days = pa.array([10_000_000], pa.int32()).view(pa.date32())
    (one,) = count_keys([_ONE], [_batch(days)])
    assert one.text == "k = '+29349-01-26'"
    (one,) = count_keys([_ONE], [_batch(pa.StructArray.from_arrays([days], ["d"]))])
    assert one.text == "k = …"


def test_equal_keys_of_several_streams_are_one() -> None:
    key = RoutingKey(((0,), None, (1,)), (("a",), (), ("b",)))
    rows = [_batch([1, 1, 2]), _batch([5]), _batch([0, 0], [1, 3])]
    counted = count_keys([key], rows)
    assert {one.text: one.rows for one in counted} == {"a = 1": 3, "a = 2": 1, "b = 3": 1}


def test_a_grid_has_a_key_for_each_dimension() -> None:
    routing = route_by_keys([((0,), None), ((0,), (1,)), (None, (0,))], 4)
    keys = routing_keys(routing, [("x",), ("x", "y"), ("y",)])
    assert keys == (
        RoutingKey(((0,), (0,), None), (("x",), ("x",), ())),
        RoutingKey((None, (1,), (0,)), ((), ("y",), ("y",))),
    )


def test_what_only_deals_rows_out_is_no_key() -> None:
    assert routing_keys(route_without_key(((0,), (0, 1)), 4), [("a",), ("b", "c")]) == ()
    assert routing_keys(Routing((1,), ((None,),)), [("a",)]) == ()
