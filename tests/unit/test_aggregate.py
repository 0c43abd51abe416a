"""GROUP BY against plain Python over the rows of each group, at every instant."""

from __future__ import annotations

import datetime
import math
import pickle
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.errors import InternalError, PredicateError
from nilometer.kernels import moving_ranks, value_runs
from nilometer.kernels.aggregate_types import aggregate_type
from nilometer.kernels.chunk import Chunk, Kernel, RowLayout, make_chunk
from nilometer.kernels.expression_types import is_number
from nilometer.local.memory_store import MemoryStore
from nilometer.model.expressions import Argument, Binary, Constant, Expression, Operator
from nilometer.model.time import EARLIEST, FOREVER
from nilometer.operators import value_table
from nilometer.operators.aggregate import AggregateSpec
from nilometer.operators.change_specs import AggregateCall, AggregateFunction
from nilometer.operators.chunk_codec import decode_rows, encode_rows
from nilometer.operators.chunk_store import ChunkRef
from tests.aggregates import close, naive_aggregate
from tests.changes import VALUES, Change, Row, Story, as_batch, as_changes, identity, in_order, run

F = AggregateFunction

ARGUMENTS: dict[pa.DataType, list[Any]] = {
    **VALUES,
    pa.float64(): [
        *(None, 0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, 0.1, 0.3, -7.25),
        *(1e300, -1e300, 1e-300, 5e-324, 1e20, -1e20, 1e15, 1e15 + 1),
    ],
    pa.float32(): [None, 0.5, -0.0, 1.5, math.nan, 2.0**127],
    pa.int64(): [None, 0, 1, -1, 5, 2**57, -(2**57), 7],
    pa.int8(): [None, -128, 127, 3],
    pa.decimal128(10, 2): [None, *map(Decimal, ("0.00", "1.25", "-1.25", "0.07", "99999999.99"))],
    pa.decimal128(25, 3): [None, *map(Decimal, ("1.125", "-9999999999999999999999.999", "3.000"))],
    pa.string(): [None, "", "a", "b", "ab", "\uffff", "\U00010000"],
    pa.binary(): [None, b"", b"\xff", b"\x00"],
    pa.date32(): [None, datetime.date(1969, 1, 1), datetime.date(2026, 1, 1)],
    pa.timestamp("us", "UTC"): [None, datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)],
    pa.duration("us"): [None, *(datetime.timedelta(microseconds=n) for n in (-7, 0, 2, 10**9))],
    pa.null(): [None],
}
KEYS = [pa.int64(), pa.string(), pa.float64(), pa.bool_()]


def calls_of(column: int, kind: pa.DataType) -> list[AggregateCall]:
    """All calls that a type of argument allows."""
    calls = [AggregateCall(F.COUNT, column), AggregateCall(F.COUNT, column, distinct=True)]
    if not pa.types.is_nested(kind):
        calls += [
            AggregateCall(f, column, distinct) for f in (F.MIN, F.MAX) for distinct in (False, True)
        ]
    if pa.types.is_duration(kind):
        calls += [AggregateCall(F.SUM, column), AggregateCall(F.AVG, column)]
    if is_number(kind) or pa.types.is_null(kind):
        sums = (F.SUM, F.AVG, F.VAR_SAMP, F.VAR_POP, F.STDDEV_SAMP, F.STDDEV_POP)
        calls += [AggregateCall(f, column, distinct) for f in sums for distinct in (False, True)]
        calls += [
            AggregateCall(F.PERCENTILE, column, distinct, fraction)
            for fraction in (0.0, 0.5, 0.9)
            for distinct in (False, True)
        ]
    return calls


def make_spec(
    keys: int,
    types: Sequence[pa.DataType],
    calls: Sequence[AggregateCall],
    test: Expression | None = None,
) -> AggregateSpec:
    """All keys and all results."""
    value_types = (*types[:keys], *(aggregate_type(call, types) for call in calls))
    values = tuple(Argument(i) for i in range(len(value_types)))
    return AggregateSpec(keys, tuple(types), tuple(calls), test, values, value_types)


