"""ROWS windows: which rows are the last n, in which order, and what a join keeps of them."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from nilometer.errors import WindowError
from nilometer.kernels.rows_window import OPEN, RowsWindow, window_ends
from nilometer.local.run_stage import LocalStage
from nilometer.model.network import TimeNetwork
from nilometer.model.time import EARLIEST, FOREVER
from nilometer.model.windows import PairWindow, RangeWindow, Window
from nilometer.operators.stream_buffer import FANOUT
from tests.graph_cases import CHOSEN, ORDER, GraphCase, GraphRow, to_batch

NAN = float("nan")


def ends(times: list[int], *columns: pa.Array, count: int = 1, partition=(), order=()) -> list:
    rows = pa.RecordBatch.from_arrays(list(columns), [f"c{i}" for i in range(len(columns))])
    window = RowsWindow(count, partition, order, None)
    ends = window_ends(rows, np.array(times, dtype=np.int64), window)
    return [None if end == OPEN else end for end in ends.tolist()]


def test_a_row_leaves_when_the_nth_later_one_comes() -> None:
    numbers = pa.array(range(4))
    assert ends([10, 30, 20, 40], numbers) == [20, 40, 30, None]
    assert ends([10, 30, 20, 40], numbers, count=2) == [30, None, 40, None]
    assert ends([10, 30, 20, 40], numbers, count=9) == [None] * 4


def test_every_partition_has_its_own_last_rows_and_null_is_one_of_them() -> None:
    keys = pa.array([1.0, None, NAN, 0.0, None, NAN, -0.0, 1.0])
    assert ends(list(range(8)), keys, partition=(0,)) == [7, 4, 5, 6, None, None, None, None]


@pytest.mark.parametrize(
    "ascending",
    [
        pa.array([None, -3, 5]),
        pa.array([None, -1.5, 0.0, float("inf"), NAN]),
        pa.array([None, "", "a", "ab"]),
        pa.array([None, b"", b"\xff"]),
        pa.array([None, False, True]),
        pa.array([None, Decimal("-1.20"), Decimal("3.40")]),
        pa.array([None, 1, 2], pa.timestamp("us", tz="UTC")),
        pa.array([None, 1, 2], pa.date32()),
        pa.array([None, {"a": None, "b": 2}, {"a": 1, "b": 1}, {"a": 1, "b": 2}]),
        pa.array(["a", "b"]).dictionary_encode(),
    ],
    ids=lambda column: str(column.type),
)
def test_rows_of_equal_time_are_ordered_by_their_columns(ascending: pa.Array) -> None:
    """All but the largest are gone at once."""
    times = [7] * len(ascending)
    backwards = ascending.take(pa.array(range(len(ascending))[::-1]))
    assert ends(times, ascending, order=(0,)) == [7] * (len(ascending) - 1) + [None]
    assert ends(times, backwards, order=(0,)) == [None] + [7] * (len(ascending) - 1)


def test_zeros_are_equal_so_the_next_column_decides() -> None:
    zeros, numbers = pa.array([0.0, -0.0]), pa.array([2, 1])
    assert ends([1, 1], zeros, numbers, order=(0, 1)) == [None, 1]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1], [2], None], pa.list_(pa.int64())),
        pa.array([[("a", 1)], [("b", 1)], None], pa.map_(pa.string(), pa.int64())),
        pa.nulls(3),
    ],
    ids=lambda column: str(column.type),
)
def test_what_has_no_order_is_ordered_whatever_way_rows_arrive(column: pa.Array) -> None:
    first = ends([1, 1, 1], column, order=(0,))
    turned = ends([1, 1, 1], column.take(pa.array([2, 1, 0])), order=(0,))
    assert sorted(map(str, first)) == ["1", "1", "None"]
    assert pa.types.is_null(column.type) or turned == first[::-1]


def test_a_window_without_rows_is_refused() -> None:
    with pytest.raises(WindowError, match="a ROWS window must hold at least one row, got 0"):
        RowsWindow(0, (), (), None)


def row(time: int, key: int | None = 0, chosen: bool = True, number: int = 0) -> GraphRow:
    return (time, key, 0, 0.0, chosen, number)


def stage(count: int, *windows: Window, static: str = "", selected: int | None = None):
    """A with a ROWS window, and B, joined on the first column."""
    counted = RowsWindow(count, (), ORDER, selected)
    network = TimeNetwork(("A", "B"), windows, frozenset(static), frozenset("A"))
    ended = frozenset({1} if static else ())
    keys = (((1,),), ((1,),))
    return LocalStage(GraphCase(network, keys, (counted, None), ((), ()), (0, 0), ended).stage())


def times(results: list[pa.RecordBatch]) -> list[int]:
    return sorted(t for batch in results for t in batch.column("_time").to_pylist())


def held(running: LocalStage) -> list[int]:
    return running.buckets[0].operator.rows_held


def test_a_result_waits_until_the_rows_stream_has_passed_it() -> None:
    """
    A [ROWS 1]  10 |    | 20    at 15 the last row of A is known only once A is past 15
    B              | 15 |
    """
    running = stage(1, RangeWindow("B", 0))
    assert times(running.feed([to_batch([row(10)]), None])) == []
    assert times(running.feed([None, to_batch([row(15)])])) == []
    assert held(running) == [1, 1]
    assert times(running.feed([to_batch([row(20)]), None])) == [15]


def test_a_row_is_gone_at_the_very_time_of_the_nth_later_one() -> None:
    """
    A [ROWS 1]  10    20 key 1   | 30
    B              19 20         |
    """
    running = stage(1, RangeWindow("B", 0))
    joined = running.feed([to_batch([row(10), row(20, key=1)]), to_batch([row(19), row(20)])])
    assert times(joined) == [19]
    assert times(running.feed([to_batch([row(30)]), None])) == []


def test_rows_that_may_not_join_count() -> None:
    running = stage(2, RangeWindow("B", 0), selected=CHOSEN)
    rows = [row(1), row(2, key=None), row(3, chosen=False), row(9)]
    assert times(running.feed([to_batch(rows), to_batch([row(2), row(3)])])) == [2]


@pytest.mark.parametrize("unfit", [row(2, key=None), row(2, chosen=False)])
def test_rows_that_may_not_join_count_in_later_micro_batches(unfit: GraphRow) -> None:
    """
    A [ROWS 2]  1 | 2 unfit | 5 |   | 9    at 6 the last two are 2 and 5
    B                           | 6 |
    """
    running = stage(2, RangeWindow("B", 0), selected=CHOSEN)
    for one in (row(1), unfit, row(5)):
        running.feed([to_batch([one]), None])
    running.feed([None, to_batch([row(6)])])
    assert times(running.feed([to_batch([row(9)]), None])) == [6]


def test_only_the_last_rows_are_kept_however_long_the_stream() -> None:
    running = stage(5, RangeWindow("B", 0))
    for t in range(300):
        running.feed([to_batch([row(t, number=t)]), to_batch([row(t, key=1)])])
        assert held(running)[0] <= 2 * (5 + 2)


def test_what_lags_keeps_rows_that_have_left_the_window() -> None:
    """B may still bring rows of any time after its watermark 0."""
    running = stage(1, RangeWindow("B", 0))
    running.feed([to_batch([row(t) for t in range(10)]), to_batch([row(0)])])
    assert held(running)[0] == 10
    joined = running.feed([None, to_batch([row(t) for t in range(10)])])
    assert times(joined) == list(range(9))


def test_bounds_apply_on_top() -> None:
    running = stage(3, PairWindow("A", "B", 0, 5))
    joined = running.feed([to_batch([row(1), row(4), row(99)]), to_batch([row(8)])])
    assert times(joined) == [8]
    assert held(running)[0] <= 2


def test_a_static_table_joins_every_row_of_the_window_once() -> None:
    running = stage(1, static="B")
    running.hold(1, to_batch([row(EARLIEST, number=n) for n in range(3)]))
    assert times(running.feed([to_batch([row(1), row(2)]), None])) == [1] * 3
    assert times(running.feed([to_batch([row(FOREVER // 100)]), None])) == [2] * 3


def test_merged_chunks_hold_their_ends() -> None:
    running = stage(1, RangeWindow("B", 0))
    running.feed([None, to_batch([row(0, key=1)])])
    for t in range(FANOUT + 3):
        running.feed([to_batch([row(t)]), None])
    joined = running.feed([None, to_batch([row(t) for t in range(FANOUT + 2)])])
    assert times(joined) == list(range(FANOUT + 2))


def test_rows_held_back_of_a_stream_far_ahead_still_find_their_partners() -> None:
    """
    A [ROWS 3]  10     | 11 | 20    B's watermark is 100, but its row 12 waits for A
    B           12 100 |    |
    """
    running = stage(3, PairWindow("A", "B", 0, 5))
    running.feed([to_batch([row(10)]), to_batch([row(12), row(100)])])
    running.feed([to_batch([row(11)]), None])
    assert times(running.feed([to_batch([row(20)]), None])) == [12, 12]


def test_what_was_released_is_not_released_again_after_a_restart() -> None:
    running = stage(1, RangeWindow("B", 0))
    running.feed([None, to_batch([row(5), row(6), row(50), row(60)])])
    assert times(running.feed([to_batch([row(1), row(10)]), None])) == [5, 6]
    assert held(running)[1] == 4, "the chunk of held rows was not worth rewriting"
    running = running.resume(running.snapshot())
    assert times(running.feed([to_batch([row(11)]), None])) == []


def test_a_rewritten_chunk_keeps_rows_that_only_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A [ROWS 2]  10   | 12 key 1 | 20   | 40 | 50    12 has no partner in B, but it helps to end 10
    B           11   |          | 30   |    |       at 20, so C at 25 finds nothing
    C                |          |      |    | 19 25
    """
    monkeypatch.setattr("nilometer.operators.stream_buffer.FANOUT", 2)
    windows = (PairWindow("A", "B", 0, 3), RangeWindow("B", 1000), RangeWindow("C", 0))
    network = TimeNetwork(("A", "B", "C"), windows, rows=frozenset("A"))
    counted = RowsWindow(2, (), ORDER, None)
    case = GraphCase(
        network, (((1,),),) * 3, (counted, None, None), ((),) * 3, (0, 0, 0), frozenset()
    )
    running = LocalStage(case.stage())
    running.feed([to_batch([row(10)]), to_batch([row(11)]), None])
    running.feed([to_batch([row(12, key=1)]), None, None])
    running.feed([to_batch([row(20, key=2)]), to_batch([row(30, key=9)]), None])
    running.feed([to_batch([row(40, key=2)]), None, None])
    joined = running.feed([to_batch([row(50)]), None, to_batch([row(19), row(25)])])
    assert times(joined) == [19]
