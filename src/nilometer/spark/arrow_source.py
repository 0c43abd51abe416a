"""Streams in Arrow IPC files, read by Spark as envelopes: no row passes through the JVM."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from nilometer.errors import InputError
from nilometer.local.read_source import SourceReader
from nilometer.operators.stage import Stage, concat
from nilometer.spark.exchange import Exchange
from nilometer.spark.pack import PACKED, Pack
from nilometer.spark.ship import pickle_work, unpack_work

Offset = dict[str, int]
"""How many files of each stream are read."""


@dataclass(frozen=True)
class ArrowFiles:
    """Folders of Arrow IPC files, one per stream, read in the order of their names.

    A file must be complete when it appears: write it under another name and rename it.
    """

    stage: Stage
    streams: tuple[int, ...]
    """The streams of the stage that are read from files."""
    folders: tuple[Path, ...]
    readers: tuple[SourceReader, ...]
    files_per_batch: int | None
    exchange: Exchange

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.stage.names[stream] for stream in self.streams)

    def to_option(self) -> str:
        return base64.b64encode(pickle_work(self)).decode()

    def files(self, number: int) -> list[Path]:
        return sorted(self.folders[number].glob("*.arrow"))

    def pack(self, number: int, files: list[Path]) -> pa.RecordBatch | None:
        """The envelopes of some files of a stream."""
        batches = [batch for file in files for batch in _read(file)]
        if not batches:
            return None
        carried, selected = self.readers[number].read(concat(batches, batches[0].schema), None)
        pack = Pack(self.stage, self.streams[number], self.exchange)
        return pack.pack(carried, selected)


class EnvelopeSource(DataSource):
    """`spark.readStream.format("nilometer-arrow")`, with the files in the option `work`."""

    @classmethod
    def name(cls) -> str:
        return "nilometer-arrow"

    def schema(self) -> str:
        return PACKED

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
        return _Reader(unpack_work(base64.b64decode(self.options["work"])))


class _Files(InputPartition):
    """What one task reads: (stream, files)."""

    def __init__(self, parts: list[tuple[int, list[Path]]]) -> None:
        super().__init__(parts)


class _Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, source: ArrowFiles) -> None:
        self._source = source
        self._names = source.names
        self._last: Offset | None = None

    def initialOffset(self) -> Offset:  # noqa: N802
        return dict.fromkeys(self._names, 0)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        most = self._source.files_per_batch
        return ReadAllAvailable() if most is None else ReadMaxFiles(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._last = self._available()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        end = self._last or self._available()
        for name in self._names:
            if end[name] < start[name]:
                raise InputError(
                    f"files of stream {name} have disappeared",
                    detail=f"{start[name]} were read, {end[name]} are there",
                    hint="keep the files of a stream, and name new ones so that they sort last",
                )
        if not isinstance(limit, ReadMaxFiles):
            return end
        return {name: min(end[name], start[name] + limit.max_files) for name in self._names}

    def partitions(self, start: Offset, end: Offset) -> list[_Files]:
        parts: list[list[tuple[int, list[Path]]]] = [[] for _ in range(self._tasks())]
        sizes = [0] * len(parts)
        for stream, name in enumerate(self._names):
            for file in self._source.files(stream)[start[name] : end[name]]:
                least = sizes.index(min(sizes))
                sizes[least] += file.stat().st_size
                parts[least].append((stream, [file]))
        return [_Files(_by_stream(part)) for part in parts if part]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for stream, files in partition.value:
            envelopes = self._source.pack(stream, files)
            if envelopes is not None:
                yield envelopes

    def commit(self, end: Offset) -> None:
        pass

    def stop(self) -> None:
        pass

    def _available(self) -> Offset:
        return {name: len(self._source.files(i)) for i, name in enumerate(self._names)}

    def _tasks(self) -> int:
        return self._source.stage.routing.buckets


def _by_stream(parts: list[tuple[int, list[Path]]]) -> list[tuple[int, list[Path]]]:
    streams = sorted({stream for stream, _ in parts})
    return [(s, [f for stream, files in parts if stream == s for f in files]) for s in streams]


def _read(file: Path) -> list[pa.RecordBatch]:
    with pa.memory_map(str(file)) as mapped:
        reader = pa.ipc.open_file(mapped)
        return [reader.get_batch(i) for i in range(reader.num_record_batches)]
