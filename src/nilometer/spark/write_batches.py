"""Writes results that only Spark can finish to a log, each micro-batch exactly once.

The host sends its results as envelopes, including its own metrics. So the log knows how far the
query is, although its rows go through Spark's own expressions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from nilometer.kernels.row_errors import RowErrors
from nilometer.log.parts import Part
from nilometer.spark.answer_table import query_id
from nilometer.spark.emit import METRICS, REPORTS_LEFT_OUT, Unpack, read_left_out
from nilometer.spark.log_parts import LogParts
from nilometer.spark.output import Expressions
from nilometer.spark.result_log import ResultLog
from nilometer.spark.run_query import cast_part
from nilometer.spark.ship import ship_function
from nilometer.spark.uncomputable import leave_out_failed
from nilometer.spark.write_rows import TimedRows

QUERY: Final = "query"
_REPORT: Final = "report STRING"


@dataclass(frozen=True)
class UnfinishedResults:
    """The output of one query's host, and how Spark finishes it."""

    schema: StructType
    expressions: Expressions
    kinds: tuple[pa.DataType | None, ...]
    """The types of the log's columns; None: unchanged."""

    def finish(self, envelopes: DataFrame, *, checked: bool) -> DataFrame:
        """The rows of the log; if they are checked, including those that cannot be computed."""
        rows = envelopes.mapInArrow(ship_function(Unpack()), self.schema)
        if not checked:
            return cast_part(self.expressions.apply(rows), self.kinds)
        return cast_part(self.expressions.apply_checked(rows), (*self.kinds, None, None))


@dataclass(frozen=True)
class WriteParts:
    """Writes rows to a part; returns, as JSON, the part and what was left out."""

    parts: LogParts
    batch: int
    asked: Expressions
    """The expressions that Spark computes, which may fail."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        typed, errors = TimedRows(self.parts.layout), RowErrors()
        expressions = self.asked
        computed = (
            leave_out_failed(one, expressions.texts, errors, expressions.stream) for one in batches
        )
        part = self.parts.write(self.batch, map(typed.see, computed))
        report = {"part": part and asdict(part), "errors": errors.to_json()}
        yield pa.RecordBatch.from_pydict({"report": pa.array([json.dumps(report)])})


@dataclass
class WriteBatches:
    """Handles each micro-batch, on the driver or the Spark Connect server."""

    log: ResultLog
    queries: tuple[UnfinishedResults, ...]
    checkpoint: str
    is_served: bool
    """Whether this process serves the checkpoint to executors, and has its files on its own disk.

    Otherwise Spark may see another file system at this path.
    """
    _query: str | None = None

    def __call__(self, hosted: DataFrame, batch: int) -> None:
        # Several jobs read it, and computing it twice would run the operators' state twice.
        hosted = hosted.persist()
        try:
            self._write(hosted, batch)
        finally:
            hosted.unpersist()

    def _write(self, hosted: DataFrame, batch: int) -> None:
        frontiers: dict[str, int] = {}
        for query, text in hosted.where(f"{METRICS} IS NOT NULL").select(QUERY, METRICS).collect():
            metrics = json.loads(text)
            frontiers[f"{query}.{metrics['bucket']}"] = metrics["frontier"]
        parts: list[Part] = []
        errors = RowErrors()
        for (body,) in hosted.where(REPORTS_LEFT_OUT).select("body").collect():
            errors.add(read_left_out(body))
        checked = self.log.dead_letters is not None
        for number, one in enumerate(self.queries):
            work = ship_function(WriteParts(self.log.parts, batch, one.expressions))
            results = f"{METRICS} IS NULL AND {QUERY} = {number} AND NOT {REPORTS_LEFT_OUT}"
            own = hosted.where(results).select("body")
            for (text,) in one.finish(own, checked=checked).mapInArrow(work, _REPORT).collect():
                report = json.loads(text)
                errors.add(RowErrors.from_json(report["errors"]))
                if report["part"] is not None:
                    parts.append(Part(**report["part"]))
        if self._query is None:
            self._query = self._read_id(hosted.sparkSession)
        self.log.append(parts, frontiers, errors, (self._query, batch))

    def _read_id(self, spark: SparkSession) -> str:
        if self.is_served:
            return str(json.loads(Path(self.checkpoint, "metadata").read_text())["id"])
        return query_id(spark, self.checkpoint)
