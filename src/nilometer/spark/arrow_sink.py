"""Results kept as Arrow IPC files in a folder, to which every micro-batch is added once.

The host writes the files itself, under names of the micro-batch and the attempt; what passes
through Spark are their names. They count only once a listing of the micro-batch names them,
and the driver writes one listing per micro-batch, whole or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pandas as pd
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage

from nilometer.errors import CheckpointError
from nilometer.spark.emit import METRICS, EmitEnvelopes, Sender
from nilometer.spark.exchange import batch_number
from nilometer.spark.state import task_property


@dataclass(frozen=True)
class EmitFiles(EmitEnvelopes):
    """Results as one file per bucket and micro-batch in a folder; only its name is sent on."""

    folder: Path

    def results(self, batches: Iterable[pa.RecordBatch], sender: Sender) -> Iterator[pd.DataFrame]:
        name, rows = f"{batch_number():012d}-{uuid4().hex}.arrow", 0
        writer: pa.RecordBatchFileWriter | None = None
        for batch in batches:
            if writer is None:
                self.folder.mkdir(parents=True, exist_ok=True)
                writer = pa.ipc.new_file(str(self.folder / name), batch.schema)
            writer.write_batch(batch)
            rows += len(batch)
        if writer is not None:
            writer.close()
            body = json.dumps({"file": name, "rows": rows}).encode()
            yield pd.DataFrame({METRICS: [None], "body": [body]})


class ResultsSink(DataSource):
    """`writeStream.format("nilometer-results")`, with the folder in the option `path`."""

    @classmethod
    def name(cls) -> str:
        return "nilometer-results"

    def schema(self) -> str:
        return f"{METRICS} STRING, body BINARY"

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        return _Writer(Path(self.options["path"]))


@dataclass
class _Written(WriterCommitMessage):
    """The files that came through one task, and the query that it belongs to."""

    files: list[dict[str, Any]]
    query: str


class _Writer(DataSourceStreamArrowWriter):
    """Lists the files of a micro-batch; a micro-batch that is listed already stays as it is."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, iterator: Iterator[pa.RecordBatch]) -> _Written:
        query = task_property("sql.streaming.queryId", "")
        files = [
            json.loads(body.as_py())
            for batch in iterator
            for body in batch.column("body").drop_null()
        ]
        return _Written(files, query)

    def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803
        written = [message for message in messages if message is not None]
        query = written[0].query if written else ""
        listing = self._folder / f"{batchId:012d}.json"
        if listing.exists():
            listed = json.loads(listing.read_text())
            self._refuse_other_query(listed, query)
        else:
            listed = {"query": query, "files": [f for w in written for f in w.files]}
            self._folder.mkdir(parents=True, exist_ok=True)
            aside = listing.with_suffix(".part")
            aside.write_text(json.dumps(listed))
            aside.rename(listing)
        self._sweep(batchId, {file["file"] for file in listed["files"]})

    def abort(self, messages: list[Any], batchId: int) -> None:  # noqa: N803
        """Leave the files: the next attempt's listing sweeps them away."""

    def _sweep(self, batch: int, listed: set[str]) -> None:
        for file in self._folder.glob(f"{batch:012d}-*.arrow"):
            if file.name not in listed:
                file.unlink(missing_ok=True)

    def _refuse_other_query(self, listed: dict[str, Any], query: str) -> None:
        if listed["query"] != query:
            raise CheckpointError(
                f"the folder {self._folder} holds the results of another query",
                hint="give every query a folder and a checkpoint of its own",
            )


def read_results(folder: Path) -> Iterator[pa.RecordBatch]:
    """All results in a folder, micro-batch by micro-batch."""
    for listing in sorted(folder.glob("*.json")):
        for file in json.loads(listing.read_text())["files"]:
            with pa.memory_map(str(folder / file["file"])) as mapped:
                reader = pa.ipc.open_file(mapped)
                for number in range(reader.num_record_batches):
                    yield reader.get_batch(number)
