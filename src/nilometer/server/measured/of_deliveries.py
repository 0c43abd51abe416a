"""Metrics of deliveries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric

from nilometer.deliveries.status import DeliveryStatus
from nilometer.server.measured.families import counters, gauges

_LABEL: Final = "delivery"


def delivery_metrics(deliveries: Sequence[DeliveryStatus], limit: int) -> Iterator[Metric]:
    """The state of deliveries, at most this many of them."""
    statuses = deliveries[:limit]
    states = GaugeMetricFamily(
        "nilometer_delivery_state",
        "1, with the state of a delivery.",
        labels=[_LABEL, "state"],
    )
    for one in statuses:
        states.add_metric([one.name, one.state.value], 1)
    yield states
    sent = [(d.name, d.delivered) for d in statuses]
    lost = [(d.name, d.lost) for d in statuses]
    retries = [(d.name, d.retries) for d in statuses]
    backlog = [(d.name, d.lag) for d in statuses]
    last = [(d.name, None if d.last_success is None else d.last_success / 1e6) for d in statuses]
    gone = "Rows that were gone before they could be delivered."
    yield counters(_LABEL, "delivery_rows", "Rows that have arrived.", sent)
    yield counters(_LABEL, "delivery_lost_rows", gone, lost)
    yield counters(_LABEL, "delivery_retries", "Attempts that failed, and were repeated.", retries)
    yield gauges(_LABEL, "delivery_backlog_rows", "Rows that are still to be delivered.", backlog)
    yield gauges(
        _LABEL,
        "delivery_last_success_seconds",
        "When rows were last delivered, in seconds since 1970.",
        last,
    )
