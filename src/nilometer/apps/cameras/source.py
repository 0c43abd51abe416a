"""The cameras as a streaming source of Spark: `spark.readStream.format("nilometer-camera")`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

from nilometer.apps.cameras.world import SECOND, World

Offset = dict[str, int]
"""How far the world has come, in microseconds."""


class CameraSource(DataSource):
    """One camera. Options: camera (0, 1, …), started (microseconds), rate, seconds."""

    @classmethod
    def name(cls) -> str:
        return "nilometer-camera"

    def schema(self) -> str:
        return "obj_id BIGINT, ts TIMESTAMP"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
        options = {name: int(self.options[name]) for name in ("started", "rate")}
        return _Camera(
            World(**options), int(self.options["camera"]), int(self.options["seconds"]) * SECOND
        )


@dataclass
class _Period(InputPartition):
    """What one task reads: the arrivals in [first, end)."""

    first: int
    end: int


class _Camera(DataSourceStreamReader):
    def __init__(self, world: World, camera: int, end: int) -> None:
        self._world = world
        self._camera = camera
        self._end = end

    def initialOffset(self) -> Offset:  # noqa: N802
        return {"time": 0}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        now = time.time_ns() // 1000 - self._world.started
        return {"time": max(start["time"], min(now, self._end))}

    def partitions(self, start: Offset, end: Offset) -> list[_Period]:
        return [_Period(start["time"], end["time"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Period)
        for seen in self._world.sightings(self._camera, partition.first, partition.end):
            yield seen.to_arrow()

    def commit(self, end: Offset) -> None:
        pass

    def stop(self) -> None:
        pass
