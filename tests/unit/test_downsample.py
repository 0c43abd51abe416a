"""Buckets of time and points that matter, against plain Python."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.errors import InputError, TooLargeError
from nilometer.kernels.lttb import largest_triangles
from nilometer.kernels.time_buckets import BucketTotals
from nilometer.log.layout import TIMESTAMP
from nilometer.past import downsample
from nilometer.past.downsample import RowSource, Thinning, flatten, thinned

SCHEMA = pa.schema([("ts", TIMESTAMP), ("k", pa.string()), ("v", pa.float64()), ("n", pa.int32())])
VALUES = st.one_of(st.none(), st.floats(-1e6, 1e6), st.just(math.nan))
ROWS = st.lists(
    st.tuples(
        st.integers(-50, 200),
        st.sampled_from(["a", "b", None]),
        VALUES,
        st.one_of(st.none(), st.integers(-9, 9)),
    ),
    max_size=80,
)


def source_of(rows: list[tuple[Any, ...]], size: int = 7) -> RowSource:
    def column(place: int, kind: pa.DataType) -> pa.Array:
        return pa.array([one[place] for one in rows], kind, from_pandas=False)

    table = pa.Table.from_arrays(
        [column(at, one.type) for at, one in enumerate(SCHEMA)], schema=SCHEMA
    )
    return RowSource("s", SCHEMA, "ts", iter(table.to_batches(size)))


def table_of(result: tuple[pa.Schema, Any]) -> pa.Table:
    return pa.Table.from_batches(list(result[1]), result[0])


def micros(table: pa.Table) -> list[int]:
    return table.column("ts").cast(pa.int64()).to_pylist()  # type: ignore[no-any-return]


def naive_triangles(points: list[tuple[float, float]], count: int) -> list[int]:
    """The algorithm as Steinarsson's thesis writes it, one point after the other."""
    size = len(points)
    if size <= count:
        return list(range(size))
    every = (size - 2) / (count - 2)
    chosen, last = [0], 0
    for at in range(count - 2):
        first, end = math.floor(at * every) + 1, math.floor((at + 1) * every) + 1
        behind = points[end : min(math.floor((at + 2) * every) + 1, size)]
        x = sum(one[0] for one in behind) / len(behind)
        y = sum(one[1] for one in behind) / len(behind)
        best, largest = first, -1.0
        for place in range(first, end):
            area = abs(
                (points[last][0] - x) * (points[place][1] - points[last][1])
                - (points[last][0] - points[place][0]) * (y - points[last][1])
            )
            if area > largest:
                best, largest = place, area
        chosen.append(best)
        last = best
    return [*chosen, size - 1]


@given(st.lists(st.integers(-1000, 1000), max_size=120), st.integers(3, 40))
def test_points_are_those_of_the_plain_algorithm(values: list[int], count: int) -> None:
    times = np.cumsum(np.arange(len(values)) % 5 + 1)
    chosen = largest_triangles(times, np.array(values, np.float64), count)
    points = [(float(t - times[0]), float(v)) for t, v in zip(times.tolist(), values, strict=True)]
    expected = naive_triangles(points, count)
    assert len(chosen) == len(expected) == min(count, len(values))
    for mine, theirs in zip(chosen.tolist(), expected, strict=True):
        if mine != theirs:  # means are added up in another order: areas may differ in the last bit
            assert points[mine][1] == pytest.approx(points[theirs][1])


