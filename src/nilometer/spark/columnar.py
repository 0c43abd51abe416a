"""A window join that is columnar all the way: from Arrow files to envelopes of results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from nilometer.errors import InputError
from nilometer.spark.arrow_sink import EmitFiles, ResultsSink
from nilometer.spark.arrow_source import ArrowFiles, EnvelopeSource
from nilometer.spark.carried import is_unchanged
from nilometer.spark.join_plan import JoinOptions, plan_window_join
from nilometer.spark.query import SparkQuery, join_query
from nilometer.spark.relations import SparkEngine
from nilometer.spark.run_stream import ENVELOPES, host, open_exchange
from nilometer.spark.session import shuffle_partitions
from nilometer.spark.streams import Input


@dataclass(frozen=True)
class ColumnarJoin:
    """A join of Arrow files, ready to be started."""

    session: SparkSession
    query: SparkQuery
    files: ArrowFiles

    def start(self, results: Path, checkpoint: Path, available_now: bool = False) -> StreamingQuery:
        """Start the query; `nilometer.spark.arrow_sink.read_results` reads what it writes."""
        self.session.dataSource.register(EnvelopeSource)
        self.session.dataSource.register(ResultsSink)
        source = self.session.readStream.format(EnvelopeSource.name())
        envelopes = source.option("work", self.files.to_option()).load()
        writer = (
            host(
                self.files.stage,
                self.query.description,
                self.files.exchange,
                envelopes,
                ended=None,
                emitter=EmitFiles(results),
                sent=ENVELOPES,
            )
            .writeStream.format(ResultsSink.name())
            .option("path", str(results))
            .option("checkpointLocation", str(checkpoint))
        )
        if available_now:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime="0 seconds").start()


def join_arrow_files(
    session: SparkSession,
    folders: Mapping[str, Path],
    options: JoinOptions,
    files_per_batch: int | None = None,
) -> ColumnarJoin:
    """The join of streams whose rows lie in folders of Arrow IPC files."""
    inputs = {name: Input(from_arrow_schema(_schema(f)), True) for name, f in folders.items()}
    empty = {name: session.createDataFrame([], given.schema) for name, given in inputs.items()}
    plan = plan_window_join(inputs, options, SparkEngine(empty), shuffle_partitions(session))
    query = join_query(plan, [given.schema for given in inputs.values()])
    columns = tuple(tuple(given.schema.names) for given in inputs.values())
    plain = [is_unchanged(plan, number, names) for number, names in enumerate(columns)]
    if query.needs_now or not all(plain) or any(source.below for source in plan.sources):
        raise InputError(
            "streams of Arrow files need a time column, no conditions on single streams, no idle",
            hint="read them with Spark and use nm.window_join",
        )
    stage = query.stages[0].stage
    files = ArrowFiles(
        stage, tuple(folders.values()), columns, files_per_batch, open_exchange(session)
    )
    return ColumnarJoin(session, query, files)


def _schema(folder: Path) -> pa.Schema:
    first = next(iter(sorted(folder.glob("*.arrow"))), None)
    if first is None:
        raise InputError(f"there are no Arrow files in {folder}", hint="they must end in .arrow")
    with pa.memory_map(str(first)) as mapped:
        return pa.ipc.open_file(mapped).schema
