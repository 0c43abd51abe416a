"""Metrics of streams, their logs and their sensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric

from nilometer.sensors.manager.status import SensorState, SensorStatus, StreamStatus
from nilometer.server.measured.families import counters, gauges

_LABEL: Final = "stream"


def stream_metrics(streams: Sequence[StreamStatus], now: int, limit: int) -> Iterator[Metric]:
    """The state of streams and sensor tables, at most this many of them."""
    statuses = streams[:limit]
    yield from _of_logs(statuses)
    letters = [(s.name, s.dead_letters) for s in statuses]
    dropped = [(s.name, s.dropped) for s in statuses]
    no_room = "Readings dropped because there was no room."
    yield counters(_LABEL, "stream_dead_letters", "Readings that could not be stored.", letters)
    yield counters(_LABEL, "stream_dropped", no_room, dropped)
    backlog = [(s.name, s.backlog) for s in statuses]
    had_kept = "Readings that were kept at their source, stored with their time of arrival."
    yield counters(_LABEL, "stream_backlog", had_kept, backlog)
    behind = [(s.name, s.behind) for s in statuses]
    yield gauges(_LABEL, "stream_behind", "Readings that wait at their source.", behind)
    yield from _of_silence(statuses, now)
    yield from _of_shipping(statuses, now)
    readers = [(s.name, s.readers) for s in statuses]
    pending = [(s.name, s.pending) for s in statuses]
    full = [(s.name, float(s.full)) for s in statuses]
    ahead = [(s.name, _ahead(s.watermark, now)) for s in statuses]
    yield gauges(_LABEL, "stream_readers", "Readers that are alive.", readers)
    yield gauges(_LABEL, "stream_pending_rows", "Rows that wait to be appended.", pending)
    yield gauges(_LABEL, "stream_full", "Whether its log has no room.", full)
    yield gauges(
        _LABEL, "stream_ahead_seconds", "By how much its time is ahead of the clock.", ahead
    )


def _of_logs(statuses: Sequence[StreamStatus]) -> Iterator[Metric]:
    rows = [(s.name, s.rows) for s in statuses]
    kept_rows = [(s.name, s.kept_rows) for s in statuses]
    stored = [(s.name, s.stored_bytes) for s in statuses]
    segments = [(s.name, s.segments) for s in statuses]
    rates = [(s.name, s.rate) for s in statuses]
    oldest = [(s.name, None if s.oldest is None else s.oldest / 1e6) for s in statuses]
    newest = [(s.name, None if s.watermark is None else s.watermark / 1e6) for s in statuses]
    yield counters(_LABEL, "stream_rows", "Rows stored.", rows)
    yield gauges(_LABEL, "stream_kept_rows", "Rows that its log holds.", kept_rows)
    yield gauges(_LABEL, "stream_bytes", "Bytes stored.", stored)
    yield gauges(_LABEL, "stream_segments", "Files in which its log lies.", segments)
    yield gauges(_LABEL, "stream_rows_per_second", "Rows that are appended.", rates)
    yield gauges(
        _LABEL,
        "stream_oldest_seconds",
        "When its oldest segment was started, in seconds since 1970.",
        oldest,
    )
    yield gauges(_LABEL, "stream_watermark_seconds", "Its watermark, since 1970.", newest)


def _of_shipping(statuses: Sequence[StreamStatus], now: int) -> Iterator[Metric]:
    """What is on the server's disk, and not in the object store yet."""
    rows = [(s.name, s.unshipped) for s in statuses]
    ages = [(s.name, _ago(s.unshipped_since, now)) for s in statuses]
    on_disk = "Rows on the server's disk that are not in the object store yet."
    yield gauges(_LABEL, "stream_unshipped_rows", on_disk, rows)
    yield gauges(
        _LABEL, "stream_unshipped_seconds", "For how long the oldest of them has waited.", ages
    )


def _of_silence(statuses: Sequence[StreamStatus], now: int) -> Iterator[Metric]:
    """How far streams are behind the clock now, and how many sensors are silent."""
    lags = [(s.name, None if s.lag is None else s.lag / 1e6) for s in statuses]
    heard = [(s.name, _ago(s.last_arrival, now)) for s in statuses]
    silent = [(s.name, s.silent) for s in statuses]
    held = [(s.name, float(s.held_since is not None)) for s in statuses]
    whatever = "Sensors that have been silent for longer than expected, whatever their state is."
    keeps = "1 if silence keeps the watermark from advancing."
    yield gauges(
        _LABEL, "stream_lag_seconds", "How far the watermark is behind the clock now.", lags
    )
    yield gauges(
        _LABEL, "stream_last_arrival_seconds", "How long ago the last reading arrived.", heard
    )
    yield gauges(_LABEL, "stream_silent_sensors", whatever, silent)
    yield gauges(_LABEL, "stream_held", keeps, held)


def sensor_metrics(sensors: Sequence[SensorStatus], limit: int) -> Iterator[Metric]:
    """How many sensors of each stream are in each state; there may be thousands of sensors."""
    states = Counter((one.stream, one.state) for one in sensors)
    streams = sorted({one.stream for one in sensors})[:limit]
    family = GaugeMetricFamily(
        "nilometer_sensors", "Sensors that some query needs.", labels=["stream", "state"]
    )
    for stream in streams:
        for state in SensorState:
            family.add_metric([stream, state.value], states[stream, state])
    yield family
    totals: Counter[tuple[str, str]] = Counter()
    for one in sensors:
        totals[one.stream, "errors"] += one.errors
        totals[one.stream, "duplicates"] += one.duplicates
    for what in ("errors", "duplicates"):
        values = [(stream, totals[stream, what]) for stream in streams]
        yield counters(_LABEL, f"sensor_{what}", f"Of the sensors of a stream: {what}.", values)


def _ago(instant: int | None, now: int) -> float | None:
    return None if instant is None else max(0, now - instant) / 1e6


def _ahead(instant: int | None, now: int) -> float:
    return 0.0 if instant is None else max(0, instant - now) / 1e6
