"""/metrics: the state of the server, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fastapi import APIRouter, Response
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from nilometer.log.clock import now_micros
from nilometer.server.access import Reader
from nilometer.server.error_shape import responses
from nilometer.server.measured.of_alerts import alert_metrics
from nilometer.server.measured.of_deliveries import delivery_metrics
from nilometer.server.measured.of_queries import query_metrics
from nilometer.server.measured.of_server import database_metrics, server_metrics
from nilometer.server.measured.of_streams import sensor_metrics, stream_metrics
from nilometer.server.service import Service


class Collected:
    """Metrics collected elsewhere, in the form that prometheus_client expects."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = list(metrics)

    def collect(self) -> Iterator[Metric]:
        return iter(self._metrics)


def metrics_router(service: Service) -> APIRouter:
    """Metrics of queries, streams, sensors, deliveries, alerts, the server and its processes."""
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
        """How queries, streams, sensors, deliveries, alerts and the server are doing."""
        limit = service.settings.max_measured
        metrics = [
            *query_metrics(
                await service.queries.all(), await service.queries.last_samples(), limit
            ),
            *stream_metrics(await service.streams.all(), now_micros(), limit),
            *sensor_metrics(await service.streams.sensors(), limit),
            *delivery_metrics(await service.deliveries(), limit),
            *alert_metrics(await service.alerts(), limit),
            *database_metrics(await service.measures()),
            *server_metrics(service),
        ]
        return Response(
            await service.look(lambda: written(metrics)), media_type=CONTENT_TYPE_LATEST
        )

    return router


def written(metrics: Iterable[Metric]) -> bytes:
    """Metrics, including those of this process, as text."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(Collected(metrics))
    return generate_latest(registry)
