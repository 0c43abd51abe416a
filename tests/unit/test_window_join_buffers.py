"""What a running join drops, holds and counts; time is drawn as a line where it helps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from nilometer.kernels.chunk import Kernel
from nilometer.local.run_stage import LocalStage
from nilometer.model.network import TimeNetwork
from nilometer.model.time import EARLIEST
from nilometer.model.windows import PairWindow, UniformWindow, Window
from nilometer.operators.stream_buffer import FANOUT
from nilometer.operators.watermarks import StreamClock
from tests.cases import SCHEMA, JoinCase, Row, to_batch


def stage(*windows: Window, streams: str = "AB", lateness: int = 0, kernel=Kernel.HASH):
    network = TimeNetwork(tuple(streams), windows)
    case = JoinCase(network, ((),) * len(streams), (lateness,) * len(streams))
    return LocalStage(case.stage(kernel))


def rows(*times: int | None, key: int | None = 0) -> pa.RecordBatch:
    made: list[Row] = [(time, key, 0, number) for number, time in enumerate(times)]
    return to_batch(made)


def held(running: LocalStage) -> list[list[int]]:
    return [
        sorted(int(t) for chunk in buffer.chunks() for t in chunk.times)
        for buffer in running.buckets[0].operator.buffers
    ]


def count(results: list[pa.RecordBatch]) -> int:
    return sum(map(len, results))


def test_the_window_is_closed() -> None:
    """
    A  0         joins B at 10 (a distance of exactly the window), not B at 11
    B  10 11
    """
    assert count(stage(UniformWindow(10)).feed([rows(0), rows(10, 11)])) == 1


def test_late_rows_are_dropped_and_counted() -> None:
    """
    A  | 10 | 6 7 8    lateness 2: the watermark is 8, so 6 and 7 are late, 8 is not
    """
    running = stage(UniformWindow(10), lateness=2)
    running.feed([rows(10), None])
    running.feed([rows(6, 7, 8), None])
    assert running.buckets[0].operator.late == [2, 0]
    assert held(running) == [[8, 10], []]


def test_rows_within_one_micro_batch_are_never_late() -> None:
    running = stage(UniformWindow(10))
    assert count(running.feed([rows(100, 1), rows(1)])) == 1
    assert running.buckets[0].operator.late == [0, 0]


def test_rows_without_a_time_are_dropped_and_counted() -> None:
    running = stage(UniformWindow(10))
    before_1700, after_9999 = -9_000_000_000_000_000, 9_000_000_000_000_000_000
    assert count(running.feed([rows(None, before_1700, after_9999, 5), rows(5)])) == 1
    assert running.buckets[0].traffic.without_time == [3, 0]


def test_a_null_key_moves_the_watermark_but_joins_nothing() -> None:
    running = stage(UniformWindow(10))
    assert count(running.feed([rows(50, key=None), rows(50, key=None)])) == 0
    assert running.buckets[0].watermarks.marks == [50, 50]
    assert held(running) == [[], []]


def test_a_row_lives_while_another_stream_can_still_reach_it() -> None:
    """
    A  0 ............ dead once B's watermark is strictly greater than 0 + 10
    B        10 | 11
    """
    running = stage(UniformWindow(10))
    running.feed([rows(0), rows(10, key=1)])
    assert held(running)[0] == [0]
    running.feed([None, rows(11, key=1)])
    assert held(running)[0] == []


def test_a_row_lives_at_the_very_edge_of_its_window() -> None:
    """Another row of B may still bear the watermark's own time, again and again."""
    running = stage(UniformWindow(10))
    running.feed([rows(0), rows(10, key=1)])
    for _ in range(3):
        assert count(running.feed([None, rows(10)])) == 1


def test_a_rewritten_chunk_keeps_rows_at_the_very_edge() -> None:
    """The second rule, where B's watermark is exactly as far as a row's window reaches."""
    running = stage(UniformWindow(10))
    for key in range(FANOUT):
        running.feed([rows(0, key=key), rows(10, key=99)])
    assert len(running.buckets[0].operator.buffers[0].refs) == 1, "the chunks were merged"
    assert count(running.feed([None, rows(10, key=3)])) == 1


def test_a_silent_stream_keeps_the_others_alive() -> None:
    running = stage(UniformWindow(10))
    running.feed([rows(*range(0, 1000, 100)), None])
    assert len(held(running)[0]) == 10


def test_a_directed_window_lets_the_second_stream_go_early() -> None:
    """B joins only what came before it: once A has passed it, nothing new can come."""
    running = stage(PairWindow("A", "B", 0, 10))
    running.feed([rows(100), rows(95, key=1)])
    assert held(running) == [[100], []]


