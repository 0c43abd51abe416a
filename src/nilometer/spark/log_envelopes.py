"""The logs that a stage reads, as envelopes made directly from their segments.

One source reads all of a stage's logs: no row passes through the JVM.
"""

from __future__ import annotations

import base64
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from nilometer.kernels.admit import Punctuation
from nilometer.kernels.row_errors import RowErrors, leaving_out
from nilometer.local.shown_rows import ShownRows
from nilometer.log.exact_range import read_exactly, require_same_log
from nilometer.log.frame import Frame
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.operators.envelope import Header
from nilometer.operators.source_reader import SourceReader
from nilometer.operators.stage import Stage
from nilometer.spark.exchange import Exchange
from nilometer.spark.log_cursor import LogCursor, LogRange
from nilometer.spark.pack import PACKED, Pack, empty_envelopes, gather
from nilometer.spark.register_source import register_source
from nilometer.spark.ship import pickle_work, unpack_work
from nilometer.spark.versions import Offset, StreamReader

_NAME: Final = "nilometer-envelopes"
_Share: TypeAlias = tuple[int, str, Position, Position]
"""A range of a feed's log: its number, the log's id, and where the range begins and ends."""


@dataclass(frozen=True)
class LogFeed:
    """What one stream of a stage reads from a log."""

    name: str
    stream: int
    log_range: LogRange
    reader: SourceReader | None
    """Makes the columns that are sent; None: only watermarks are sent."""


@dataclass(frozen=True)
class LogFeeds:
    """All logs that a stage reads."""

    stage: Stage
    feeds: tuple[LogFeed, ...]
    exchange: Exchange
    leaves_out: bool = False
    """Whether rows that cannot be computed are left out."""

    def load(self, session: SparkSession) -> DataFrame:
        """The envelopes as a streaming DataFrame."""
        register_source(session, EnvelopeSource)
        work = base64.b64encode(pickle_work(self)).decode()
        return session.readStream.format(_NAME).option("work", work).load()

    def read(
        self, feed: LogFeed, log_id: str, start: Position, end: Position
    ) -> Iterator[pa.RecordBatch]:
        """Envelopes of the rows in a range; the last ones carry the watermark after it."""
        location = feed.log_range.location
        log = LogReader.open(location, feed.log_range.layout)
        require_same_log(log, location, log_id)
        frames = _Watched(read_exactly(log, location, start, end))
        rows = iter(frames)
        if feed.reader is not None:
            shown = ShownRows(location, log.layout, feed.log_range.where)
            pack = Pack(self.stage, feed.stream, self.exchange)
            for some in gather(map(shown.show, rows), self.stage.routing.copies(feed.stream)):
                errors = RowErrors()
                with leaving_out(errors if self.leaves_out else None):
                    carried, selected = feed.reader.read(some, None)
                yield pack.pack(carried, selected, watermark=frames.watermark, errors=errors)
        deque(rows, maxlen=0)
        punctuation = Punctuation(watermark=frames.watermark)
        yield empty_envelopes(self.stage, self.exchange, Header(feed.stream, punctuation))


class _Watched:
    """The rows of a range of a log, and the last watermark among them."""

    def __init__(self, frames: Iterator[Frame]) -> None:
        self._frames = frames
        self.watermark: int | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for frame in self._frames:
            if frame.watermark is not None:
                self.watermark = frame.watermark
            yield frame.rows


class EnvelopeSource(DataSource):
    """`readStream.format("nilometer-envelopes")`, with the feeds in the option `work`."""

    @classmethod
    def name(cls) -> str:
        return _NAME

    def schema(self) -> StructType:
        return PACKED

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
        return _Reader(unpack_work(base64.b64decode(self.options["work"])))


class _Reader(StreamReader):
    """Its offsets say up to where each log is read, by feed name; each log has its own limit."""

    def __init__(self, logs: LogFeeds) -> None:
        self._logs = logs
        self._opened: dict[str, LogCursor] = {}

    def begin(self) -> Offset:
        return {feed.name: self._cursor(feed).initial().to_json() for feed in self._logs.feeds}

    def available(self) -> Offset:
        return {feed.name: self._cursor(feed).available().to_json() for feed in self._logs.feeds}

    def hold(self, start: Offset) -> None:
        for feed in self._logs.feeds:
            self._cursor(feed).hold(Position.from_json(start[feed.name]))

    def advance(self, start: Offset, last: Offset, max_rows: int | None) -> Offset:
        ends = {}
        for feed in self._logs.feeds:
            first, end = (Position.from_json(one[feed.name]) for one in (start, last))
            ends[feed.name] = (
                self._cursor(feed).advance(first, end, feed.log_range.max_rows).to_json()
            )
        return ends

    def split(self, start: Offset, end: Offset) -> list[InputPartition]:
        """Split a range so that every task reads a part of every log."""
        tasks = self._logs.stage.routing.buckets
        shares: list[list[_Share]] = [[] for _ in range(tasks)]
        for number, feed in enumerate(self._logs.feeds):
            first, last = (Position.from_json(one[feed.name]) for one in (start, end))
            cursor = self._cursor(feed)
            for place, (low, high) in enumerate(cursor.split(first, last, tasks)):
                shares[place].append((number, cursor.log_id, low, high))
        return [InputPartition(share) for share in shares if share]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        ranges: Sequence[_Share] = partition.value
        for number, log_id, start, end in ranges:
            yield from self._logs.read(self._logs.feeds[number], log_id, start, end)

    def commit(self, end: Offset) -> None:
        for feed in self._logs.feeds:
            self._cursor(feed).commit(Position.from_json(end[feed.name]))

    def stop(self) -> None:
        for cursor in self._opened.values():
            cursor.stop()

    def _cursor(self, feed: LogFeed) -> LogCursor:
        if feed.name not in self._opened:
            self._opened[feed.name] = LogCursor(feed.log_range)
        return self._opened[feed.name]
