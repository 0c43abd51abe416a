"""Changes for tests of operators: made up, cut into periods, and replayed in plain Python."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from nilometer.local.memory_store import MemoryStore
from nilometer.model.time import FOREVER
from nilometer.operators.change_operator import (
    ChangeSpec,
    diffs_of,
    make_changes,
    no_changes,
    row_columns,
    times_of,
)

Row = tuple[Any, ...]
Change = tuple[Row, int, int]
"""A row as a user gave it, the instant, and how many copies come or go."""

POINT = pa.struct([("x", pa.float64()), ("tags", pa.list_(pa.float32()))])
VALUES: dict[pa.DataType, list[Any]] = {
    pa.int64(): [None, 0, 1, -(2**63), 2**63 - 1],
    pa.int32(): [None, 0, 1],
    pa.bool_(): [None, True, False],
    pa.float64(): [None, 0.0, -0.0, math.nan, 1.5, math.inf],
    pa.string(): [None, "", "a", "b", "a long one", "a long two", "\U00010000", "\uffff"],
    pa.decimal128(10, 2): [None, Decimal("0.00"), Decimal("1.25")],
    pa.decimal128(38, 3): [None, Decimal(10) ** 30, -(Decimal(10) ** 30)],
    POINT: [
        None,
        {"x": 0.0, "tags": [-0.0, 1.0]},
        {"x": -0.0, "tags": [0.0, 1.0]},
        {"x": None, "tags": None},
        {"x": math.nan, "tags": []},
    ],
}

rows_of_types = st.lists(st.sampled_from(list(VALUES)), max_size=3)


@dataclass(frozen=True)
class Story:
    """Changes of some inputs in which no count is ever below zero, cut into periods."""

    types: tuple[pa.DataType, ...]
    inputs: tuple[tuple[Change, ...], ...]
    frontiers: tuple[int, ...]
    """Ascending; the last is FOREVER."""


def identity(value: Any) -> Any:
    """A hashable key, equal for exactly those values that Spark calls equal."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, dict):
        return tuple(identity(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return tuple(identity(item) for item in value)
    return value


def bits(value: Any) -> Any:
    """A key that is equal only for values that agree in every visible bit."""
    return str(value)


@st.composite
def stories(draw: st.DrawFn, inputs: int, first: int = -3) -> Story:
    types = tuple(draw(rows_of_types))
    pool = draw(
        st.lists(
            st.tuples(*(st.sampled_from(VALUES[kind]) for kind in types)), min_size=1, max_size=4
        )
    )
    visits = st.tuples(
        st.sampled_from(pool), st.integers(first, 20), st.integers(0, 12), st.integers(1, 2)
    )
    changes: list[tuple[Change, ...]] = []
    for _ in range(inputs):
        mine: list[Change] = []
        for row, start, stay, copies in draw(st.lists(visits, max_size=12)):
            mine.append((row, start, copies))
            if stay < 10:
                mine.append((row, start + stay, -copies))
        changes.append(tuple(draw(st.permutations(mine))))
    cuts = draw(st.lists(st.integers(first, 35), max_size=5))
    return Story(types, tuple(changes), (*sorted(cuts), FOREVER))


def as_batch(changes: Sequence[Change], types: Sequence[pa.DataType]) -> pa.RecordBatch:
    if not changes:
        return no_changes(types)
    columns = [pa.array([row[i] for row, _, _ in changes], kind) for i, kind in enumerate(types)]
    times = np.array([time for _, time, _ in changes], np.int64)
    return make_changes(columns, times, np.array([diff for _, _, diff in changes], np.int64))


def as_changes(batch: pa.RecordBatch) -> list[Change]:
    columns = [column.to_pylist() for column in row_columns(batch)]
    rows = list(zip(*columns, strict=True)) if columns else [()] * len(batch)
    return list(zip(rows, times_of(batch).tolist(), diffs_of(batch).tolist(), strict=True))


def run(spec: ChangeSpec, story: Story, frontiers: Sequence[int] | None = None) -> list[Change]:
    """The changelog, with the operator recreated from its snapshot for every period."""
    store, snapshot, last = MemoryStore(), None, -(1 << 62)
    out: list[Change] = []
    for frontier in story.frontiers if frontiers is None else frontiers:
        operator = spec.start(store)
        if snapshot is not None:
            operator.restore(json.loads(snapshot))
        mine = [[c for c in given if last <= c[1] < frontier] for given in story.inputs]
        batch = operator.process([as_batch(m, story.types) for m in mine], frontier)
        assert [column.type for column in row_columns(batch)] == list(spec.types)
        changes = as_changes(batch)
        assert all(time < frontier for _, time, _ in changes)
        out += changes
        snapshot, last = json.dumps(operator.snapshot()), frontier
        assert store.chunks.keys() == {ref.id for stored in operator.stored for ref in stored.refs}
    return out


def held(changes: Sequence[Change], instant: int) -> Counter[Any]:
    """How many copies of each row there are from an instant on, until the next."""
    counts: Counter[Any] = Counter()
    for row, time, diff in changes:
        if time <= instant:
            counts[identity(row)] += diff
    return Counter({row: count for row, count in counts.items() if count})


def assert_net(changes: Sequence[Change]) -> None:
    seen = Counter((identity(row), time) for row, time, _ in changes)
    assert all(count == 1 for count in seen.values())
    assert all(diff != 0 for _, _, diff in changes)


def in_order(changes: Sequence[Change]) -> list[Any]:
    return sorted((bits(row), time, diff) for row, time, diff in changes)


def check(
    spec: ChangeSpec,
    story: Story,
    answer: Callable[[Sequence[Counter[Any]]], Counter[Any]],
) -> None:
    """Check that the changelog folds to the answer, is net, and does not depend on the cuts."""
    changes = run(spec, story)
    assert_net(changes)
    instants = {time for given in story.inputs for _, time, _ in given}
    for instant in instants | {time for _, time, _ in changes}:
        expected = answer([held(given, instant) for given in story.inputs])
        assert held(changes, instant) == +expected
    assert in_order(changes) == in_order(run(spec, story, [FOREVER]))