def test_a_rewritten_chunk_drops_rows_without_partners() -> None:
    """The second rule: B has gone past A's rows of key 1 and holds none of that key."""
    running = stage(PairWindow("A", "B", 0, 3), PairWindow("A", "C", 0, 10_000), streams="ABC")
    for t in range(FANOUT):
        running.feed([rows(t * 10, key=t % 2), rows(t * 10 + 1, key=0), None])
    times = held(running)[0]
    assert {t // 10 % 2 for t in times if t <= (FANOUT - 2) * 10} == {0}


@pytest.mark.parametrize("kernel", list(Kernel))
def test_the_number_of_chunks_grows_with_the_logarithm_of_the_window(kernel: Kernel) -> None:
    running = stage(UniformWindow(10_000), kernel=kernel)
    largest = 0
    for t in range(1000):
        running.feed([rows(t), rows(t, key=1)])
        largest = max(largest, len(running.buckets[0].operator.buffers[0].refs))
    assert largest <= 3 * FANOUT
    assert len(running.stores[0].chunks) == sum(
        len(buffer.refs) for buffer in running.buckets[0].operator.buffers
    )


def test_large_chunks_are_merged_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nilometer.operators.stream_buffer.MOST_BYTES", 2000)
    running = stage(UniformWindow(10_000))
    for t in range(600):
        running.feed([rows(t), rows(t, key=1)])
    sizes = [ref.size for ref in running.buckets[0].operator.buffers[0].refs]
    assert 2000 <= max(sizes) < 2000 * FANOUT
    assert len(held(running)[0]) == 600


def test_memory_follows_the_window_not_the_stream() -> None:
    running = stage(UniformWindow(100))
    largest = 0
    for start in range(0, 10_000, 10):
        times = range(start, start + 10)
        running.feed([rows(*times), rows(*times, key=1)])
        largest = max(largest, sum(map(len, held(running))))
    assert largest <= 2 * 2 * 110 + 20


def test_a_hot_key_with_many_candidates_is_joined_in_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("nilometer.kernels.window_join.MOST_CANDIDATES", 64)
    running = stage(UniformWindow(50), streams="ABC")
    batch = rows(*range(12))
    joined = running.feed([batch, batch, batch])
    assert count(joined) == 12**3
    assert max(map(len, joined)) <= 64 + 12
    ids = np.array([[c.to_pylist() for c in part.columns[1:]] for part in joined], dtype=object)
    assert len({tuple(row) for part in ids for row in zip(*part, strict=True)}) == 12**3


def test_rows_of_streams_that_had_ended_before_are_held() -> None:
    running = stage(UniformWindow(10))
    running.hold(0, rows(1, 2, None))
    assert count(running.feed([None, rows(5)])) == 2


def test_results_carry_their_latest_time() -> None:
    [result] = stage(UniformWindow(10)).feed([rows(3), rows(7)])
    assert result.column("_time").to_pylist() == [7]
    assert result.schema.names == ["_time", "0.3", "1.3"]
    assert result.schema.field(1).type == SCHEMA.field("id").type


def test_a_single_stream_passes_through_and_nothing_is_kept() -> None:
    running = stage(streams="A")
    joined = running.feed([rows(5, 3, None)])
    assert sorted(t for part in joined for t in part.column("_time").to_pylist()) == [3, 5]
    assert held(running) == [[]]


def static(*windows: Window) -> LocalStage:
    network = TimeNetwork(("A", "B", "T"), windows, frozenset("T"))
    case = JoinCase(network, ((),) * 3, (0, 0, 0))
    made = case.stage()
    return LocalStage(replace(made, clocks=(*made.clocks[:2], StreamClock(ended=True))))


def test_a_static_table_joins_for_ever_and_has_no_say_in_time() -> None:
    running = static(UniformWindow(10))
    running.hold(2, rows(EARLIEST))
    for t in (-1000, 0, 10**15):
        [joined] = running.feed([rows(t), rows(t + 3), None])
        assert joined.column("_time").to_pylist() == [t + 3]
    assert held(running)[2] == [EARLIEST]


def test_rows_without_a_partner_in_a_static_table_are_dropped_when_rewritten() -> None:
    running = static(UniformWindow(10_000))
    running.hold(2, rows(EARLIEST, key=0))
    for t in range(FANOUT):
        running.feed([rows(t, key=t % 2), None, None])
    assert held(running)[0] == list(range(0, FANOUT, 2))
