"""ORDER BY … LIMIT against sorting everything at every instant."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.errors import InternalError
from nilometer.kernels import top_counts
from nilometer.kernels.order_codes import order_codes
from nilometer.kernels.top_counts import RowEvents, TopCounts
from nilometer.local.memory_store import MemoryStore
from nilometer.model.time import EARLIEST, FOREVER
from nilometer.operators import top_rows
from nilometer.operators.change_specs import SortKey
from nilometer.operators.top_rows import TopRowsSpec
from tests.changes import VALUES, Change, as_batch, as_changes, check, stories

LONG = pa.int64()


def compare(a: Any, b: Any) -> int:
    """Spark's order of two values or identities of values, NULLs first."""
    if a is None or b is None:
        return (a is not None) - (b is not None)
    if isinstance(a, tuple):
        for x, y in zip(a, b, strict=False):
            if sign := compare(x, y):
                return sign
        return len(a) - len(b)
    if isinstance(a, str) and isinstance(b, str):
        a, b = a.encode(), b.encode()
    elif isinstance(a, str) or isinstance(b, str):  # NaN, the largest
        return isinstance(a, str) - isinstance(b, str)
    return (a > b) - (a < b)


def compare_rows(order: Sequence[SortKey], a: tuple[Any, ...], b: tuple[Any, ...]) -> int:
    for key in order:
        x, y = a[key.column], b[key.column]
        if (x is None) != (y is None):
            return 1 if (x is None) != key.nulls_first else -1
        if sign := compare(x, y):
            return -sign if key.descending else sign
    return compare(a, b)


def naive(spec: TopRowsSpec, held: Counter[Any]) -> Counter[Any]:
    by_order = functools.cmp_to_key(lambda a, b: compare_rows(spec.order, a, b))
    return Counter(sorted(held.elements(), key=by_order)[spec.offset : spec.offset + spec.limit])


@pytest.mark.parametrize("kind", VALUES)
def test_codes_compare_as_values_do(kind: pa.DataType) -> None:
    values = VALUES[kind]
    codes = order_codes(pa.array(values, kind)).tolist()
    for a, x in zip(values, codes, strict=True):
        for b, y in zip(values, codes, strict=True):
            sign = compare(_plain(a), _plain(b))
            assert (x > y) - (x < y) == (sign > 0) - (sign < 0), (a, b)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, dict):
        return tuple(_plain(item) for item in value.values())
    return tuple(map(_plain, value)) if isinstance(value, list) else value


def test_long_keys_are_ordered_too() -> None:
    rng = np.random.default_rng(4)
    columns = [rng.integers(0, 3000, 3000) for _ in range(7)]
    spec = TopRowsSpec((SortKey(3, descending=True),), 1, 0, (LONG,) * 7)
    ranks = spec.ranks([pa.array(column) for column in columns], 3000)
    rows = sorted(range(3000), key=lambda r: (-columns[3][r], *(int(c[r]) for c in columns)))
    assert np.argsort(ranks, kind="stable").tolist() == rows


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_the_first_rows_at_every_instant(data: st.DataObject) -> None:
    story = data.draw(stories(1))
    keys = st.builds(
        SortKey, st.integers(0, max(0, len(story.types) - 1)), st.booleans(), st.booleans()
    )
    order = tuple(data.draw(st.lists(keys, max_size=3))) if story.types else ()
    spec = TopRowsSpec(
        order, data.draw(st.integers(0, 4)), data.draw(st.integers(0, 3)), story.types
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(top_rows, "_SPARE", data.draw(st.sampled_from([1, 2, 4096])))
        patched.setattr(top_rows, "_LARGE", 1)
        patched.setattr(top_counts, "_SMALL", data.draw(st.sampled_from([1, 8, 1 << 14])))
        check(spec, story, lambda held: naive(spec, held[0]))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 11), st.integers(0, 9), st.integers(-2, 2)), max_size=20),
    st.integers(0, 6),
    st.integers(0, 6),
    st.sampled_from([1, 20]),
)
def test_shown_copies_over_time(
    counts: list[int], moves: list[tuple[int, int, int]], offset: int, limit: int, small: int
) -> None:
    net: Counter[tuple[int, int]] = Counter()
    for row, time, diff in moves:
        net[time, row % len(counts)] += diff
    now, events, expected = list(counts), [], []
    for time in sorted({time for time, _ in net}):
        before = _shown(now, offset, limit)
        for row in range(len(counts)):
            diff = max(net[time, row], -now[row])
            now[row] += diff
            if diff:
                events.append((row, time, diff))
        after = _shown(now, offset, limit)
        expected += [(row, time, after[row] - before[row]) for row in after | before]
    table = np.array(events, np.int64).reshape(-1, 3)
    given_ = RowEvents(*(table[:, i].copy() for i in range(3)))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(top_counts, "_SMALL", small)
        shown = TopCounts(offset, offset + limit).changes(np.array(counts, np.int64), given_)
    changes = zip(shown.rows.tolist(), shown.times.tolist(), shown.diffs.tolist(), strict=True)
    assert sorted(changes) == sorted(change for change in expected if change[2])


