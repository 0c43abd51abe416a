"""Writes results of a query to a log without passing them through the JVM.

The host writes every bucket's results to a part of the log; it only passes on the names
of parts and how far the buckets have come. The driver appends the parts of a micro-batch together,
once, with the watermark that all buckets have reached.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, WriterCommitMessage

from nilometer.kernels.row_errors import RowErrors
from nilometer.log.clock import now_micros
from nilometer.log.dead_letters import DeadLetter, append_batch
from nilometer.log.location import storage_at
from nilometer.log.parts import Part
from nilometer.log.stored_json import json_bytes, read_json
from nilometer.model.time import EARLIEST, FOREVER
from nilometer.spark.emit import METRICS, EmitEnvelopes, Sender, frame_of
from nilometer.spark.exchange import batch_number
from nilometer.spark.log_parts import LogParts
from nilometer.spark.ship import unpack_work
from nilometer.spark.state import task_property
from nilometer.spark.versions import StreamArrowWriter

if TYPE_CHECKING:
    import pandas as pd

    from nilometer.engine.result_rows import ResultRows

_FRONTIERS: Final = "frontiers.json"


@dataclass(frozen=True)
class EmitParts(EmitEnvelopes):
    """Writes results as one part per bucket and micro-batch; only the part's name is passed on."""

    parts: LogParts
    rows: ResultRows
    query: int
    """The number of this query among those that write to the log together."""

    def results(self, batches: Iterable[pa.RecordBatch], sender: Sender) -> Iterator[pd.DataFrame]:
        part = self.parts.write(batch_number(), map(self.rows.select, batches))
        report = {
            "part": part and asdict(part),
            "sender": f"{self.query}.{sender.bucket}",
            "at": sender.frontier,
            "errors": sender.errors.to_json(),
        }
        yield frame_of({METRICS: [None], "body": [json.dumps(report).encode()]})


@dataclass(frozen=True)
class ResultLog:
    """The log that queries write together, how many queries there are, and their buckets."""

    parts: LogParts
    queries: int
    senders: int
    dead_letters: str | None = None
    """The log of dead letters; None: a row that cannot be computed fails the query."""

    def append(
        self,
        parts: list[Part],
        frontiers: dict[str, int],
        errors: RowErrors,
        key: tuple[str, int],
    ) -> None:
        """Append the parts of a micro-batch, given the times before which senders are done.

        Dead letters come first: a micro-batch is done once its parts are appended.
        """
        if errors.count and self.dead_letters is not None:
            now = now_micros()
            letters = [DeadLetter(one.stream, now, one.reason, one.row) for one in errors.noted]
            append_batch(self.dead_letters, letters, errors.count, key)
        self.parts.append(parts, self._watermark(frontiers), key)

    def _watermark(self, frontiers: dict[str, int]) -> int | None:
        """The time before which all buckets are done, if known."""
        if self.queries > 1:
            frontiers = _keep_frontiers(self.parts.location, frontiers)
        if len(frontiers) < self.senders:
            return None
        reached = min(frontiers.values())
        return reached if EARLIEST < reached < FOREVER else None


class ResultSink(DataSource):
    """`writeStream.format("nilometer-results")`, with the log in the option `work`."""

    @classmethod
    def name(cls) -> str:
        return "nilometer-results"

    def schema(self) -> str:
        return f"{METRICS} STRING, body BINARY"

    def streamWriter(self, schema: Any, overwrite: bool) -> StreamArrowWriter:  # noqa: N802
        return _Writer(unpack_work(base64.b64decode(self.options["work"])))


@dataclass
class _Written(WriterCommitMessage):
    """What one task wrote, and the query that it belongs to."""

    reports: list[dict[str, Any]]
    query: str


class _Writer(StreamArrowWriter):
    def __init__(self, log: ResultLog) -> None:
        self._log = log

    def write(self, iterator: Iterator[pa.RecordBatch]) -> _Written:
        reports = [
            json.loads(body.as_py())
            for batch in iterator
            for body in batch.column("body").drop_null()
        ]
        return _Written(reports, task_property("sql.streaming.queryId", ""))

    def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803
        written = [message for message in messages if message is not None]
        reports = [one for message in written for one in message.reports]
        if written:  # every micro-batch is recorded, even one without results
            parts = [Part(**one["part"]) for one in reports if one["part"] is not None]
            frontiers = {one["sender"]: one["at"] for one in reports}
            errors = RowErrors()
            for one in reports:
                errors.add(RowErrors.from_json(one["errors"]))
            self._log.append(parts, frontiers, errors, (written[0].query, batchId))

    def abort(self, messages: list[Any], batchId: int) -> None:  # noqa: N803
        """Leave the parts: a later append deletes them."""


def forget_frontiers(location: str) -> None:
    """Forget the reports of senders: there will be others."""
    storage_at(location).delete(_FRONTIERS)


def _keep_frontiers(location: str, frontiers: dict[str, int]) -> dict[str, int]:
    """The last reports of all senders: of several queries some may be silent in a micro-batch.

    A repeated micro-batch reports the same again, so it does not matter that this is stored
    before its parts are appended.
    """
    storage = storage_at(location)
    merged = {**(read_json(storage, _FRONTIERS) or {}), **frontiers}
    storage.write(_FRONTIERS, [json_bytes(merged)])
    return merged
