"""The input envelopes of a stage: packed from Spark's rows, or directly from logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame

from nilometer.local.read_source import read_source
from nilometer.operators.stage import Stage
from nilometer.spark.carried import carried_rows, checked_rows, times_of_rows
from nilometer.spark.exchange import Exchange
from nilometer.spark.log_envelopes import LogFeed, LogFeeds
from nilometer.spark.log_stream import LogStream, ReaderNames, StreamFrame
from nilometer.spark.pack import NOW, PACKED, WATERMARK, Overhear, Pack, Pulse, Stamp
from nilometer.spark.ship import ship_function
from nilometer.sql.expressions.compile_scalar import NotInSubsetError
from nilometer.sql.physical.stages import PlannedStage, StreamInput
from nilometer.sql.sensor_conditions import row_condition, sensor_condition


@dataclass(frozen=True)
class Coming:
    """The input envelopes of a stage: those of live streams, and of streams that have ended."""

    live: tuple[DataFrame, ...]
    ended: DataFrame | None = None


@dataclass(frozen=True)
class StageInputs:
    """A stage, and how its own streams reach it."""

    planned: PlannedStage
    exchange: Exchange
    with_now: bool
    names: ReaderNames
    leaves_out: bool = False
    """Whether rows of live streams that cannot be computed are left out."""

    def read(self, frames: Mapping[str, StreamFrame]) -> Coming:
        """The envelopes of all its streams; frames are given by names of relations."""
        live: list[DataFrame] = []
        ended: list[DataFrame] = []
        feeds: list[LogFeed] = []
        sessions = [frame.sparkSession for frame in frames.values()]
        for stream, given in enumerate(self.planned.inputs):
            if isinstance(given, StreamInput):
                frame = frames[given.relation]
                feed = self._feed(stream, given, frame) if isinstance(frame, LogStream) else None
                if feed is not None:
                    feeds.append(feed)
                else:
                    (live if frame.isStreaming else ended).append(self._pack(stream, given, frame))
        for stream, given in enumerate(self.planned.overhears, start=len(self.planned.inputs)):
            frame = frames[given.relation]
            if isinstance(frame, LogStream):
                name = f"overheard {stream}"
                feeds.append(LogFeed(name, stream, frame.range_for(None), None))
            elif frame.isStreaming:
                live.append(self._overhear(stream, given, frame))
        if feeds:
            logs = LogFeeds(self.planned.stage, tuple(feeds), self.exchange, self.leaves_out)
            live.append(self._stamped(logs.load(sessions[0])))
        return Coming(tuple(live), union(ended) if ended else None)

    def _feed(self, stream: int, given: StreamInput, log: LogStream) -> LogFeed | None:
        """How a log is read without Spark; None if only Spark can compute the columns to send."""
        if log.layout.time is None:
            return None
        try:
            reader = read_source(given.plan, given.plan.sources[given.source])
        except NotInSubsetError:
            return None
        name = self.planned.stage.names[stream]
        own = log.range_for(self.names.next(log), *_conditions(given))
        return LogFeed(name, stream, own, reader, log.rows_per_batch)

    def _pack(self, stream: int, given: StreamInput, frame: StreamFrame) -> DataFrame:
        more = [f"current_timestamp() AS {NOW}"] if self.with_now else []
        if isinstance(frame, LogStream):
            more.append(WATERMARK)
            frame = frame.rows(self.names.next(frame), *_conditions(given))
        texts: tuple[str, ...] = ()
        if self.leaves_out and frame.isStreaming:
            rows, texts = checked_rows(given.plan, given.source, frame, *more)
        else:
            rows = carried_rows(given.plan, given.source, frame, *more)
        pack = Pack(self.planned.stage, stream, self.exchange, texts)
        return rows.mapInArrow(ship_function(pack), PACKED)

    def _overhear(self, stream: int, given: StreamInput, frame: DataFrame) -> DataFrame:
        overhear = Overhear(self.planned.stage, stream, self.exchange)
        times = times_of_rows(given.plan, given.source, frame)
        return times.mapInArrow(ship_function(overhear), PACKED)

    def _stamped(self, envelopes: DataFrame) -> DataFrame:
        """Envelopes from logs, with the time of the micro-batch if the stage needs it."""
        if not self.with_now:
            return envelopes
        timed = envelopes.selectExpr("bucket", "body", f"current_timestamp() AS {NOW}")
        return timed.mapInArrow(ship_function(Stamp(self.planned.stage, self.exchange)), PACKED)


def pulse_of(frame: StreamFrame, stage: Stage, exchange: Exchange) -> DataFrame:
    """Empty envelopes for a stage whenever rows arrive in a stream."""
    if isinstance(frame, LogStream):
        feed = LogFeed("pulse", 0, frame.range_for(None), None)
        return LogFeeds(stage, (feed,), exchange).load(frame.sparkSession)
    return frame.mapInArrow(ship_function(Pulse(stage, exchange)), PACKED)


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """All rows of several DataFrames of one schema."""
    return reduce(lambda left, right: left.unionAll(right), frames)


def _conditions(given: StreamInput) -> tuple[str | None, str | None]:
    """The conditions on the sensors whose rows a source reads, and that it needs."""
    plan, source = given.plan, given.plan.sources[given.source]
    return row_condition(plan, source), sensor_condition(plan, source)
