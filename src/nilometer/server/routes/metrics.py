"""/metrics: how the server is doing, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from fastapi import APIRouter, Response
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from nilometer.database.query_status import HealthSample, QueryPhase, QueryStatus
from nilometer.errors import NotFoundError
from nilometer.log.clock import now_micros
from nilometer.sensors.manager.status import SensorState, SensorStatus, StreamStatus
from nilometer.server.access import Reader
from nilometer.server.error_shape import responses
from nilometer.server.service import Service


class Collected:
    """Metrics that were made elsewhere, as prometheus_client wants them."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = list(metrics)

    def collect(self) -> Iterator[Metric]:
        return iter(self._metrics)


def metrics_router(service: Service) -> APIRouter:
    """Metrics of queries, streams, sensors, the server and its process."""
    router = APIRouter(tags=["operation"])

    @router.get(
        "/metrics",
        operation_id="getMetrics",
        response_class=Response,
        responses={
            200: {"content": {"text/plain": {}}, "description": "In Prometheus's text format."},
            **responses(),
        },
    )
    async def get_metrics(_: Reader) -> Response:
        """How queries, streams, sensors and the server are doing."""
        queries = await service.queries()
        metrics = [
            *query_metrics(queries, await _last_samples(service, queries)),
            *stream_metrics(await service.streams()),
            *sensor_metrics(await service.sensors()),
            *server_metrics(service),
        ]
        return Response(
            await service.look(lambda: written(metrics)), media_type=CONTENT_TYPE_LATEST
        )

    return router


async def _last_samples(
    service: Service, queries: Iterable[QueryStatus]
) -> dict[str, HealthSample]:
    """The newest sample of each query; those that were dropped meanwhile have none."""
    found = {}
    for one in queries:
        with suppress(NotFoundError):
            if samples := await service.health(one.name):
                found[one.name] = samples[-1]
    return found


def written(metrics: Iterable[Metric]) -> bytes:
    """Metrics, and those of this process, as text."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(Collected(metrics))
    return generate_latest(registry)


def query_metrics(
    queries: Iterable[QueryStatus], last: dict[str, HealthSample]
) -> Iterator[Metric]:
    """How named queries are doing."""
    known = list(queries)
    phases = GaugeMetricFamily(
        "nilometer_query_phase", "1 for the phase in which a query is.", labels=["query", "phase"]
    )
    for one in known:
        for phase in QueryPhase:
            phases.add_metric([one.name, phase.value], float(one.phase is phase))
    yield phases
    yield _counters(
        "nilometer_query_result_rows", "Rows of results.", [(q.name, q.result_rows) for q in known]
    )
    yield _gauges(
        "nilometer_query_result_bytes",
        "Bytes that results take.",
        [(q.name, q.result_bytes) for q in known],
    )
    yield _gauges(
        "nilometer_query_state_bytes",
        "Bytes that the state takes.",
        [(q.name, q.state_bytes) for q in known if q.state_bytes is not None],
    )
    yield _gauges(
        "nilometer_query_failures",
        "How often in a row a query has failed.",
        [(q.name, q.failures) for q in known],
    )
    yield _counters(
        "nilometer_query_dead_letters",
        "Rows left out because something of them could not be computed.",
        [(q.name, q.dead_letters) for q in known],
    )
    yield from _sample_metrics(last)


def _sample_metrics(last: dict[str, HealthSample]) -> Iterator[Metric]:
    def gauge(name: str, text: str, values: Iterable[tuple[str, float | None]]) -> Metric:
        told = [(query, value) for query, value in values if value is not None]
        return _gauges(f"nilometer_query_{name}", text, told)

    found = last.items()
    yield gauge(
        "input_rows_per_second",
        "In the last batch.",
        [(n, s.input_rows_per_second) for n, s in found],
    )
    yield gauge(
        "output_rows_per_second",
        "In the last batch.",
        [(n, s.output_rows_per_second) for n, s in found],
    )
    yield gauge(
        "watermark_lag_seconds",
        "How far the watermark is behind the clock.",
        [(n, None if s.watermark_lag is None else s.watermark_lag / 1e6) for n, s in found],
    )
    yield gauge("batch_seconds", "The last batch.", [(n, s.batch_millis / 1e3) for n, s in found])
    yield _counters(
        "nilometer_query_late_rows",
        "Rows dropped because they were late.",
        [(n, s.late_rows) for n, s in found],
    )


def stream_metrics(streams: Iterable[StreamStatus]) -> Iterator[Metric]:
    """How streams and sensor tables are doing."""
    known = list(streams)
    label = "stream"
    yield _counters(
        "nilometer_stream_rows", "Rows stored.", [(s.name, s.rows) for s in known], label
    )
    yield _gauges(
        "nilometer_stream_bytes", "Bytes stored.", [(s.name, s.stored_bytes) for s in known], label
    )
    yield _counters(
        "nilometer_stream_dead_letters",
        "Readings that could not be stored.",
        [(s.name, s.dead_letters) for s in known],
        label,
    )
    yield _counters(
        "nilometer_stream_dropped",
        "Readings dropped because there was no room.",
        [(s.name, s.dropped) for s in known],
        label,
    )
    now = now_micros()
    yield _gauges(
        "nilometer_stream_ahead_seconds",
        "By how much the time of a stream is ahead of the clock.",
        [(s.name, _ahead(s, now)) for s in known],
        label,
    )


def _ahead(stream: StreamStatus, now: int) -> float:
    return 0.0 if stream.watermark is None else max(0, stream.watermark - now) / 1e6


def sensor_metrics(sensors: Iterable[SensorStatus]) -> Iterator[Metric]:
    """How many sensors of each stream are in each state; there may be thousands of them."""
    known = list(sensors)
    family = GaugeMetricFamily(
        "nilometer_sensors", "Sensors that some query needs.", labels=["stream", "state"]
    )
    for stream in sorted({one.stream for one in known}):
        for state in SensorState:
            many = sum(one.stream == stream and one.state is state for one in known)
            family.add_metric([stream, state.value], many)
    yield family


def server_metrics(service: Service) -> Iterator[Metric]:
    """What the server itself counts."""
    yield GaugeMetricFamily(
        "nilometer_followers",
        "Connections that follow results.",
        value=service.followers.taken,
    )
    yield GaugeMetricFamily(
        "nilometer_clock_jump_seconds",
        "By how much the clock of the system has jumped ahead, or back, until that counts.",
        value=service.clock_ahead / 1e6,
    )
    yield GaugeMetricFamily(
        "nilometer_statements", "Statements that run or wait.", value=service.statements_taken
    )


def _gauges(
    name: str, text: str, values: Iterable[tuple[str, float]], label: str = "query"
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=[label])
    for labelled, value in values:
        family.add_metric([labelled], value)
    return family


def _counters(
    name: str, text: str, values: Iterable[tuple[str, float]], label: str = "query"
) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=[label])
    for labelled, value in values:
        family.add_metric([labelled], value)
    return family
