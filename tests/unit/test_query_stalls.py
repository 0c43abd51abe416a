"""Why queries do not get on: by which stream, which sensor, and since when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nilometer.database.query_status import (
    HealthSample,
    QueryLimits,
    QueryPhase,
    QueryStatus,
    Stall,
    StallReason,
)
from nilometer.database.stalls import Progress, QueryInput, find_stall
from nilometer.sensors.manager.status import StreamStatus
from nilometer.server.console.health_charts import CHARTS, line_points
from nilometer.server.console.query_list import query_problem, sparkline
from nilometer.server.console.stream_page import backlog_note, silence_words, unshipped_note
from nilometer.server.measured.of_queries import query_metrics
from nilometer.server.measured.of_streams import stream_metrics
from nilometer.server.routes.metrics import written
from nilometer.server.shapes import shape_of_query
from tests.drawn_shapes import shapes, texts

SECOND = 1_000_000
MINUTE = 60 * SECOND
NOW = 1_700_000_000 * SECOND
STARTED = NOW - 3600 * SECOND
LAST = NOW - 300 * SECOND

ALIVE = StreamStatus(
    name="A",
    sensors=1,
    connected=1,
    readers=1,
    rows=100,
    stored_bytes=10,
    watermark=NOW,
    lag=0,
    held_by=None,
    held_since=None,
    silent=0,
    silent_since=None,
    last_arrival=NOW,
    pending=0,
    full=False,
    error=None,
    dead_letters=0,
    dropped=0,
    backlog=0,
)
DEAD = replace(
    ALIVE,
    name="B",
    watermark=LAST,
    lag=NOW - LAST,
    held_by="B",
    held_since=LAST,
    silent=1,
    silent_since=LAST,
    last_arrival=LAST,
)
ARRIVING = replace(DEAD, watermark=NOW, held_by=None, held_since=None)
"""Silent, but its times are those of arrival: time goes on without it."""
TABLE = replace(
    ALIVE, name="T", sensors=9, silent=1, held_by="roof", held_since=LAST, watermark=LAST
)


def query(name: str, phase: QueryPhase, stalled: Stall | None = None) -> QueryStatus:
    return QueryStatus(
        name, "SELECT", "append", phase, 0, STARTED, None, 0, None, False, QueryLimits(), 7, 0, 0,
        LAST, stalled=stalled,
    )  # fmt: skip


def of(*streams: StreamStatus | QueryStatus) -> Stall | None:
    inputs = [
        QueryInput(one.name, one.rows, one)
        if isinstance(one, StreamStatus)
        else QueryInput(one.name, one.result_rows, None, one)
        for one in streams
    ]
    return find_stall(inputs, None, STARTED, NOW)


def test_who_speaks_is_waited_for_by_nobody() -> None:
    assert of(ALIVE) is None
    assert of(ALIVE, replace(ALIVE, name="B")) is None
    assert of() is None


def test_a_dead_stream_stalls_by_no_input_alone_and_holds_beside_another() -> None:
    assert of(DEAD) == Stall(StallReason.NO_INPUT, "B", "B", LAST)
    assert of(ALIVE, DEAD) == Stall(StallReason.HELD, "B", "B", LAST)
    later = replace(DEAD, name="C", silent_since=LAST + SECOND)
    assert of(DEAD, later) == Stall(StallReason.NO_INPUT, "B, C", None, LAST + SECOND)


def test_times_of_arrival_do_not_hold() -> None:
    assert of(ARRIVING) == Stall(StallReason.NO_INPUT, "B", None, LAST)
    assert of(ALIVE, ARRIVING) is None


def test_a_sensor_of_a_table_is_named() -> None:
    assert of(TABLE) == Stall(StallReason.HELD, "T", "roof", LAST)
    assert of(replace(TABLE, held_by=None, held_since=None)) is None  # it is idle: passed by


def test_a_full_log_and_a_table_without_sensors_bring_nothing() -> None:
    full = of(replace(ALIVE, full=True, error="no room"))
    assert full == Stall(StallReason.NO_INPUT, "A", None, NOW, "its log is full: no room")
    empty = replace(ALIVE, sensors=0)
    assert of(empty) == Stall(StallReason.NO_INPUT, "A", None, STARTED, "it has no sensors")
    assert find_stall([QueryInput("A", 0, empty)], None, NOW - SECOND, NOW) is None


def test_stalls_are_handed_on_to_those_who_read_results() -> None:
    held = Stall(StallReason.HELD, "T", "roof", LAST)
    nothing = Stall(StallReason.NO_INPUT, "B", None, LAST)
    by_held = of(query("q", QueryPhase.STALLED, held))
    assert by_held == Stall(StallReason.HELD, "q", None, LAST, held.cause)
    by_nothing = of(query("q", QueryPhase.STALLED, nothing))
    assert by_nothing == Stall(StallReason.NO_INPUT, "q", None, LAST, nothing.cause)
    assert of(ALIVE, query("q", QueryPhase.STALLED, nothing)) == Stall(
        StallReason.HELD, "q", None, LAST, nothing.cause
    )
    arriving = replace(query("q", QueryPhase.STALLED, nothing), watermark=NOW)
    assert of(ALIVE, arriving) is None
    stopped = of(query("q", QueryPhase.STOPPED))
    assert stopped == Stall(StallReason.NO_INPUT, "q", None, None, "the query is stopped")
    assert stopped is not None
    assert stopped.cause == "nothing has arrived from q: the query is stopped"
    assert of(query("q", QueryPhase.RUNNING)) is None


def test_rows_that_nobody_computes_are_the_engines_trouble() -> None:
    progress, inputs = Progress(("A",), {"A": 90}), [QueryInput("A", 100, ALIVE)]
    assert progress.behind(inputs) == 10
    progress.look(inputs, STARTED, NOW)
    assert progress.waiting_since is None  # it may have just come here
    progress.look(inputs, STARTED, NOW + SECOND)
    assert progress.waiting_since == NOW + SECOND
    late = NOW + 62 * SECOND
    assert find_stall(inputs, progress.waiting_since, STARTED, late) == Stall(
        StallReason.ENGINE, "A", None, NOW + SECOND
    )
    progress.read = {"A": 95}
    progress.look(inputs, STARTED, late)
    assert (progress.waiting_since, progress.behind(inputs)) == (None, 5)
    progress.read = {"A": 100}
    for second in range(3):
        progress.look(inputs, STARTED, late + second * SECOND)
    assert (progress.waiting_since, progress.behind(inputs)) == (None, 0)


def test_where_positions_are_not_known_micro_batches_tell() -> None:
    progress, inputs = Progress(("A",)), [QueryInput("A", 100, ALIVE)]
    for second in range(3):
        progress.look(inputs, NOW - MINUTE, NOW + second * SECOND)
    assert progress.waiting_since == NOW + SECOND
    progress.look(inputs, NOW - SECOND, NOW + MINUTE)
    assert (progress.waiting_since, progress.behind(inputs)) == (None, None)
    progress.look(inputs, NOW + SECOND, NOW + MINUTE)
    progress.look(inputs, NOW + SECOND, NOW + MINUTE)
    assert progress.waiting_since is None  # nothing has come since


@pytest.mark.parametrize(
    ("stall", "words"),
    [
        (
            Stall(StallReason.NO_INPUT, "B", None, LAST),
            "nothing has arrived from B since 2023-11-14 22:08:20 UTC",
        ),
        (
            Stall(StallReason.HELD, "B", "B", LAST),
            "the watermark waits for B, silent since 2023-11-14 22:08:20 UTC",
        ),
        (
            Stall(StallReason.ENGINE, "A, B", None, LAST),
            "rows of A, B have not been processed since 2023-11-14 22:08:20 UTC",
        ),
    ],
)
def test_causes_are_described_in_words(stall: Stall, words: str) -> None:
    status = query("q", QueryPhase.STALLED, stall)
    assert stall.cause == words
    assert texts(query_problem(status)) == [f"It is stalled: {words}."]
    shown = shape_of_query(status, 0).stalled
    assert shown is not None
    assert (shown.reason, shown.text) == (stall.reason.value, words)


def test_prometheus_is_told_of_stalls_silence_and_lags() -> None:
    stalled = replace(
        query("q", QueryPhase.STALLED, Stall(StallReason.HELD, "T", "roof", LAST)),
        lag=NOW - LAST,
        rows_behind=3,
    )
    lines = (
        written([*query_metrics([stalled], {}, 9), *stream_metrics([TABLE], NOW, 9)])
        .decode()
        .split("\n")
    )
    for line in (
        'nilometer_query_phase{phase="stalled",query="q"} 1.0',
        'nilometer_query_stalled{query="q",reason="held"} 1.0',
        'nilometer_query_watermark_lag_seconds{query="q"} 300.0',
        'nilometer_query_rows_behind{query="q"} 3.0',
        'nilometer_stream_silent_sensors{stream="T"} 1.0',
        'nilometer_stream_held{stream="T"} 1.0',
    ):
        assert line in lines


def test_the_page_of_a_stream_tells_of_silence() -> None:
    assert silence_words(ALIVE) is None
    assert silence_words(DEAD) == "nothing has come since 2023-11-14 22:08:20 UTC"
    assert silence_words(TABLE) == (
        "1 of 9 sensors silent; the watermark is held by the sensor roof"
    )


def test_the_page_of_a_stream_tells_of_a_backlog() -> None:
    assert texts(unshipped_note(None)) == texts(unshipped_note(ALIVE)) == []
    [note] = texts(unshipped_note(replace(ALIVE, unshipped=1, unshipped_since=0)))
    assert note.startswith("1 row is on the server's disk, on the way to the object store, the old")
    assert texts(backlog_note(None)) == texts(backlog_note(ALIVE)) == []
    [note] = texts(backlog_note(replace(ALIVE, backlog=1004)))
    assert note.startswith("1 004 readings had been kept at their source")
    assert note.endswith("their time is that of their arrival.")


def sample(seconds: int, rate: float = 5.0) -> HealthSample:
    return HealthSample(NOW + seconds * SECOND, rate, rate, 0, SECOND, 0, 1.0, 500.0)


def test_charts_run_to_now_and_show_silence_as_a_gap() -> None:
    drawn = sparkline([sample(0), sample(5), sample(10)], NOW + 20 * SECOND)
    (line,) = [one for one in shapes(drawn) if one.tag == "polyline"]
    ends = [point.split(",")[0] for point in str(line.attributes["points"]).split()]
    assert ends == ["0.0", "35.0", "70.0"]  # of 140
    value = CHARTS[0].lines[0].value
    points = line_points([sample(0), sample(20), sample(100)], value)
    base = NOW // 1000
    assert points == [
        (base, 5.0), (base + 20_000, 5.0), (base + 20_001, None), (base + 100_000, 5.0)
    ]  # fmt: skip
