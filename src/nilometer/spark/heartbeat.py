"""Rows that arrive when nothing else does, so that answers expire on time."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, SparkSession

from nilometer.errors import InputError
from nilometer.model.time import Duration, parse_duration
from nilometer.spark.pack import NOW

_SECOND: Final = 1_000_000
_MOST: Final = 100


def beats_per_second(heartbeat: Duration) -> int:
    """The number of beats per second that is closest to an interval.

    >>> beats_per_second("1s"), beats_per_second("250ms")
    (1, 4)
    """
    length = parse_duration(heartbeat)
    if not _SECOND // _MOST <= length <= _SECOND:
        raise InputError(
            "a heartbeat must come once to a hundred times a second",
            detail=f"got {heartbeat!r}",
            hint="write heartbeat='1s'",
        )
    return round(_SECOND / length)


def beat(session: SparkSession, per_second: int) -> DataFrame:
    """A stream of this many rows per second, with the time of the micro-batch."""
    source = session.readStream.format("rate").option("rowsPerSecond", per_second)
    return source.load().selectExpr("value", f"current_timestamp() AS {NOW}")
