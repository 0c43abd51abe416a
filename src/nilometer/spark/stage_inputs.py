"""The input envelopes of a stage: packed from Spark's rows, or directly from logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame

from nilometer.local.read_source import read_source
from nilometer.operators.stage import Stage
from nilometer.spark.carried import carried_rows, checked_rows, times_of_rows
from nilometer.spark.exchange import Exchange
from nilometer.spark.inputs import Inputs, ReaderNames
from nilometer.spark.log_cursor import LogCursor, LogRange
from nilometer.spark.log_envelopes import LogFeed, LogFeeds
from nilometer.spark.log_rows import follow_log
from nilometer.spark.pack import NOW, PACKED, WATERMARK, Overhear, Pack, Pulse, Stamp
from nilometer.spark.ship import ship_function
from nilometer.sql.expressions.compile_scalar import NotInSubsetError
from nilometer.sql.physical.stages import PlannedStage, StreamInput
from nilometer.sql.sensor_conditions import row_condition, sensor_condition


@dataclass(frozen=True)
class StageEnvelopes:
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

    def read(self, inputs: Inputs) -> StageEnvelopes:
        """The envelopes of all its streams."""
        live: list[DataFrame] = []
        ended: list[DataFrame] = []
        feeds: list[LogFeed] = []
        for stream, stream_input in enumerate(self.planned.inputs):
            if isinstance(stream_input, StreamInput):
                feed = self._feed(stream, stream_input, inputs)
                if feed is not None:
                    feeds.append(feed)
                else:
                    packed = self._pack(stream, stream_input, inputs)
                    (live if stream_input.relation in inputs.live else ended).append(packed)
        for stream, stream_input in enumerate(
            self.planned.overhears, start=len(self.planned.inputs)
        ):
            log = inputs.logs.get(stream_input.relation)
            if log is not None:
                feeds.append(LogFeed(f"overheard {stream}", stream, _unnamed(log), None))
            elif stream_input.relation in inputs.live:
                live.append(
                    self._overhear(stream, stream_input, inputs.frames[stream_input.relation])
                )
        if feeds:
            logs = LogFeeds(self.planned.stage, tuple(feeds), self.exchange, self.leaves_out)
            live.append(self._stamped(logs.load(inputs.session)))
        return StageEnvelopes(tuple(live), union(ended) if ended else None)

    def _feed(self, stream: int, stream_input: StreamInput, inputs: Inputs) -> LogFeed | None:
        """How a log is read without Spark; None if Spark has the rows, or must compute on them."""
        log = inputs.logs.get(stream_input.relation)
        if log is None or log.layout.time is None:
            return None
        try:
            reader = read_source(stream_input.plan, stream_input.plan.sources[stream_input.source])
        except NotInSubsetError:
            return None
        name = self.planned.stage.names[stream]
        return LogFeed(name, stream, self._range(stream_input, log), reader)

    def _range(self, stream_input: StreamInput, log: LogRange) -> LogRange:
        """What a source reads of a log, under a name of its own."""
        plan, source = stream_input.plan, stream_input.plan.sources[stream_input.source]
        where, needs = row_condition(plan, source), sensor_condition(plan, source)
        own = log.read_by(self.names.next(log), where, needs)
        if own.begins_now:
            LogCursor(own).initial()  # the offset is kept for the reader
        return own

    def _pack(self, stream: int, stream_input: StreamInput, inputs: Inputs) -> DataFrame:
        more = [f"current_timestamp() AS {NOW}"] if self.with_now else []
        log = inputs.logs.get(stream_input.relation)
        if log is None:
            frame = inputs.frames[stream_input.relation]
        else:
            more.append(WATERMARK)
            frame = follow_log(inputs.session, self._range(stream_input, log))
        texts: tuple[str, ...] = ()
        if self.leaves_out and stream_input.relation in inputs.live:
            rows, texts = checked_rows(stream_input.plan, stream_input.source, frame, *more)
        else:
            rows = carried_rows(stream_input.plan, stream_input.source, frame, *more)
        pack = Pack(self.planned.stage, stream, self.exchange, texts)
        return rows.mapInArrow(ship_function(pack), PACKED)

    def _overhear(self, stream: int, stream_input: StreamInput, frame: DataFrame) -> DataFrame:
        overhear = Overhear(self.planned.stage, stream, self.exchange)
        times = times_of_rows(stream_input.plan, stream_input.source, frame)
        return times.mapInArrow(ship_function(overhear), PACKED)

    def _stamped(self, envelopes: DataFrame) -> DataFrame:
        """Envelopes from logs, with the time of the micro-batch if the stage needs it."""
        if not self.with_now:
            return envelopes
        timed = envelopes.selectExpr("bucket", "body", f"current_timestamp() AS {NOW}")
        return timed.mapInArrow(ship_function(Stamp(self.planned.stage, self.exchange)), PACKED)


def pulse_of_rows(rows: DataFrame, stage: Stage, exchange: Exchange) -> DataFrame:
    """Empty envelopes for a stage whenever rows arrive."""
    return rows.mapInArrow(ship_function(Pulse(stage, exchange)), PACKED)


def pulse_of_input(inputs: Inputs, name: str, stage: Stage, exchange: Exchange) -> DataFrame:
    """The same for the rows of an input."""
    log = inputs.logs.get(name)
    if log is None:
        return pulse_of_rows(inputs.frames[name], stage, exchange)
    feed = LogFeed("pulse", 0, _unnamed(log), None)
    return LogFeeds(stage, (feed,), exchange).load(inputs.session)


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """All rows of several DataFrames of one schema."""
    return reduce(lambda left, right: left.unionAll(right), frames)


def _unnamed(log: LogRange) -> LogRange:
    """The same, read without the log's knowing."""
    return log.read_by(None, None, None)
