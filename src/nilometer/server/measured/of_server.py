"""Metrics of the server: its engine, its catalog, Java, workers, and its load."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import InfoMetricFamily, Metric

from nilometer.database.measures import Measures
from nilometer.server.measured.families import counter, gauge, gauges
from nilometer.server.service import Service
from nilometer.version import VERSION


def server_metrics(service: Service) -> Iterator[Metric]:
    """The server's own counts."""
    yield InfoMetricFamily("nilometer_build", "The version.", {"version": VERSION})
    jump = "By how much the system clock has jumped ahead, or back, until that counts."
    yield gauge("followers", "Connections that follow results.", service.followers.taken)
    yield gauge("statements", "Statements that run or wait.", service.statements_taken)
    yield gauge("clock_jump_seconds", jump, service.clock_ahead / 1e6)


def database_metrics(measures: Measures) -> Iterator[Metric]:
    """Measures of the whole database."""
    engine = measures.engine
    hosted = [("shared", engine.shared), ("moved", engine.moved)]
    restarts = "How often a streaming query of the engine has ended, and was started again."
    batch = "The longest of the last micro-batches of the engine."
    yield gauges("place", "engine_queries", "Queries that the engine runs.", hosted)
    yield counter("engine_restarts", restarts, engine.restarts)
    yield gauge("engine_batch_seconds", batch, engine.batch_seconds)
    yield counter("queries_failed", "How often queries have failed.", measures.failures)
    named = sorted(measures.named.items())
    took = "How long the catalog took to list its names."
    yield gauges("kind", "catalog_names", "What the catalog keeps.", named)
    yield gauge("catalog_seconds", took, measures.catalog_seconds)
    yield gauge("disk_free_bytes", "Free where the database lies.", measures.disk_free)
    yield gauge("disk_full_seconds", "Seconds until the disk is full.", measures.disk_full_seconds)
    yield from _of_processes(measures)


def _of_processes(measures: Measures) -> Iterator[Metric]:
    java, below = measures.java, measures.processes
    if java is not None:
        heap, max_heap = java.heap_bytes, java.max_heap_bytes
        yield gauge("java_heap_bytes", "Bytes in use on Java's heap.", heap)
        yield gauge(
            "java_max_heap_bytes",
            "The maximum size of Java's heap in bytes.",
            max_heap if max_heap >= 0 else None,
        )
        yield gauge("java_threads", "Threads of Java.", java.threads)
        yield counter("java_collections", "Collections of garbage.", java.collections)
        yield counter(
            "java_collection_seconds", "Seconds of garbage collection.", java.collection_seconds
        )
    if below is not None:
        shared = "Resident memory of these processes; what they share counts for each."
        yield gauge("java_resident_bytes", "Resident memory of Java.", below.java_bytes)
        yield gauge("worker_processes", "Python processes of Spark.", below.workers)
        yield gauge("worker_resident_bytes", shared, below.worker_bytes)