def _shown(counts: list[int], offset: int, limit: int) -> Counter[int]:
    copies = [row for row, count in enumerate(counts) for _ in range(count)]
    return Counter(copies[offset : offset + limit])


def test_a_window_much_larger_than_the_head(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top_rows, "_SPARE", 20)
    rng = np.random.default_rng(5)
    spec = TopRowsSpec((SortKey(0, descending=True),), 3, 1, (LONG,))
    operator, now, shown = spec.start(MemoryStore()), Counter[int](), Counter[int]()
    rows = [(int(value), time) for time, value in enumerate(rng.integers(0, 10_000, 3000))]
    for period in range(0, 5000, 100):
        coming: list[Change] = [((v,), t, 1) for v, t in rows if period <= t < period + 100]
        going: list[Change] = [
            ((v,), t + 900, -1) for v, t in rows if period <= t + 900 < period + 100
        ]
        out = as_changes(operator.process([as_batch(coming + going, [LONG])], period + 100))
        for (value,), _, diff in coming + going:
            now[value] += diff
        for (value,), _, diff in out:
            shown[value] += diff
        assert +shown == Counter(sorted((+now).elements(), reverse=True)[1:4])
        assert sum(ref.rows for ref in operator.stored[0].refs) <= 300
    assert not +now
    assert not +shown


def test_rows_behind_the_boundary_are_shown_when_the_head_is_empty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(top_rows, "_SPARE", 1)
    monkeypatch.setattr(top_rows, "_LARGE", 1)
    operator = TopRowsSpec((), 1, 0, (LONG,)).start(MemoryStore())

    def process(changes: list[Change], frontier: int) -> list[Change]:
        return as_changes(operator.process([as_batch(changes, [LONG])], frontier))

    assert process([((value,), 1, 1) for value in range(9)], 2) == [((0,), 1, 1)]
    assert process([((value,), 2, -1) for value in range(3, 9)], 3) == []
    gone: list[Change] = [((value,), 3, -1) for value in range(3)]
    assert sorted(process([*gone, ((7,), 3, 1)], 4)) == [((0,), 3, -1), ((7,), 3, 1)]


def test_what_holds_since_ever_is_shown_since_ever() -> None:
    operator = TopRowsSpec((), 1, 0, (LONG,)).start(MemoryStore())
    changes: list[Change] = [((2,), EARLIEST, 2), ((1,), 5, 1)]
    out = as_changes(operator.process([as_batch(changes, [LONG])], FOREVER))
    assert out == [((2,), EARLIEST, 1), ((1,), 5, 1), ((2,), 5, -1)]


def test_a_count_below_zero_is_a_fault() -> None:
    operator = TopRowsSpec((), 1, 0, (pa.decimal128(10, 2),)).start(MemoryStore())
    changes = as_batch([((Decimal("1.00"),), 5, -1)], [pa.decimal128(10, 2)])
    with pytest.raises(InternalError, match="ORDER BY was told to remove rows"):
        operator.process([changes], 10)
