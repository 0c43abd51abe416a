"""Metric families from values by name."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

Values = Iterable[tuple[str, float | None]]
"""Values by the name of a query, a stream or a delivery; None: no value."""


def gauges(label: str, name: str, text: str, values: Values) -> Metric:
    """A value that goes up and down, for each of these names."""
    return _filled(GaugeMetricFamily(_full_name(name), text, labels=[label]), values)


def counters(label: str, name: str, text: str, values: Values) -> Metric:
    """A counter for each of these names."""
    return _filled(CounterMetricFamily(_full_name(name), text, labels=[label]), values)


def gauge(name: str, text: str, value: float | None) -> Metric:
    """One value that goes up and down; no samples if it is None."""
    family = GaugeMetricFamily(_full_name(name), text)
    if value is not None:
        family.add_metric([], value)
    return family


def counter(name: str, text: str, value: float | None) -> Metric:
    """One counter."""
    family = CounterMetricFamily(_full_name(name), text)
    if value is not None:
        family.add_metric([], value)
    return family


def _full_name(name: str) -> str:
    return f"nilometer_{name}"


def _filled(
    family: GaugeMetricFamily | CounterMetricFamily, values: Values
) -> GaugeMetricFamily | CounterMetricFamily:
    for name, value in values:
        if value is not None:
            family.add_metric([name], value)
    return family
