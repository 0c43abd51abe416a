"""Results that only Spark can finish, into a log: micro-batch by micro-batch, each once.

The host sends its results on as envelopes, and among them what it says about itself. So the
log learns how far the query is, although its rows go through Spark's own expressions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from nilometer.log.parts import Part
from nilometer.spark.answer_table import query_id
from nilometer.spark.emit import METRICS, Unpack
from nilometer.spark.log_parts import LogParts
from nilometer.spark.output import Expressions
from nilometer.spark.result_log import ResultLog
from nilometer.spark.run_query import cast_part
from nilometer.spark.ship import ship_function
from nilometer.spark.write_rows import TypedRows

QUERY: Final = "query"


@dataclass(frozen=True)
class UnfinishedResults:
    """What leaves the host of one query, and what Spark makes of it."""

    schema: StructType
    expressions: Expressions
    kinds: tuple[pa.DataType | None, ...]
    """The types of the log's columns; None: as they are."""

    def finish(self, envelopes: DataFrame) -> DataFrame:
        rows = envelopes.mapInArrow(ship_function(Unpack()), self.schema)
        return cast_part(self.expressions.apply(rows), self.kinds)


@dataclass(frozen=True)
class WriteParts:
    """Rows in, the parts out that they were written to, as JSON."""

    parts: LogParts
    batch: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        typed = TypedRows(self.parts.layout)
        part = self.parts.write(self.batch, map(typed.see, batches))
        told = None if part is None else json.dumps(asdict(part))
        yield pa.RecordBatch.from_pydict({"part": pa.array([told], pa.string())})


@dataclass
class WriteBatches:
    """What happens in each micro-batch, on the driver or where Spark Connect serves."""

    log: ResultLog
    queries: tuple[UnfinishedResults, ...]
    checkpoint: str

    def __call__(self, hosted: DataFrame, batch: int) -> None:
        # Several jobs read it, and computing it twice would run the operators' state twice.
        hosted = hosted.persist()
        try:
            self._write(hosted, batch)
        finally:
            hosted.unpersist()

    def _write(self, hosted: DataFrame, batch: int) -> None:
        told = hosted.where(f"{METRICS} IS NOT NULL").select(QUERY, METRICS).collect()
        frontiers: dict[str, int] = {}
        for query, metrics in told:
            said = json.loads(metrics)
            frontiers[f"{query}.{said['bucket']}"] = said["frontier"]
        parts: list[Part] = []
        work = ship_function(WriteParts(self.log.parts, batch))
        for number, one in enumerate(self.queries):
            own = hosted.where(f"{METRICS} IS NULL AND {QUERY} = {number}").select("body")
            written = one.finish(own).mapInArrow(work, "part STRING").collect()
            parts += [Part(**json.loads(told)) for (told,) in written if told is not None]
        key = (query_id(hosted.sparkSession, self.checkpoint), batch)
        self.log.append(parts, frontiers, key)
