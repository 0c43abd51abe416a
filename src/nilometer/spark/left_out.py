"""What a batch answer knows of its streams: the rows without a time, and the last time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Thread
from typing import Any, Final

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812

from nilometer.errors import InputError
from nilometer.model.left_out import describe_left_out
from nilometer.model.time import EARLIEST, LATEST
from nilometer.sql.expressions.scalars import quote_name

_COUNT: Final = "rows"
_ATTRIBUTE: Final = "_nilometer_left_out"
_WAIT: Final = 2.0
"""Seconds: Spark reports its counts shortly after the answer is complete, if at all."""


@dataclass
class LeftOut:
    """Counts the rows of streams without a time, in the first computation of an answer.

    Spark does not report on parts of a plan that it leaves out, such as those of an empty answer,
    nor on an answer that was not computed: then they are counted separately.
    """

    _watched: dict[str, _Watched] = field(default_factory=dict)

    def watch(self, stream: str, rows: DataFrame, time: str, end: str | None = None) -> DataFrame:
        """The same rows, counted as they pass; each stream is counted only once."""
        if stream in self._watched:
            return rows
        watched = self._watched[stream] = _Watched(rows, time, Observation())
        is_none = watched.is_none
        if end is not None:
            until = quote_name(end)
            is_none = f"{is_none} OR {until} IS NULL OR {until} < {watched.quoted}"
        return rows.observe(watched.counted, F.expr(f"count_if({is_none}) AS {_COUNT}"))

    def attach(self, answer: DataFrame) -> DataFrame:
        """Attach the counts to the answer."""
        setattr(answer, _ATTRIBUTE, self)
        return answer

    def counts(self) -> dict[str, int]:
        """The counts by stream."""
        observed: dict[str, int] = {}
        threads = [
            Thread(target=_tell, args=(name, one.counted, observed), daemon=True)
            for name, one in self._watched.items()
        ]
        for thread in threads:  # Spark would wait forever for what it has not computed
            thread.start()
        for thread in threads:
            thread.join(_WAIT)
        return {
            name: observed[name] if name in observed else one.rows.where(one.is_none).count()
            for name, one in self._watched.items()
        }

    def last_times(self) -> Iterator[int]:
        """The largest time of each stream that has rows; computes them."""
        for one in self._watched.values():
            timed = one.rows.where(f"NOT ({one.is_none})")
            (row,) = timed.selectExpr(f"max(unix_micros({one.quoted}))").collect()
            if row[0] is not None:
                yield row[0]


@dataclass(frozen=True)
class _Watched:
    """The rows of a stream, their time, and the counter of those without one."""

    rows: DataFrame
    time: str
    counted: Observation

    @property
    def quoted(self) -> str:
        return quote_name(self.time)

    @property
    def is_none(self) -> str:
        between = f"unix_micros({self.quoted}) BETWEEN {EARLIEST} AND {LATEST}"
        return f"{self.quoted} IS NULL OR NOT ({between})"


def last_time(answer: DataFrame) -> int | None:
    """The largest time in a batch answer's streams, in microseconds; computes it.

    None: it is not such an answer, or there are no rows.
    """
    left_out = getattr(answer, _ATTRIBUTE, None)
    times = left_out.last_times() if isinstance(left_out, LeftOut) else ()
    return max(times, default=None)


def rows_without_time(answer: DataFrame) -> dict[str, int]:
    """How many rows of each stream a batch answer leaves out; best called once it is computed.

    The time of such a row is NULL, before the year 1700 or after 9999. For a streaming query,
    `nm.metrics` reports it.

    >>> answer = db.sql("SELECT …")  # doctest: +SKIP
    >>> answer.show(), nm.rows_without_time(answer)  # doctest: +SKIP
    """
    left_out = getattr(answer, _ATTRIBUTE, None)
    if not isinstance(left_out, LeftOut):
        raise InputError(
            "this is not a batch answer of db.sql",
            hint="pass the DataFrame that db.sql returned; for a streaming query use nm.metrics",
        )
    return left_out.counts()


def left_out_notice(answer: DataFrame) -> str | None:
    """The counts in a sentence; None if no row was left out."""
    left_out = getattr(answer, _ATTRIBUTE, None)
    counts = left_out.counts() if isinstance(left_out, LeftOut) else {}
    return describe_left_out(counts)


def _tell(name: str, observation: Observation, observed: dict[str, Any]) -> None:
    with suppress(Exception):  # nothing was observed: some versions of Spark fail on that
        observed[name] = int(observation.get[_COUNT])
