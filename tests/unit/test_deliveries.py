"""Deliveries: chunks with lasting ids, at least once, whatever the receiver does."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nilometer.deliveries.reading import Reading, begin, end, read_progress, rows_behind
from nilometer.deliveries.status import DeliveryState
from nilometer.deliveries.unit import Chunk, ChunkSize, ReceiverError, ReceiverGoneError
from nilometer.errors import LogGapError
from nilometer.log.layout import LogLayout
from nilometer.log.reader import LogReader
from nilometer.log.registrations import registrations
from nilometer.log.writer import LogWriter
from nilometer.model.events import event_of
from tests.delivery_receivers import QUICK, Into, Results, delivering
from tests.patience import LONG, wait_for

LOGGER = "nilometer.deliveries"


def numbers(chunk: Chunk) -> list[int]:
    values: list[int] = chunk.rows.column("k").to_pylist()
    return values


def test_every_row_arrives_once_where_nothing_fails(tmp_path: Path) -> None:
    results = Results(tmp_path)
    got: list[Chunk] = []
    with delivering(results, lambda: Into(got.append)) as delivery:
        for count in (3, 25, 1, 10):
            results.append(count)
            time.sleep(0.02)
        wait_for(lambda: sum(len(one.rows) for one in got) == 39)
        wait_for(lambda: delivery.progress and delivery.progress.delivered == 39)
        assert delivery.state is DeliveryState.RUNNING
    assert [number for one in got for number in numbers(one)] == list(range(39))
    assert all(len(one.rows) <= 10 for one in got)
    assert len({one.id for one in got}) == len(got)
    assert got[0].with_ids().column("_id").to_pylist() == [
        got[0].row_id(at) for at in range(len(got[0].rows))
    ]


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.append(25)
    got: list[Chunk] = []
    with delivering(results, lambda: Into(got.append)):
        wait_for(lambda: sum(len(one.rows) for one in got) == 25)
        wait_for(lambda: read_progress(results.location, "d").delivered == 25)  # type: ignore[union-attr]
    results.append(5)
    with delivering(results, lambda: Into(got.append)):
        wait_for(lambda: sum(len(one.rows) for one in got) == 30)
    assert [number for one in got for number in numbers(one)] == list(range(30))


def test_a_chunk_that_fails_comes_again_as_it_was(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, LOGGER)
    results = Results(tmp_path)
    results.append(4)
    tries: list[Chunk] = []

    def refuse(chunk: Chunk) -> None:
        tries.append(chunk)
        if len(tries) < 4:
            raise ValueError("not now")

    with delivering(results, lambda: Into(refuse)) as delivery:
        wait_for(lambda: tries)
        results.append(5)  # what comes meanwhile is not put into the same chunk
        wait_for(lambda: len(tries) == 5)
        wait_for(lambda: delivery.state is DeliveryState.RUNNING)
        assert (delivery.last_error, delivery.next_try) == (None, None)
    assert [numbers(one) for one in tries] == [[0, 1, 2, 3]] * 4 + [[4, 5, 6, 7, 8]]
    assert len({one.id for one in tries}) == 2
    events = [one for one in caplog.records if one.name == LOGGER]  # servers of other tests may end
    assert [(event_of(one), one.levelno) for one in events] == [
        ("delivery_retries", logging.WARNING),
        ("delivery_retries", logging.INFO),
        ("delivery_retries", logging.INFO),
        ("delivery_recovered", logging.INFO),
    ]


def test_waits_grow_and_are_shown(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.append(1)
    slow = replace(QUICK, first_wait=0.05, longest_wait=30.0)
    calls: list[float] = []

    def refuse(_: Chunk) -> None:
        calls.append(time.monotonic())
        raise ReceiverError("busy", after=0.0 if len(calls) < 4 else 60.0)

    with delivering(results, lambda: Into(refuse), settings=slow) as delivery:
        wait_for(lambda: len(calls) == 4 and delivery.next_try)
        assert delivery.state is DeliveryState.RETRYING
        assert delivery.last_error == "busy"
        wait_for(lambda: delivery.next_try and delivery.next_try > time.time() * 1e6 + 50e6)
        delivery.hurry()  # as when the unit has been registered
        wait_for(lambda: len(calls) == 5)
    gaps = [after - before for before, after in pairwise(calls)]
    assert gaps[0] >= 0.02
    assert gaps[2] >= 0.1


def test_a_receiver_that_is_gone_ends_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    results = Results(tmp_path)
    results.append(1)
    reported: list[str] = []

    def gone(_: Chunk) -> None:
        raise ReceiverGoneError("no more")

    with delivering(results, lambda: Into(gone), failed=reported.append) as delivery:
        wait_for(lambda: delivery.state is DeliveryState.FAILED)
        assert (reported, delivery.last_error) == (["no more"], "no more")
    reported = [one for one in caplog.records if one.name == LOGGER]
    assert [event_of(one) for one in reported] == ["delivery_failed"]


def test_a_slow_receiver_holds_up_nobody(tmp_path: Path) -> None:
    results = Results(tmp_path)
    stuck = threading.Event()
    got: list[Chunk] = []
    quick = replace(QUICK, stop_within=0.1)
    with (
        delivering(results, lambda: Into(lambda _: stuck.wait(LONG)), name="slow", settings=quick),
        delivering(results, lambda: Into(lambda _: 1 / 0), name="failing"),
        delivering(results, lambda: Into(got.append), name="well"),
    ):
        for _ in range(5):
            results.append(20)
        wait_for(lambda: sum(len(one.rows) for one in got) == 100)
    assert read_progress(results.location, "slow").delivered == 0  # type: ignore[union-attr]
    stuck.set()
    wait_for(lambda: "delivery slow" not in {one.name for one in threading.enumerate()})
    # What is abandoned says nothing any more, though its receiver took the chunk in the end.
    assert read_progress(results.location, "slow").delivered == 0  # type: ignore[union-attr]


def test_the_log_keeps_what_is_not_delivered(tmp_path: Path) -> None:
    results = Results(tmp_path, history=0, segment=2_000)
    begin(results.location, "d", from_start=True, now=1)
    for _ in range(20):
        results.append(50)
    log = LogReader.open(results.location)
    assert log.start.row == 0
    progress = read_progress(results.location, "d")
    assert progress is not None
    assert rows_behind(results.location, progress) == 1_000
    end(results.location, "d")
    assert registrations(results.location) == []


def test_a_delivery_may_begin_now(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.append(7)
    begin(results.location, "d", from_start=False, now=1)
    results.append(2)
    got: list[Chunk] = []
    with delivering(results, lambda: Into(got.append)):
        wait_for(lambda: got)
    assert numbers(got[0]) == [7, 8]
    assert read_progress(results.location, "d").delivered == 2  # type: ignore[union-attr]


def test_a_delivery_may_begin_before_its_query(tmp_path: Path) -> None:
    begin(str(tmp_path / "q"), "d", from_start=False, now=1)
    results = Results(tmp_path)
    results.append(2)
    got: list[Chunk] = []
    with delivering(results, lambda: Into(got.append)):
        wait_for(lambda: got)
    assert numbers(got[0]) == [0, 1]


def test_rows_that_are_gone_are_counted(tmp_path: Path) -> None:
    results = Results(tmp_path, segment=2_000, memory=0)
    begin(results.location, "d", from_start=True, now=1)
    for _ in range(20):
        results.append(50)
    results.drop_oldest()
    oldest = LogReader.open(results.location).start.row
    assert oldest > 0
    got: list[Chunk] = []
    with delivering(results, lambda: Into(got.append), size=ChunkSize(rows=100)):
        wait_for(lambda: got and numbers(got[-1])[-1] == 999)
        wait_for(lambda: read_progress(results.location, "d").delivered == 1_000 - oldest)  # type: ignore[union-attr]
    assert numbers(got[0])[0] == oldest
    assert read_progress(results.location, "d").lost == oldest  # type: ignore[union-attr]


def reading(results: Results, clock: Any = lambda: 0, **size: Any) -> Reading:
    return Reading(results.location, "d", "q", ChunkSize(**size), clock)


def test_chunks_are_no_larger_than_asked(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.append(100)
    by_bytes = reading(results, bytes=10)
    chunk = by_bytes.next_chunk(lambda chunk: [4] * len(chunk.rows))
    assert chunk is not None
    assert numbers(chunk) == [0, 1]
    by_bytes.delivered()
    chunk = by_bytes.next_chunk(lambda chunk: [400] * len(chunk.rows))
    assert chunk is not None
    assert numbers(chunk) == [2]  # one at least, however large
    by_bytes.delivered()
    whole = reading(results, bytes=24 * 10).next_chunk()
    assert whole is not None
    assert 5 <= len(whole.rows) <= 15


def test_rows_are_gathered_for_a_while(tmp_path: Path) -> None:
    results, now = Results(tmp_path), [0]
    one = reading(results, lambda: now[0], rows=10, every=60.0)
    assert one.next_chunk() is None
    results.append(4)
    assert one.next_chunk() is None
    now[0] = 59_000_000
    results.append(1)
    assert one.next_chunk() is None
    now[0] = 60_000_000
    chunk = one.next_chunk()
    assert chunk is not None
    assert numbers(chunk) == [0, 1, 2, 3, 4]
    one.delivered()
    results.append(11)
    chunk = one.next_chunk()
    assert chunk is not None
    assert len(chunk.rows) == 10


def test_a_gap_is_reported_once(tmp_path: Path) -> None:
    results = Results(tmp_path, segment=2_000, memory=0)
    one = reading(results, rows=10)
    for _ in range(20):
        results.append(50)
    results.drop_oldest()
    with pytest.raises(LogGapError):
        one.next_chunk()
    assert one.next_chunk() is not None


STEPS = st.lists(
    st.tuples(
        st.integers(0, 30),
        st.integers(1, 12),
        st.sampled_from(["goes on", "before", "planned", "sent", "acknowledged"]),
    ),
    max_size=8,
)


@settings(max_examples=8, deadline=None)
@given(STEPS)
def test_wherever_it_is_killed_every_row_comes_with_its_id(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int, str]]
) -> None:
    _check_kills(Results(tmp_path_factory.mktemp("log")), steps)


@pytest.mark.soak
@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_wherever_it_is_killed_often(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int, str]]
) -> None:
    _check_kills(Results(tmp_path_factory.mktemp("log")), steps)


def _check_kills(results: Results, steps: list[tuple[int, int, str]]) -> None:
    """Rows come and the process is killed at any of its steps, with other sizes after it."""
    got: list[Chunk] = []
    begin(results.location, "d", from_start=True, now=0)
    one = reading(results, rows=5)
    for count, size, killed in [*steps, (1, 7, "goes on")]:
        results.append(count)
        while killed != "before" and (chunk := one.next_chunk()) is not None:
            if killed == "planned":
                break
            got.append(chunk)
            if killed == "sent":
                break
            one.delivered()
            if killed == "acknowledged":
                break
        if killed != "goes on":
            one = reading(results, rows=size)
    by_id: dict[str, list[int]] = {}
    for chunk in got:
        assert by_id.setdefault(chunk.id, numbers(chunk)) == numbers(chunk)
        for at, number in enumerate(numbers(chunk)):
            assert chunk.row_id(at).endswith(f".{number}")
    once = [number for each in by_id.values() for number in each]
    assert once == list(range(results.rows))  # without what came again: each once, in order


def test_columns_are_those_of_the_log(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.append(3)
    chunk = reading(results).next_chunk()
    assert chunk is not None
    assert chunk.rows.schema == LogReader.open(results.location).layout.stored
    assert isinstance(chunk.rows, pa.Table)


def test_columns_have_different_names(tmp_path: Path) -> None:
    schema = pa.schema([("_id", pa.int64()), ("v", pa.int64()), ("v", pa.int64())])
    rows = pa.RecordBatch.from_arrays([pa.array([one]) for one in (1, 2, 3)], schema=schema)
    with LogWriter.open(tmp_path / "q", LogLayout(schema, None)) as log:
        log.append(rows)
    one = Reading(str(tmp_path / "q"), "d", "q", ChunkSize(), lambda: 0)
    chunk = one.next_chunk()
    assert chunk is not None
    row = {"_id_2": 1, "v": 2, "v_2": 3, "_id": chunk.row_id(0)}
    assert chunk.with_ids().to_pylist() == [row]
