"""The Spark streaming queries of an engine: started, restarted when they end, and stopped."""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from nilometer.engine.plan_set import APART
from nilometer.errors import NilometerError, SessionError
from nilometer.spark.engine_events import tell_restart
from nilometer.spark.engine_source import NAME, EngineSource
from nilometer.spark.failures import explain_failure
from nilometer.spark.pools import started_in_pool
from nilometer.spark.register_source import register_source

_CHECKPOINTS: Final = "spark"
_LONGEST_PAUSE: Final = 30.0
_CHEAP: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.streaming.numRecentProgressUpdates": "2",
    "spark.sql.streaming.pollingDelay": "1ms",
}
"""Settings that make a micro-batch of a few tasks without rows cheaper."""


class EngineStreams:
    """One streaming query for all buckets that queries share, and one for each that is apart.

    Whoever starts or stops any of them must hold the engine's lock.
    """

    def __init__(self, session: SparkSession, folder: Path, beats: float) -> None:
        self._session = session
        self._folder = folder
        self._beats = beats
        self._run = uuid4().hex
        """What workers cache of a folder is for this engine only: another may use it later."""
        self.restarts = 0
        """How many times one of them ended and had to be restarted."""
        self._running: dict[int, StreamingQuery] = {}
        """By their first bucket."""
        self._troubles: dict[int, _Trouble] = {}
        """Why they ended, if they did, until they work again."""
        shutil.rmtree(folder / _CHECKPOINTS, ignore_errors=True)

    @property
    def running(self) -> list[StreamingQuery]:
        """Those that were started, and not stopped."""
        return list(self._running.values())

    def is_active(self, bucket: int) -> bool:
        """Whether a bucket is run."""
        query = self._running.get(_first(bucket))
        return query is not None and query.isActive

    def has_worked(self, bucket: int) -> None:
        """Forget earlier troubles of a bucket."""
        self._troubles.pop(_first(bucket), None)

    def trouble(self, bucket: int) -> NilometerError | None:
        """Why a bucket is currently not run, if it should be."""
        trouble = self._troubles.get(_first(bucket))
        return None if trouble is None else trouble.error

    def start(self, bucket: int) -> None:
        """Run a bucket unless it is run already; an earlier checkpoint is not reused."""
        if self.is_active(bucket):
            return
        first = _first(bucket)
        try:
            self._running[first] = self._start_in_spark(first)
        except Exception:  # a Python process of Spark's may have ended: the next one is new
            self._running[first] = self._start_in_spark(first)

    def start_again(self) -> None:
        """Restart those that have ended: soon at first, then with growing delays."""
        for first, query in list(self._running.items()):
            if not query.isActive:
                del self._running[first]
                self._has_failed(first, query.exception())
        now = time.monotonic()
        for first, trouble in list(self._troubles.items()):
            if first not in self._running and trouble.next_try <= now:
                try:
                    self.start(first)
                except Exception as error:  # whatever Spark raises
                    self._has_failed(first, error)

    def stop(self, bucket: int) -> None:
        """Stop the streaming query of a bucket that is apart."""
        query = self._running.pop(bucket, None)
        if query is not None:
            with suppress(Exception):  # Spark may be gone already
                query.stop()

    def stop_all(self) -> None:
        for first in list(self._running):
            self.stop(first)

    def _has_failed(self, first: int, error: Exception | None) -> None:
        before = self._troubles.get(first)
        failures = 1 if before is None else before.failures + 1
        why = SessionError("the engine was stopped") if error is None else explain_failure(error)
        pause = min(_LONGEST_PAUSE, 0.25 * 2**failures)
        self._troubles[first] = _Trouble(why, failures, time.monotonic() + pause)
        self.restarts += 1
        tell_restart(first, why, failures)

    def _start_in_spark(self, first: int) -> StreamingQuery:
        session = self._session
        if hasattr(session, "_sc"):
            session = session.newSession()
            for name, value in _CHEAP.items():
                session.conf.set(name, value)
        register_source(session, EngineSource)
        rows = (
            session.readStream.format(NAME)
            .option("folder", str(self._folder))
            .option("beats", str(self._beats))
            .option("bucket", str(first))
            .option("run", self._run)
            .load()
        )
        place = f"engine of {self._folder.parent.name}"
        name = place if first == 0 else f"{place}, bucket {first}"
        checkpoint = self._folder / _CHECKPOINTS / uuid4().hex
        with started_in_pool(self._session, name):
            writer = rows.writeStream.format("noop").queryName(name)
            return writer.option("checkpointLocation", str(checkpoint)).start()


@dataclass(frozen=True)
class _Trouble:
    """A streaming query that has ended."""

    error: NilometerError
    failures: int
    next_try: float


def _first(bucket: int) -> int:
    """The first of the buckets that run together with this one."""
    return bucket if bucket >= APART else 0
