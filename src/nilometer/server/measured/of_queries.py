"""Metrics of named queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric

from nilometer.database.query_status import HealthSample, QueryPhase, QueryStatus
from nilometer.server.measured.families import counters, gauge, gauges


def query_metrics(
    queries: Sequence[QueryStatus], last: Mapping[str, HealthSample], limit: int
) -> Iterator[Metric]:
    """All queries by phase; individually, those that a user has named, at most this many.

    Temporary queries come and go: each would leave a series behind forever.
    """
    phases = Counter(one.phase for one in queries)
    yield gauges(
        "phase", "queries", "Queries in each phase.", [(p.value, phases[p]) for p in QueryPhase]
    )
    named = sorted((q for q in queries if not q.is_temporary), key=lambda q: (q.created, q.name))
    statuses = named[:limit]
    yield gauge(
        "queries_left_out",
        "Queries that the metrics of queries leave out, such as temporary ones.",
        len(queries) - len(statuses),
    )
    yield _phases(statuses)
    yield _stalls(statuses)
    yield from _of_progress(statuses)
    yield from _of_results(statuses)
    yield from _of_spreads(statuses)
    yield from _of_samples({one.name: last[one.name] for one in statuses if one.name in last})


def _phases(statuses: Sequence[QueryStatus]) -> Metric:
    """One series for each query: the label is its phase."""
    family = GaugeMetricFamily(
        "nilometer_query_phase", "1, with the phase of a query.", labels=["query", "phase"]
    )
    for one in statuses:
        family.add_metric([one.name, one.phase.value], 1)
    return family


def _stalls(statuses: Sequence[QueryStatus]) -> Metric:
    """One series for each stalled query: the label is the reason."""
    family = GaugeMetricFamily(
        "nilometer_query_stalled",
        "1, with the reason why a query is stalled.",
        labels=["query", "reason"],
    )
    for one in statuses:
        if one.stalled is not None:
            family.add_metric([one.name, one.stalled.reason.value], 1)
    return family


def _of_progress(statuses: Sequence[QueryStatus]) -> Iterator[Metric]:
    """How far queries are behind at present."""
    lags = [(q.name, None if q.lag is None else q.lag / 1e6) for q in statuses]
    rows = [(q.name, q.rows_behind) for q in statuses]
    behind = "How far the watermark is behind the clock now."
    yield gauges("query", "query_watermark_lag_seconds", behind, lags)
    yield gauges("query", "query_rows_behind", "Available rows that were not read yet.", rows)


def _of_results(statuses: Sequence[QueryStatus]) -> Iterator[Metric]:
    rows = [(q.name, q.result_rows) for q in statuses]
    stored = [(q.name, q.result_bytes) for q in statuses]
    state = [(q.name, q.state_bytes) for q in statuses]
    failures = [(q.name, q.failures) for q in statuses]
    letters = [(q.name, q.dead_letters) for q in statuses]
    left_out = "Rows left out because something of them could not be computed."
    yield counters("query", "query_result_rows", "Rows of results.", rows)
    yield gauges("query", "query_result_bytes", "Bytes that results take.", stored)
    yield gauges("query", "query_state_bytes", "Bytes that the state takes.", state)
    yield gauges("query", "query_failures", "How often in a row a query has failed.", failures)
    yield counters("query", "query_dead_letters", left_out, letters)


def _of_spreads(statuses: Sequence[QueryStatus]) -> Iterator[Metric]:
    """Of the stage with the fullest bucket, over the last minute or two."""
    spreads = [(q.name, next(iter(q.spreads), None)) for q in statuses]
    buckets = [(n, None if s is None else len(s.bucket_rows)) for n, s in spreads]
    fullest = [(n, None if s is None else s.fullest) for n, s in spreads]
    keys = [(n, None if s is None else s.key_share) for n, s in spreads]
    of_bucket = "The share of its rows that the fullest bucket has."
    of_key = "The share of its rows that have the most frequent key of the fullest bucket."
    yield gauges("query", "query_buckets", "Buckets that its rows are spread over.", buckets)
    yield gauges("query", "query_fullest_bucket_share", of_bucket, fullest)
    yield gauges("query", "query_hottest_key_share", of_key, keys)


def _of_samples(last: Mapping[str, HealthSample]) -> Iterator[Metric]:
    samples = list(last.items())
    read = [(n, s.input_rows_per_second) for n, s in samples]
    output = [(n, s.output_rows_per_second) for n, s in samples]
    took = [(n, s.batch_millis / 1e3) for n, s in samples]
    late = [(n, s.late_rows) for n, s in samples]
    shed = [(n, s.shed_rows) for n, s in samples]
    yield gauges("query", "query_input_rows_per_second", "In the last micro-batch.", read)
    yield gauges("query", "query_output_rows_per_second", "In the last micro-batch.", output)
    yield gauges("query", "query_batch_seconds", "Seconds that the last micro-batch took.", took)
    yield counters("query", "query_late_rows", "Rows dropped because they were late.", late)
    yield counters("query", "query_shed_rows", "Rows not read, as too many waited.", shed)
