"""/metrics: text that Prometheus reads, with as many series as it can bear."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from nilometer.alerts.definition import AlertDefinition
from nilometer.alerts.rule import AlertState
from nilometer.alerts.status import AlertStatus, GroupStatus
from nilometer.database.measures import Measures
from nilometer.database.query_status import (
    HealthSample,
    QueryLimits,
    QueryPhase,
    QueryStatus,
    Stall,
    StallReason,
)
from nilometer.database.spread import Spread
from nilometer.deliveries.status import DeliveryState, DeliveryStatus
from nilometer.sensors.manager.sensor_record import SensorRecord
from nilometer.sensors.manager.status import SensorState, StreamStatus
from nilometer.server.measured.of_alerts import alert_metrics
from nilometer.server.measured.of_deliveries import delivery_metrics
from nilometer.server.measured.of_queries import query_metrics
from nilometer.server.measured.of_server import database_metrics
from nilometer.server.measured.of_streams import sensor_metrics, stream_metrics
from nilometer.server.routes.metrics import written
from nilometer.server.shapes import shape_of_query
from nilometer.spark.engine_status import EngineStatus
from nilometer.spark.processes import JavaStatus, Processes, processes_below
from tests.served import served

RULES = Path(__file__).parents[2] / "deploy" / "prometheus-rules.yml"
HOSTILE = 'a"b\\c\nd{}'
QUERY = QueryStatus(
    "q", "SELECT", "append", QueryPhase.RUNNING, 1, 1, None, 0, None, False, QueryLimits(),
    7, 70, 700, None, 3, lag=2_000_000, rows_behind=9,
    stalled=Stall(StallReason.HELD, "S", "roof", 1),
    spreads=(Spread(("S",), (75, 15, 10), "k = 1", 50, 60.0),),
)  # fmt: skip
SAMPLE = HealthSample(0, 10.0, 5.0, 700, 2_000_000, 4, 250.0, 500.0)
STREAM = StreamStatus(
    name="S", sensors=2, connected=1, readers=1, rows=100, stored_bytes=5000,
    watermark=10_000_000, lag=1_000_000, held_by=None, held_since=5, silent=1, silent_since=None,
    last_arrival=3_000_000, pending=0, full=False, error=None, dead_letters=5, dropped=6,
    backlog=11, segments=2, kept_rows=80, oldest=3_000_000, rate=12.5, behind=13,
    unshipped=14, unshipped_since=1_000_000,
)  # fmt: skip
SENSOR = SensorRecord("S", 0, "s", "a", SensorState.WAITING, errors=3, duplicates=2).status(0)
DELIVERY = DeliveryStatus(
    "d", "q", "webhook", DeliveryState.RETRYING, 40, 40, 9, 1, "busy", None, 8, 12_000_000
)  # fmt: skip
ALERT = AlertStatus(
    AlertDefinition("a", "q", "v > 5", per=("k",)),
    0,
    tuple(
        GroupStatus(None, AlertState(state), 0, None)
        for state in ("firing", "firing", "no data", "ok")
    ),
    9,
    None,
    None,
    3,
)
MEASURES = Measures(
    EngineStatus(5, 1, 2, 0.4),
    3,
    {"query": 6},
    0.001,
    1 << 30,
    3600.0,
    JavaStatus(10, 100, 20, 7, 1.5),
    Processes(4, 400, 800),
)


def read(metrics: Iterable[Metric]) -> dict[str, Metric]:
    """What Prometheus would read."""
    text = written(metrics).decode()
    families = {one.name: one for one in text_string_to_metric_families(text)}
    for name, one in families.items():
        if name.startswith("nilometer"):
            assert one.documentation.endswith("."), name
            assert one.type in ("gauge", "counter"), name
    return families


def whole(queries: list[QueryStatus], limit: int = 1000) -> dict[str, Metric]:
    samples = {one.name: SAMPLE for one in queries}
    return read(
        [
            *query_metrics(queries, samples, limit),
            *stream_metrics([STREAM], 4_000_000, limit),
            *sensor_metrics([SENSOR, replace(SENSOR, number=1)], limit),
            *delivery_metrics([DELIVERY], limit),
            *alert_metrics([ALERT], limit),
            *database_metrics(MEASURES),
        ]
    )


def values(family: Metric) -> dict[tuple[str, ...], float]:
    """By the values of labels, in the order of the labels' names."""
    return {tuple(v for _, v in sorted(one.labels.items())): one.value for one in family.samples}