@given(ROWS, st.integers(1, 60), st.booleans())
def test_buckets_are_those_of_plain_python(
    rows: list[tuple[Any, ...]], length: int, has_series: bool
) -> None:
    per = ("k",) if has_series else ()
    table = table_of(thinned(source_of(rows), (0, 150), Thinning(("v", "n"), per, bucket=length)))
    groups: dict[tuple[Any, ...], list[tuple[Any, ...]]] = defaultdict(list)
    for row in rows:
        if 0 <= row[0] <= 150:
            groups[(row[0] // length * length, *([row[1]] if has_series else []))].append(row)
    expected = {}
    for key, some in groups.items():
        figures: list[Any] = []
        for place in (2, 3):
            values = [
                one[place] for one in some if one[place] is not None and one[place] == one[place]
            ]
            figures += (
                [min(values), max(values), sum(values) / len(values)] if values else [None] * 3
            )
        expected[key] = [*figures, len(some)]
    names = ["v_min", "v_max", "v_mean", "n_min", "n_max", "n_mean", "rows"]
    assert table.column_names == ["ts", *per, *names]
    keys = list(zip(micros(table), *(table.column(one).to_pylist() for one in per), strict=True))
    assert sorted(keys, key=repr) == sorted(expected, key=repr)
    assert [key[0] for key in keys] == sorted(key[0] for key in keys)
    for key, row in zip(keys, table.select(names).to_pylist(), strict=True):
        assert list(row.values()) == pytest.approx(expected[key], nan_ok=True)


@given(ROWS, st.integers(3, 9))
def test_points_of_each_series(rows: list[tuple[Any, ...]], count: int) -> None:
    table = table_of(thinned(source_of(rows), (None, None), Thinning(("v",), ("k",), points=count)))
    assert table.column_names == ["ts", "k", "v"]
    assert micros(table) == sorted(micros(table))
    for key in ("a", "b", None):
        some = [r for r in rows if r[1] == key and r[2] is not None and math.isfinite(r[2])]
        some.sort(key=lambda one: one[0])
        chosen = naive_triangles([(float(r[0] - some[0][0]), r[2]) for r in some], count)
        mine = [
            (t, v)
            for t, k, v in zip(
                micros(table), *(table.column(c).to_pylist() for c in ("k", "v")), strict=True
            )
            if k == key
        ]
        assert len(mine) == len(chosen)
        assert set(mine) <= {(r[0], r[2]) for r in some}
        if some:
            assert (mine[0], mine[-1][0]) == ((some[0][0], some[0][2]), some[-1][0])


def test_a_range_has_both_its_ends_and_batches_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downsample, "_BATCH_ROWS", 4)
    rows = [(at, "a", float(at), at) for at in range(20)]
    schema, batches = thinned(source_of(rows, 20), (3, 12), Thinning(("V", "ts")))
    parts = list(batches)
    assert schema.names == ["v", "ts"]
    assert [one.column("v").to_pylist() for one in parts] == [
        [3.0, 4.0, 5.0, 6.0],
        [7.0, 8.0, 9.0, 10.0],
        [11.0, 12.0],
    ]


def test_fields_of_structs_are_columns() -> None:
    rows = pa.RecordBatch.from_pylist(
        [{"id": 1, "reading": {"v": 2.0, "on": True}}, {"id": 2, "reading": None}]
    )
    flat = flatten(rows)
    assert flat.schema.names == ["id", "reading.v", "reading.on"]
    assert flat.column("reading.v").to_pylist() == [2.0, None]


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(at, "a", float(at), at) for at in range(20)]
    for wanted, said in (
        (Thinning(bucket=5, points=5), "not both"),
        (Thinning(("w",)), "s has no column w"),
        (Thinning(("k",), bucket=5), "column k has no numbers"),
        (Thinning(points=5), "values of one column"),
        (Thinning(("v",), ("v",), points=5), "do not distinguish series"),
    ):
        with pytest.raises(InputError) as refused:
            thinned(source_of(rows), (None, None), wanted)
        assert said in str(refused.value)
    no_time = RowSource("s", SCHEMA, None, iter(()))
    with pytest.raises(InputError, match="have no time"):
        thinned(no_time, (1, None), Thinning())
    monkeypatch.setattr(downsample, "MOST_POINTS", 10)
    with pytest.raises(TooLargeError, match="more than 10 rows"):
        thinned(source_of(rows), (None, None), Thinning(("v",), points=5))
    totals = BucketTotals("ts", 1, (), ("v",), limit=10)
    for batch in source_of(rows).batches:
        totals.add(batch.select(["ts", "v"]))
    with pytest.raises(TooLargeError, match="more than 10 buckets"):
        totals.finish()
