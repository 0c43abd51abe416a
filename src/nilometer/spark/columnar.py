"""Queries that are columnar all the way: from Arrow files to Arrow files of results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from nilometer.errors import InputError
from nilometer.local.read_source import SourceReader
from nilometer.operators.watermarks import StreamClock
from nilometer.spark.arrow_sink import EmitFiles, ResultsSink
from nilometer.spark.arrow_source import ArrowFiles, EnvelopeSource
from nilometer.spark.describe import describe_stream
from nilometer.spark.exchange import Exchange
from nilometer.spark.join_plan import JoinOptions, plan_window_join
from nilometer.spark.query import SparkQuery, changes_query, join_query
from nilometer.spark.relations import SparkEngine
from nilometer.spark.run_stream import ENVELOPES, Coming, host_stages, open_exchange
from nilometer.spark.session import shuffle_partitions
from nilometer.spark.streams import Input
from nilometer.sql.catalog import Catalog
from nilometer.sql.changes_plan import ChangesPlan
from nilometer.sql.compile import compile_statement
from nilometer.sql.compile_scalar import NotInSubsetError
from nilometer.sql.execution import choose_execution
from nilometer.sql.stages import StreamInput
from nilometer.sql.statements import read_query


@dataclass(frozen=True)
class ColumnarQuery:
    """A query over Arrow files, ready to be started."""

    session: SparkSession
    query: SparkQuery
    files: tuple[ArrowFiles, ...]
    """The files that each stage reads; none for a stage that reads what others send."""

    def start(self, results: Path, checkpoint: Path, available_now: bool = False) -> StreamingQuery:
        """Start the query; `nilometer.spark.arrow_sink.read_results` reads what it writes."""
        self.session.dataSource.register(EnvelopeSource)
        self.session.dataSource.register(ResultsSink)
        hosted = host_stages(
            self.query,
            [files.exchange for files in self.files],
            [self._read(files) for files in self.files],
            emitter=EmitFiles(results),
            sent=ENVELOPES,
        )
        writer = (
            hosted.writeStream.format(ResultsSink.name())
            .option("path", str(results))
            .option("checkpointLocation", str(checkpoint))
        )
        if available_now:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime="0 seconds").start()

    def _read(self, files: ArrowFiles) -> Coming:
        if not files.streams:
            return Coming(())
        source = self.session.readStream.format(EnvelopeSource.name())
        return Coming((source.option("work", files.to_option()).load(),))


def join_arrow_files(
    session: SparkSession,
    folders: Mapping[str, Path],
    options: JoinOptions,
    files_per_batch: int | None = None,
) -> ColumnarQuery:
    """The join of streams whose rows lie in folders of Arrow IPC files."""
    inputs = {name: Input(from_arrow_schema(_schema(f)), True) for name, f in folders.items()}
    empty = {name: session.createDataFrame([], given.schema) for name, given in inputs.items()}
    plan = plan_window_join(inputs, options, SparkEngine(empty), shuffle_partitions(session))
    query = join_query(plan, [given.schema for given in inputs.values()])
    return _columnar(session, query, folders, files_per_batch)


def query_arrow_files(
    session: SparkSession,
    folders: Mapping[str, Path],
    statement: str,
    time: str,
    files_per_batch: int | None = None,
    execution: str = "auto",
) -> ColumnarQuery:
    """A windowed statement over streams whose rows lie in folders of Arrow IPC files."""
    frames = {
        name: session.createDataFrame([], from_arrow_schema(_schema(folder)))
        for name, folder in folders.items()
    }
    relations = {
        name: replace(
            describe_stream(name, frame, time, None, None, None, None), clock=StreamClock()
        )
        for name, frame in frames.items()
    }
    catalog = Catalog(relations, {}, SparkEngine(frames))
    plan = compile_statement(read_query(statement), catalog, shuffle_partitions(session))
    if not isinstance(plan, ChangesPlan):
        raise InputError("the answer of this statement does not change", hint="use the join")
    query = changes_query(replace(plan, execution=choose_execution(execution)))
    return _columnar(session, query, folders, files_per_batch)


def _columnar(
    session: SparkSession,
    query: SparkQuery,
    folders: Mapping[str, Path],
    files_per_batch: int | None,
) -> ColumnarQuery:
    if query.needs_now:
        raise InputError(
            "streams of Arrow files need a time column, and cannot be idle",
            hint="read them with Spark",
        )
    files = []
    for planned in query.stages:
        given = [(i, one) for i, one in enumerate(planned.inputs) if isinstance(one, StreamInput)]
        sources = [one.plan.sources[one.source] for _, one in given]
        readers = tuple(_reader(one) for _, one in given)
        own = tuple(folders[source.relation.name] for source in sources)
        streams = tuple(i for i, _ in given)
        exchange: Exchange = open_exchange(session)
        files.append(ArrowFiles(planned.stage, streams, own, readers, files_per_batch, exchange))
    return ColumnarQuery(session, query, tuple(files))


def _reader(given: StreamInput) -> SourceReader:
    try:
        return SourceReader(given.plan, given.plan.sources[given.source])
    except NotInSubsetError as error:
        raise InputError(
            f"{error.message.removesuffix(' here')} over streams of Arrow files",
            hint="read them with Spark",
        ) from None


def _schema(folder: Path) -> pa.Schema:
    first = next(iter(sorted(folder.glob("*.arrow"))), None)
    if first is None:
        raise InputError(f"there are no Arrow files in {folder}", hint="they must end in .arrow")
    with pa.memory_map(str(first)) as mapped:
        return pa.ipc.open_file(mapped).schema
