"""Metrics of alerts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from prometheus_client.core import Metric

from nilometer.alerts.rule import AlertState
from nilometer.alerts.status import AlertStatus
from nilometer.server.measured.families import counters, gauges

_LABEL: Final = "alert"


def alert_metrics(alerts: Sequence[AlertStatus], limit: int) -> Iterator[Metric]:
    """The state of alerts, at most this many of them."""
    statuses = alerts[:limit]
    firing = [(one.name, one.count(AlertState.FIRING)) for one in statuses]
    pending = [(one.name, one.count(AlertState.PENDING)) for one in statuses]
    silent = [(one.name, one.count(AlertState.NO_DATA)) for one in statuses]
    silenced = [(one.name, int(one.silenced_until is not None)) for one in statuses]
    failed = [(one.name, one.failed_rows) for one in statuses]
    yield gauges(_LABEL, "alert_firing", "Groups of an alert that fire.", firing)
    yield gauges(_LABEL, "alert_pending", "Groups that will fire if nothing changes.", pending)
    yield gauges(_LABEL, "alert_no_data", "Groups without data.", silent)
    yield gauges(_LABEL, "alert_silenced", "1 while deliveries are silenced.", silenced)
    yield counters(
        _LABEL,
        "alert_failed_rows",
        "Rows for which an alert's condition could not be computed.",
        failed,
    )
