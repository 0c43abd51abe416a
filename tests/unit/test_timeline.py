"""Numbers for equal rows, one value for equal ones, and totals over time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.kernels.canonical import canonical
from nilometer.kernels.row_groups import RowGroups, group_ids, row_groups
from nilometer.kernels.row_ids import RowIds, identify_rows, join_ids
from nilometer.kernels.timeline import run_timeline
from nilometer.model.time import EARLIEST, LATEST
from tests.changes import VALUES, bits, identity

MAP = pa.map_(pa.string(), pa.float64())
MORE_VALUES: dict[pa.DataType, list[Any]] = {
    **VALUES,
    MAP: [None, [], [("a", 0.0)], [("a", -0.0)], [("a", math.nan)], [("b", None)]],
    pa.float32(): [None, 0.0, -0.0, math.nan, 1.5],
    pa.list_(pa.string()): [None, [], [None], ["a", "b"], ["ab"], ["a"]],
    pa.binary(): [None, b"", b"\0", b"\0" * 8, b"\0" * 9, b"abc"],
    pa.null(): [None],
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[pa.DataType], list[tuple[Any, ...]]]:
    types = draw(st.lists(st.sampled_from(list(MORE_VALUES)), max_size=3))
    rows = st.tuples(*(st.sampled_from(MORE_VALUES[kind]) for kind in types))
    return types, draw(st.lists(rows, max_size=20))


def as_columns(types: list[pa.DataType], rows: list[tuple[Any, ...]]) -> list[pa.Array]:
    return [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(types)]


def check_groups(groups: RowGroups, known: list[Any]) -> None:
    assert len(groups) == len(set(known))
    assert [known[first] for first in groups.firsts[groups.numbers]] == known
    assert [known.index(known[first]) for first in groups.firsts] == groups.firsts.tolist()
    ids = list(zip(groups.ids.h1.tolist(), groups.ids.h2.tolist(), strict=True))
    assert ids == sorted(ids)


@settings(max_examples=500, deadline=None)
@given(tables())
def test_equal_rows_have_one_number(table: tuple[list[pa.DataType], list[tuple[Any, ...]]]) -> None:
    types, rows = table
    check_groups(row_groups(as_columns(types, rows), len(rows)), list(map(identity, rows)))


@settings(max_examples=200, deadline=None)
@given(tables(), st.integers(0, 20))
def test_identities_do_not_depend_on_the_other_rows(
    table: tuple[list[pa.DataType], list[tuple[Any, ...]]], cut: int
) -> None:
    types, rows = table
    columns = as_columns(types, rows)
    whole = identify_rows(columns, len(rows))
    parts = [
        identify_rows([column.slice(a, b - a) for column in columns], max(0, min(b, len(rows)) - a))
        for a, b in ((0, min(cut, len(rows))), (min(cut, len(rows)), len(rows)))
    ]
    joined = join_ids(parts)
    assert (joined.h1 == whole.h1).all()
    assert (joined.h2 == whole.h2).all()


@pytest.mark.parametrize("distinct", [10, 5000])
def test_repeated_texts_have_the_same_identities_as_single_ones(distinct: int) -> None:
    texts = [None if i % distinct == 3 else f"sensor {i % distinct}" for i in range(5000)]
    whole = identify_rows([pa.array(texts)], len(texts))
    some = identify_rows([pa.array(texts[:100])], 100)
    assert (whole.h1[:100] == some.h1).all()
    assert (whole.h2[:100] == some.h2).all()
    check_groups(row_groups([pa.array(texts)], len(texts)), texts)


def test_no_number_is_taken_for_null() -> None:
    (null,) = identify_rows([pa.array([None], pa.int64())], 1).h1.tolist()
    twice_unmixed = _unmix(_unmix(null % 2**64))
    alike = np.array([twice_unmixed], np.uint64).view(np.int64)
    columns = [pa.array([int(alike[0]), None])]
    assert len(set(identify_rows(columns, 2).h1.tolist())) == 1
    assert len(row_groups(columns, 2)) == 2


def _unmix(word: int) -> int:
    """What `mix` makes this word of."""
    product = word ^ (word >> 32)
    factor = pow(0x9E3779B97F4A7C15, -1, 2**64)
    half = product * factor % 2**64
    return half ^ (half >> 32)


def test_both_hashes_are_good_on_their_own() -> None:
    size = 50_000
    numbers = np.arange(size)
    for columns in (
        [pa.array(numbers // 250), pa.array(numbers % 250)],
        [pa.array([f"key number {i}" for i in numbers])],
        [pa.array([{"a": i // 7, "b": str(i % 7)} for i in numbers.tolist()])],
        [pa.array([[i // 9, i % 9] for i in numbers.tolist()])],
    ):
        ids = identify_rows(columns, size)
        assert len(np.unique(ids.h1)) == len(np.unique(ids.h2)) == size
        assert np.count_nonzero(ids.h1 == ids.h2) <= 1  # zero has the hash zero


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1]), st.integers(0, 2))))
def test_colliding_hashes_are_told_apart(pairs: list[tuple[int, int]]) -> None:
    both = np.array(pairs, np.int64).reshape(-1, 2)
    check_groups(group_ids(RowIds(both[:, 0].copy(), both[:, 1].copy())), pairs)


@settings(max_examples=200, deadline=None)
@given(tables())
def test_equal_values_become_equal_bits(
    table: tuple[list[pa.DataType], list[tuple[Any, ...]]],
) -> None:
    types, rows = table
    for i, (kind, column) in enumerate(zip(types, as_columns(types, rows), strict=True)):
        values = [row[i] for row in rows]
        shown = canonical(column.slice(len(column) // 3))
        assert shown.type == kind
        assert list(map(identity, shown.to_pylist())) == list(
            map(identity, column.slice(len(column) // 3).to_pylist())
        )
        whole = map(bits, canonical(column).to_pylist())
        assert len(set(whole)) == len(set(map(identity, values)))


def test_columns_without_floats_are_not_copied() -> None:
    column = pa.array([{"a": "x"}])
    assert canonical(column) is column


events = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.sampled_from([EARLIEST, -1, 0, 1, 2, 3, LATEST]),
        st.integers(-3, 3),
        st.sampled_from([0, 1, 2**62, -(2**62)]),
    ),
    max_size=25,
)


@settings(max_examples=300, deadline=None)
@given(events, st.lists(st.tuples(*[st.integers(-5, 5)] * 2), min_size=5, max_size=5))
def test_totals_over_time(happened: list[Any], initial: list[tuple[int, int]]) -> None:
    table = np.array(happened, np.int64).reshape(-1, 4)
    groups, times, *deltas = (table[:, i].copy() for i in range(4))
    first = [np.array([pair[i] for pair in initial], np.int64) for i in range(2)]
    line = run_timeline(groups, times, deltas, first)
    instants = sorted({(group, time) for group, time, _, _ in happened})
    assert list(zip(line.groups.tolist(), line.times.tolist(), strict=True)) == instants
    for place, (group, time) in enumerate(instants):
        for i in range(2):
            mine = [e for e in happened if e[0] == group]
            after = initial[group][i] + sum(e[2 + i] for e in mine if e[1] <= time)
            before = initial[group][i] + sum(e[2 + i] for e in mine if e[1] < time)
            assert (int(line.after[i][place]) - after) % 2**64 == 0
            assert (int(line.before[i][place]) - before) % 2**64 == 0
    in_order = sorted(range(len(happened)), key=lambda e: (happened[e][0], happened[e][1]))
    assert line.order.tolist() == in_order
    assert [(happened[e][0], happened[e][1]) for e in line.order[line.ends]] == instants
    lasts = [
        i for i, x in enumerate(instants) if i + 1 == len(instants) or instants[i + 1][0] != x[0]
    ]
    assert line.lasts.tolist() == lasts