@st.composite
def stories(draw: st.DrawFn, kinds: Sequence[pa.DataType]) -> tuple[int, Story]:
    keys = draw(st.lists(st.sampled_from(KEYS), max_size=2))
    kind = draw(st.sampled_from(kinds))
    pool = draw(
        st.lists(st.tuples(*(st.sampled_from(VALUES[k]) for k in keys)), min_size=1, max_size=3)
    )
    visits = st.tuples(
        st.sampled_from(pool),
        st.sampled_from(ARGUMENTS[kind]),
        st.integers(-3, 20),
        st.integers(0, 12),
        st.sampled_from([1, 1, 1, 2, 5]),
    )
    changes: list[Change] = []
    for key, value, start, stay, copies in draw(st.lists(visits, max_size=14)):
        changes.append(((*key, value), start, copies))
        if stay < 11:
            changes.append(((*key, value), start + stay, -copies))
    cuts = sorted(draw(st.lists(st.integers(-3, 35), max_size=5)))
    ordered = tuple(draw(st.permutations(changes)))
    return len(keys), Story((*keys, kind), (ordered,), (*cuts, FOREVER))


def rows_at(changes: Sequence[Change], instant: int) -> dict[Any, list[Row]]:
    """All copies of rows, by identity."""
    counts: dict[Any, list[Any]] = {}
    for row, time, diff in changes:
        if time <= instant:
            counts.setdefault(identity(row), [row, 0])[1] += diff
    assert all(count >= 0 for _, count in counts.values())
    return {key: [row] * count for key, (row, count) in counts.items() if count}


def expected_at(spec: AggregateSpec, story: Story, instant: int) -> dict[Any, Row]:
    """The row of every group."""
    groups: dict[Any, list[Row]] = {} if spec.keys else {(): []}
    for rows in rows_at(story.inputs[0], instant).values():
        groups.setdefault(identity(rows[0][: spec.keys]), []).extend(rows)
    return {
        key: tuple(naive_aggregate(call, rows, spec.input_types) for call in spec.calls)
        for key, rows in groups.items()
    }


def check(spec: AggregateSpec, story: Story) -> None:
    changes = run(spec, story)
    assert in_order(changes) == in_order(run(spec, story, [FOREVER]))
    instants = {EARLIEST, *(time for _, time, _ in (*story.inputs[0], *changes))}
    for instant in instants:
        got = rows_at(changes, instant)
        shown = {identity(rows[0][: spec.keys]): rows for rows in got.values()}
        expected = expected_at(spec, story, instant)
        assert len(got) == len(shown)
        assert shown.keys() == expected.keys()
        for key, rows in shown.items():
            assert len(rows) == 1
            for call, value, wanted in zip(
                spec.calls, rows[0][spec.keys :], expected[key], strict=True
            ):
                assert close(value, wanted), (call, value, wanted)
    by_bits: dict[Any, int] = {}
    for row, _, diff in sorted(changes, key=lambda change: (change[1], change[2])):
        by_bits[str(row)] = by_bits.get(str(row), 0) + diff
        assert by_bits[str(row)] >= 0, "a retraction repeats what was given, bit for bit"


@pytest.mark.parametrize("kinds", [list(ARGUMENTS), [pa.float64()]])
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_calls_at_every_instant(kinds: list[pa.DataType], data: st.DataObject) -> None:
    keys, story = data.draw(stories(kinds))
    possible = [AggregateCall(F.COUNT_ROWS), *calls_of(keys, story.types[keys])]
    calls = data.draw(st.lists(st.sampled_from(possible), max_size=5, unique=True))
    check(make_spec(keys, story.types, calls), story)


@pytest.mark.parametrize("cuts", [(), (2, 4, 6), (3, 5, 7), tuple(range(9))])
def test_what_is_not_a_number_leaves_with_its_row(cuts: tuple[int, ...]) -> None:
    """One value after the other comes, each for three instants."""
    values = [-math.inf, 1.5, math.inf, math.nan, 0.25, -math.inf, math.inf, 1e300, -0.0, 5e-324]
    changes = [((x,), i, 1) for i, x in enumerate(values)]
    changes += [((x,), i + 3, -1) for i, x in enumerate(values)]
    story = Story((pa.float64(),), (tuple(changes),), (*cuts, FOREVER))
    check(make_spec(0, story.types, calls_of(0, pa.float64())), story)


@pytest.mark.parametrize("cuts", [(), (2, 4, 6)])
@pytest.mark.parametrize(
    ("values", "variances"),
    [
        ([1e15, 1e15 + 1], [None, 0.5]),
        ([0.1] * 5, [None, 0.0]),
        ([1e200, -1e200], [None, math.inf]),
        ([1e-200, 3e-200], [None, 0.0]),
        ([2.0**500, 3 * 2.0**500], [None, 2 * 2.0**1000]),
    ],
)
def test_variances_are_those_of_exact_sums(
    cuts: tuple[int, ...], values: list[float], variances: list[float | None]
) -> None:
    changes = tuple(((0, x), i, 1) for i, x in enumerate(values))
    spec = make_spec(1, (pa.int64(), pa.float64()), [AggregateCall(F.VAR_SAMP, 1)])
    story = Story(spec.input_types, (changes,), (*cuts, FOREVER))
    shown = sorted((time, row[1]) for row, time, diff in run(spec, story) if diff > 0)
    assert [value for _, value in shown] == variances