@pytest.mark.parametrize(
    ("name", "labels", "value"),
    [
        ("nilometer_query_result_rows", ("q",), 7),
        ("nilometer_query_phase", ("running", "q"), 1),
        ("nilometer_query_late_rows", ("q",), 4),
        ("nilometer_query_batch_seconds", ("q",), 0.25),
        ("nilometer_query_watermark_lag_seconds", ("q",), 2),
        ("nilometer_query_rows_behind", ("q",), 9),
        ("nilometer_query_stalled", ("q", "held"), 1),
        ("nilometer_query_buckets", ("q",), 3),
        ("nilometer_query_fullest_bucket_share", ("q",), 0.75),
        ("nilometer_query_hottest_key_share", ("q",), 0.5),
        ("nilometer_queries", ("running",), 1),
        ("nilometer_queries", ("failed",), 0),
        ("nilometer_stream_rows", ("S",), 100),
        ("nilometer_stream_kept_rows", ("S",), 80),
        ("nilometer_stream_segments", ("S",), 2),
        ("nilometer_stream_oldest_seconds", ("S",), 3),
        ("nilometer_stream_watermark_seconds", ("S",), 10),
        ("nilometer_stream_rows_per_second", ("S",), 12.5),
        ("nilometer_stream_ahead_seconds", ("S",), 6),
        ("nilometer_stream_dead_letters", ("S",), 5),
        ("nilometer_stream_dropped", ("S",), 6),
        ("nilometer_stream_backlog", ("S",), 11),
        ("nilometer_stream_behind", ("S",), 13),
        ("nilometer_stream_unshipped_rows", ("S",), 14),
        ("nilometer_stream_unshipped_seconds", ("S",), 3),
        ("nilometer_stream_lag_seconds", ("S",), 1),
        ("nilometer_stream_last_arrival_seconds", ("S",), 1),
        ("nilometer_stream_silent_sensors", ("S",), 1),
        ("nilometer_stream_held", ("S",), 1),
        ("nilometer_sensors", ("waiting", "S"), 2),
        ("nilometer_sensor_errors", ("S",), 6),
        ("nilometer_delivery_rows", ("d",), 40),
        ("nilometer_alert_firing", ("a",), 2),
        ("nilometer_alert_no_data", ("a",), 1),
        ("nilometer_alert_silenced", ("a",), 1),
        ("nilometer_alert_failed_rows", ("a",), 3),
        ("nilometer_delivery_backlog_rows", ("d",), 9),
        ("nilometer_delivery_retries", ("d",), 8),
        ("nilometer_delivery_lost_rows", ("d",), 1),
        ("nilometer_delivery_last_success_seconds", ("d",), 12),
        ("nilometer_delivery_state", ("d", "retrying"), 1),
        ("nilometer_engine_queries", ("moved",), 1),
        ("nilometer_engine_restarts", (), 2),
        ("nilometer_engine_batch_seconds", (), 0.4),
        ("nilometer_queries_failed", (), 3),
        ("nilometer_catalog_names", ("query",), 6),
        ("nilometer_disk_free_bytes", (), 1 << 30),
        ("nilometer_java_heap_bytes", (), 10),
        ("nilometer_java_collection_seconds", (), 1.5),
        ("nilometer_worker_processes", (), 4),
        ("nilometer_worker_resident_bytes", (), 400),
    ],
)
def test_what_is_exported(name: str, labels: tuple[str, ...], value: float) -> None:
    assert values(whole([QUERY])[name])[labels] == value


def test_names_cannot_break_the_text() -> None:
    families = whole([replace(QUERY, name=HOSTILE)])
    assert values(families["nilometer_query_result_rows"]) == {(HOSTILE,): 7}


def test_a_thousand_queries_and_temporary_ones_are_bounded() -> None:
    named = [replace(QUERY, name=f"q{at}", created=at) for at in range(1500)]
    passing = [replace(QUERY, name=f"run_{at}", is_temporary=True) for at in range(500)]
    families = whole([*passing, *named])
    assert values(families["nilometer_queries"])["running",] == 2000
    assert values(families["nilometer_queries_left_out"]) == {(): 1000}
    rows = values(families["nilometer_query_result_rows"])
    assert list(rows) == [(f"q{at}",) for at in range(1000)]  # the same ones every time
    per_query = [one for one in families.values() if one.name.startswith("nilometer_query_")]
    assert sum(len(one.samples) for one in per_query) == 1000 * len(per_query)
    assert not any("run_" in str(one.labels) for f in families.values() for one in f.samples)


def test_what_cannot_be_found_out_is_left_out() -> None:
    families = read(database_metrics(Measures()))
    assert not families["nilometer_engine_batch_seconds"].samples
    assert not families["nilometer_disk_free_bytes"].samples
    assert "nilometer_java_heap_bytes" not in families


def test_every_rule_asks_for_metrics_that_there_are() -> None:
    exported = {s.name for one in whole([QUERY]).values() for s in one.samples}
    asked = set(re.findall(r"\bnilometer_[a-z_]+", RULES.read_text()))
    assert asked
    assert asked <= exported


def test_metrics_over_http_need_a_token(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        assert server.ask("GET", "/metrics", None).status_code == 401
        answer = server.ask("GET", "/metrics", "read")
        assert answer.status_code == 200
        names = {one.name for one in text_string_to_metric_families(answer.text)}
        assert {"nilometer_build_info", "nilometer_queries", "nilometer_engine_restarts"} <= names


def test_processes_are_found_by_their_parents(tmp_path: Path) -> None:
    def made(pid: int, name: str, parent: int, pages: int) -> None:
        folder = tmp_path / str(pid)
        folder.mkdir()
        zeros = " ".join(["0"] * 19)
        (folder / "stat").write_text(f"{pid} ({name}) S {parent} {zeros} {pages} 0 0\n")

    made(1, "init", 0, 1)
    made(10, "python3", 1, 100)
    made(11, "java", 10, 50)
    made(12, "python3", 11, 7)
    made(13, "python3 (x) y", 12, 3)
    made(14, "python3", 1, 999)
    (tmp_path / "15").mkdir()
    processes = processes_below(10, tmp_path)
    page = processes.java_bytes // 50 if processes else 0
    assert processes == Processes(2, 10 * page, 50 * page)
    assert processes_below(99, tmp_path) is None


def test_the_api_tells_how_rows_are_spread() -> None:
    spread = shape_of_query(QUERY, followers=0).model_dump()["spread"]
    assert spread == {
        "bucket_rows": [75, 15, 10],
        "key": "k = 1",
        "key_share": 0.5,
        "is_bottleneck": False,
    }
    assert shape_of_query(replace(QUERY, spreads=()), followers=0).spread is None
