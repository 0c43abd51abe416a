"""`readStream.format("nilometer-engine")`: Spark gives each bucket a task for every micro-batch.

No row passes through Spark: a task reads logs, runs the bucket's queries and writes the bucket's
file, on a cluster by way of the driver. What a micro-batch did is in those files, not in Spark's
checkpoint, so Spark's offsets are just numbers. The reader lives in a process of its own beside the
driver for as long as the engine runs; a thread in it publishes results.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from nilometer.engine.bucket import Bucket, MicroBatchTask
from nilometer.engine.place import (
    EnginePlace,
    LocalPlace,
    ServedAddress,
    ServedPlace,
    read_address,
)
from nilometer.engine.publisher import Publisher
from nilometer.engine.schedule import Schedule, Tasks
from nilometer.log.position import Position
from nilometer.spark.versions import Offset, StreamReader

NAME: Final = "nilometer-engine"
_WAIT: Final = 0.5
"""How long (seconds) Spark is kept waiting for work."""
_PUBLISH_EVERY: Final = 0.01
_TELL_EVERY: Final = 60.0
_END_WITHIN: Final = 10
_LOG: Final = logging.getLogger("nilometer.engine")


class EngineSource(DataSource):
    """All queries of an engine. Options: `folder`, the `beats` per second, a `bucket` (to run
    with all that run together with it), and the `run` of the engine."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return "bucket INT"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
        options = self.options
        bucket, run = int(options["bucket"]), options["run"]
        return _Reader(Path(options["folder"]), float(options["beats"]), bucket, run)


class _Reader(StreamReader):
    """Decides when buckets have work."""

    def __init__(self, folder: Path, beats: float, bucket: int, run: str) -> None:
        self._folder = folder
        self._beats = beats
        self._bucket = bucket
        self._run = run
        self._number = 0
        self._tasks: dict[int, Tasks] = {}
        """The tasks of the buckets, by the number of the micro-batch."""
        self._work: _Work | None = None

    def begin(self) -> Offset:
        return {"number": 0}

    def available(self) -> Offset:
        """The next micro-batch once there is work, otherwise the last one."""
        if self._work is None:
            self._work = _Work(self._folder, self._beats, self._bucket)
        tasks = self._work.next_tasks()
        if tasks:
            self._number += 1
            self._tasks[self._number] = tasks
        return {"number": self._number}

    def hold(self, start: Offset) -> None:
        """Nothing to do: logs know their readers, and keep what these have not read."""

    def advance(self, start: Offset, last: Offset, max_rows: int | None) -> Offset:
        return last

    def split(self, start: Offset, end: Offset) -> list[InputPartition]:
        first, last = int(start["number"]), int(end["number"])
        self._tasks = {number: one for number, one in self._tasks.items() if number > first}
        planned = [self._tasks[number] for number in sorted(self._tasks) if number <= last]
        tasks = {bucket: task for one in planned for bucket, task in one.items()}
        served = read_address(self._folder)
        place = str(self._folder) if served is None else served
        return [InputPartition((self._run, place, bucket, task)) for bucket, task in tasks.items()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        run, place, bucket, task = partition.value
        ends = {log: Position.from_json(end) for log, end in task["ends"].items()}
        work = MicroBatchTask(task["revision"], ends, task["now"])
        _bucket(run, place, bucket).run(work)
        yield pa.RecordBatch.from_arrays([pa.array([bucket], pa.int32())], ["bucket"])

    def commit(self, end: Offset) -> None:
        """Nothing to do: the buckets' files record what is done."""

    def stop(self) -> None:
        if self._work is not None:
            self._work.stop()


class _Work:
    """The work of the reader's process while the engine runs."""

    def __init__(self, folder: Path, beats: float, bucket: int) -> None:
        self._publisher = Publisher(folder, bucket)
        self._schedule = Schedule(folder, beats, self._publisher.is_behind, bucket)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._publish, name="publisher", daemon=True)
        self._thread.start()

    def next_tasks(self) -> Tasks:
        """The tasks of the buckets; none if there is no work for a while."""
        until = time.monotonic() + _WAIT
        while not self._ended.is_set():
            tasks = self._schedule.due()
            if tasks or time.monotonic() >= until:
                return tasks
            time.sleep(self._schedule.pause)
        return {}

    def _publish(self) -> None:
        tell_after = 0.0
        while not self._ended.is_set():
            try:
                has_published = self._publisher.step()
            except Exception:  # such as a full disk: it is retried
                if time.monotonic() >= tell_after:
                    tell_after = time.monotonic() + _TELL_EVERY
                    _LOG.warning("results could not be published", exc_info=True)
                has_published = False
            self._ended.wait(0 if has_published else _PUBLISH_EVERY)
        with suppress(Exception):
            self._publisher.close()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join(_END_WITHIN)


_BUCKETS: dict[tuple[str, int], Bucket] = {}
"""The buckets of this worker process, by their engine's run and their numbers."""


def _bucket(run: str, place: str | ServedAddress, number: int) -> Bucket:
    key = (run, number)
    if key not in _BUCKETS:
        for other in [one for one in _BUCKETS if one[0] != run]:
            del _BUCKETS[other]
        _BUCKETS[key] = Bucket(_place(run, place), number)
    return _BUCKETS[key]


@lru_cache(maxsize=1)
def _place(_: str, place: str | ServedAddress) -> EnginePlace:
    """The files of an engine's run: all buckets of a process share one connection."""
    return LocalPlace(Path(place)) if isinstance(place, str) else ServedPlace(place)