def _load_from_bytes(store: MemoryStore, ref: ChunkRef, layout: RowLayout, kernel: Kernel) -> Chunk:
    """As Spark's state gives chunks back."""
    return decode_rows(encode_rows(store.chunks[ref.id]), layout, kernel)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("seed", range(12))
def test_large_groups_near_the_edges_of_their_bands(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bands so narrow that ranks leave them, and runs that are merged often."""
    monkeypatch.setattr(moving_ranks, "_LEAST_MARGIN", seed % 3)
    monkeypatch.setattr(moving_ranks, "_DEVIATIONS", 0.25 * (seed % 4))
    monkeypatch.setattr(value_runs, "_FEW", 0)
    monkeypatch.setattr(value_table, "_FANOUT", 2 + seed % 3)
    monkeypatch.setattr(value_table, "_MOST_ROWS", 50 + 100 * (seed % 2))
    if seed % 2:
        monkeypatch.setattr(MemoryStore, "load", _load_from_bytes)
    rng = np.random.default_rng(seed)
    kind = [pa.float64(), pa.int64(), pa.string()][seed % 3]
    drift = [0.0, 0.05, -0.05, 0.3][seed % 4]
    changes: list[Change] = []
    for i in range(220):
        number = int(rng.normal(100 + drift * i, 12))
        value = {pa.float64(): number / 4, pa.int64(): number, pa.string(): f"{number:05d}"}[kind]
        key, stay = int(rng.integers(0, 2)), int(rng.choice([0, 30, 70, 10**6]))
        changes.append(((key, value), i, 1))
        if stay < 10**6:
            changes.append(((key, value), i + stay, -1))
    cuts = sorted(rng.integers(0, 290, 6).tolist())
    calls = [AggregateCall(F.MIN, 1), AggregateCall(F.MAX, 1), AggregateCall(F.COUNT, 1, True)]
    if kind != pa.string():
        fractions = (0.5, 0.05, 0.99)
        calls += [AggregateCall(F.PERCENTILE, 1, fraction=fraction) for fraction in fractions]
    story = Story((pa.int64(), kind), (tuple(changes),), (*cuts, FOREVER))
    check(make_spec(1, story.types, calls), story)


def test_chunks_come_back_from_bytes_in_their_order() -> None:
    rng = np.random.default_rng(3)
    times, values = np.repeat([1, 2], 5_000), rng.permutation(10_000)
    rows = pa.RecordBatch.from_arrays([pa.array(times), pa.array(values)], ["group", "value"])
    layout = RowLayout(time=0, keys=())
    back = decode_rows(encode_rows(make_chunk(rows, layout, Kernel.MERGE)), layout, Kernel.MERGE)
    assert back.rows.equals(rows)


def test_the_row_of_no_group_holds_since_ever() -> None:
    calls = [AggregateCall(F.COUNT_ROWS), AggregateCall(F.SUM, 0), AggregateCall(F.MIN, 0)]
    story = Story((pa.int64(),), ((((3,), 5, 1), ((3,), 9, -1)),), (2, 5, 6, FOREVER))
    assert in_order(run(make_spec(0, story.types, calls), story)) == in_order(
        [
            ((0, None, None), EARLIEST, 1),
            ((0, None, None), 5, -1),
            ((1, 3, 3), 5, 1),
            ((1, 3, 3), 9, -1),
            ((0, None, None), 9, 1),
        ]
    )


def test_rows_since_ever_are_in_the_first_row() -> None:
    story = Story((pa.int64(),), ((((3,), EARLIEST, 2),),), (EARLIEST + 1, FOREVER))
    spec = make_spec(0, story.types, [AggregateCall(F.COUNT_ROWS)])
    assert run(spec, story) == [((2,), EARLIEST, 1)]


def test_having_and_computed_values() -> None:
    kinds = (pa.string(), pa.int64())
    total = Argument(1)
    spec = AggregateSpec(
        1,
        kinds,
        (AggregateCall(F.SUM, 1),),
        Binary(Operator.GREATER, total, Constant(10)),
        (Binary(Operator.TIMES, total, Constant(0.0)), Argument(0)),
        (pa.float64(), pa.string()),
    )
    changes = ((("a", 20), 1, 1), (("a", -5), 2, 1), (("a", -9), 3, 1), (("a", 100), 4, 1))
    story = Story(kinds, (changes,), (2, FOREVER))
    expected = [((0.0, "a"), 1, 1), ((0.0, "a"), 3, -1), ((0.0, "a"), 4, 1)]
    assert run(spec, story) == expected


def test_zeros_of_either_sign_are_one_value() -> None:
    product = Binary(Operator.TIMES, Argument(0), Constant(0.0))
    calls = (AggregateCall(F.SUM, 0),)
    spec = AggregateSpec(0, (pa.float64(),), calls, None, (product,), (pa.float64(),))
    changes = (((1.0,), 1, 1), ((-5.0,), 2, 1), ((-5.0,), 4, -1), ((1.0,), 4, -1))
    story = Story(spec.input_types, (changes,), (2, FOREVER))
    shown = [(str(row[0]), diff) for row, time, diff in run(spec, story) if time > 0]
    assert sorted(shown) == [("0.0", -1), ("0.0", 1), ("None", -1), ("None", 1)]


def test_no_group_that_fails_the_test_is_computed() -> None:
    ratio = Binary(Operator.DIVIDE, Constant(1.0), Argument(1))
    test = Binary(Operator.GREATER, Argument(1), Constant(0))
    types = (pa.int64(), pa.int64())
    calls = (AggregateCall(F.SUM, 1),)
    spec = AggregateSpec(1, types, calls, test, (ratio,), (pa.float64(),))
    story = Story(types, ((((1, 0), 1, 1), ((1, 4), 2, 1)),), (FOREVER,))
    assert run(spec, story) == [((0.25,), 2, 1)]


def test_rows_that_come_and_go_leave_nothing_behind() -> None:
    store = MemoryStore()
    calls = calls_of(1, pa.float64())
    spec = make_spec(1, (pa.int64(), pa.float64()), calls)
    operator = spec.start(store)
    rows = [((k % 7, float(k % 13)), k, 1) for k in range(100)]
    operator.process([as_batch(rows, spec.input_types)], 100)
    operator.process([as_batch([(r, t + 100, -1) for r, t, _ in rows], spec.input_types)], 200)
    assert not store.chunks


@pytest.mark.parametrize(
    ("kind", "value", "hint"),
    [
        (pa.int64(), 2**62, "cast the argument to DECIMAL(28,0)"),
        (pa.decimal128(38, 0), Decimal(6) * 10**37, "cast the argument to DOUBLE"),
    ],
)
def test_sums_that_do_not_fit(kind: pa.DataType, value: Any, hint: str) -> None:
    spec = make_spec(0, (kind,), [AggregateCall(F.SUM, 0)])
    operator = spec.start(MemoryStore())
    operator.process([as_batch([((value,), 1, 1)], (kind,))], 2)
    with pytest.raises(PredicateError, match="a result of SUM does not fit its type") as caught:
        operator.process([as_batch([((value,), 3, 1)], (kind,))], 4)
    assert caught.value.hint == hint


def test_sums_may_leave_the_range_between_two_changes_of_an_instant() -> None:
    big = 2**63 - 1
    rows = [((big,), 1, 1), ((big,), 1, 1), ((-big,), 1, 1)]
    spec = make_spec(0, (pa.int64(),), [AggregateCall(F.SUM, 0)])
    changes = as_changes(spec.start(MemoryStore()).process([as_batch(rows, (pa.int64(),))], 2))
    assert changes[-1] == ((big,), 1, 1)


def test_more_rows_than_exact_sums_can_count() -> None:
    spec = make_spec(0, (pa.int64(),), [AggregateCall(F.SUM, 0)])
    with pytest.raises(PredicateError, match="too many rows"):
        spec.start(MemoryStore()).process([as_batch([((1,), 1, 2**31)], (pa.int64(),))], 2)


def test_rows_that_never_came_cannot_go() -> None:
    spec = make_spec(1, (pa.int64(),), [AggregateCall(F.COUNT_ROWS)])
    with pytest.raises(InternalError):
        spec.start(MemoryStore()).process([as_batch([((1,), 1, -1)], (pa.int64(),))], 2)


def test_a_spec_can_be_pickled() -> None:
    spec = make_spec(1, (pa.int64(),), [AggregateCall(F.COUNT_ROWS)])
    assert pickle.loads(pickle.dumps(spec)) == spec
