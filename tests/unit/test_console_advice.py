"""Words of advice about queries, and what of their health is charted."""

from __future__ import annotations

from dataclasses import replace

from nilometer.database.query_status import HealthSample
from nilometer.database.spread import Spread
from nilometer.operators.metrics import StreamMetrics
from nilometer.sensors.manager.status import StreamStatus
from nilometer.server.console.advice import advise, uneven
from nilometer.server.console.health_charts import thinned
from tests.unit.test_console_drawings import query

_SECOND = 1_000_000
_GOOD = HealthSample(0, 10.0, 5.0, 1000, _SECOND, 0, 200.0, 500.0, {})


def samples(count: int, **changes: object) -> list[HealthSample]:
    return [replace(_GOOD, time=n * _SECOND, **changes) for n in range(count)]  # type: ignore[arg-type]


def stream(name: str, **changes: object) -> StreamStatus:
    status = StreamStatus(
        name, 2, 2, 1, 10, 100, 5, 0, "s1", None, 0, None, 5, 0, False, None, 0, 0, 0
    )
    return replace(status, **changes)  # type: ignore[arg-type]


def test_a_query_that_is_well_gets_no_advice() -> None:
    assert advise([], []) == []
    assert advise(samples(90), [stream("A")]) == []


def test_slow_batches_are_reported_when_most_are_slow() -> None:
    slow = samples(10, batch_millis=7200.0)
    (one,) = advise(slow, [])
    assert (
        one.message == "results come some 7.2 s after the readings: a micro-batch takes that long"
    )
    assert advise([*samples(20), *slow[:3]], []) == []
    assert advise(slow[:2], []) == []


def test_micro_batches_that_take_longer_than_their_pause_are_no_trouble() -> None:
    assert advise(samples(60, batch_millis=900.0, budget_millis=500.0), []) == []


def test_late_rows_name_the_stream_that_has_most() -> None:
    def after(late: int, other: int) -> dict[str, StreamMetrics]:
        return {
            "A": StreamMetrics(0, late, 0, 0, None),
            "B": StreamMetrics(0, other, 0, 0, None),
        }

    old = replace(_GOOD, time=0, late_rows=8, streams=after(0, 8))
    new = replace(_GOOD, time=_SECOND, late_rows=20, streams=after(12, 8))
    (one,) = advise([old, new], [])
    assert one.message == (
        "12 rows came too late in the last minute and were dropped, most of them of A"
    )
    long_ago = replace(new, time=100 * _SECOND)
    assert advise([old, replace(long_ago, time=99 * _SECOND), long_ago], []) == []


def test_a_watermark_that_is_behind_names_the_sensor_that_holds_it() -> None:
    behind = samples(5, watermark_lag=90 * _SECOND)
    silent = stream("B", watermark=-86 * _SECOND, held_by="roof")
    (one,) = advise(behind, [stream("A"), silent])
    assert one.message == (
        "its watermark is 1.5 min behind the clock: held back by the sensor roof of B"
    )
    (one,) = advise(behind, [stream("A", held_by=None)])
    assert "a stream is silent" in one.hint


def test_sensors_are_not_to_blame_for_what_a_query_has_not_read_yet() -> None:
    behind = samples(2, watermark_lag=90 * _SECOND, batch_millis=80_000.0)
    (one,) = advise(behind, [stream("A", watermark=80 * _SECOND)])
    assert one.message == (
        "its watermark is 1.5 min behind the clock: the query has not kept up with its input"
    )
    assert "took 80 000 ms" in one.hint


def test_a_full_log_is_reported() -> None:
    (one,) = advise(samples(1), [stream("A", full=True)])
    assert one.message == "the log of A is full, its sensors wait"


def test_a_bucket_with_most_of_the_rows_is_shown() -> None:
    hot = Spread(("A",), (83_000, *[2000] * 7), "sensor_id = 'a17'", 80_000, 60.0)
    (one,) = uneven(replace(query("my q"), spreads=(replace(hot, seconds=1e6), hot)))
    assert one.message.startswith("One key, sensor_id = 'a17', has 82 % of the rows: one bucket")
    assert "EXPLAIN QUERY `my q`" in one.hint
    assert not list(uneven(replace(query("q"), spreads=(replace(hot, seconds=1e6),))))
    statement = "ALTER QUERY q SET (spread = 8) shares it among 8 buckets"
    hot_query = replace(query("q"), spreads=(hot,), remedy=statement)
    assert [one.hint for one in uneven(hot_query)] == [statement]
    assert str(hot_query.bottleneck_text).endswith(f"and more cores do not help: {statement}")


def test_charts_show_a_bounded_number_of_points_and_always_the_last() -> None:
    for count in (0, 1, 149, 150, 151, 1200):
        many = samples(count)
        points = thinned(many)
        assert len(points) <= 150
        assert list(points[-1:]) == many[-1:]
