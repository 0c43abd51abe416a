"""Problems of a query, and advice on them, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from nilometer.database.query_status import HealthSample, QueryStatus
from nilometer.sensors.manager.status import StreamStatus
from nilometer.server.console.figures import count_text
from nilometer.server.console.form_statements import written_name
from nilometer.server.console.wording import length_words

_LATELY: Final = 60_000_000
_MOST_LAG: Final = 30_000_000
"""A watermark may be this far behind before it is reported."""
_MOST_MILLIS: Final = 5_000
"""Half of the last minute's micro-batches may take longer before that is reported."""
_FEWEST: Final = 3
"""The minimum number of micro-batches in a minute for a conclusion."""


@dataclass(frozen=True)
class Advice:
    """A problem, and what helps."""

    message: str
    hint: str


def advise(
    samples: Sequence[HealthSample], streams: Sequence[StreamStatus], *, is_stalled: bool = False
) -> list[Advice]:
    """Advice on a query's last minute; `streams` are only those that it reads."""
    if not samples:
        return []
    recent = [one for one in samples if one.time >= samples[-1].time - _LATELY]
    held = () if is_stalled else _held_back(recent[-1], streams)  # else named already
    return [*_slow(recent), *_late(recent), *_shed(recent), *held, *_full(streams)]


def left_out(status: QueryStatus) -> Iterator[Advice]:
    """Rows for which a query could not compute something."""
    if status.dead_letters:
        rows = "row" if status.dead_letters == 1 else "rows"
        yield Advice(
            f"{count_text(status.dead_letters)} {rows} could not be computed, and left out",
            f"SHOW DEAD LETTERS FROM {written_name(status.name)} shows which, and why; "
            "CASE or try_cast can handle them",
        )


def uneven(status: QueryStatus) -> Iterator[Advice]:
    """A bucket that does much more than its share of the work."""
    if status.bottleneck is not None:
        cause = status.bottleneck.cause
        yield Advice(
            f"{cause[0].upper()}{cause[1:]}",
            status.remedy
            or f"EXPLAIN QUERY {written_name(status.name)} shows how the rows are spread; "
            "what helps is in docs/cluster.md, under Hot keys",
        )


def _slow(recent: Sequence[HealthSample]) -> Iterator[Advice]:
    """Micro-batches so slow that results are late; sharing cores is not a problem."""
    if len(recent) < _FEWEST:
        return
    took = sorted(one.batch_millis for one in recent)[len(recent) // 2]
    if took > _MOST_MILLIS:
        yield Advice(
            f"results come some {length_words(round(took * 1000))} after the readings: "
            "a micro-batch takes that long",
            "narrow the windows, select earlier, stop queries that nobody needs, "
            "or give the server more cores",
        )


def _late(recent: Sequence[HealthSample]) -> Iterator[Advice]:
    """Late rows, and the stream with most of them."""
    grown = recent[-1].late_rows - recent[0].late_rows
    if grown <= 0:
        return
    first, last = recent[0].streams, recent[-1].streams
    by_stream = {
        name: one.late - (first[name].late if name in first else 0) for name, one in last.items()
    }
    of = max(by_stream, key=lambda name: by_stream[name], default=None)
    named = "" if of is None else f", most of them of {of}"
    yield Advice(
        f"{count_text(grown)} rows came too late in the last minute and were dropped{named}",
        "declare the stream with a larger LATENESS",
    )


def _shed(recent: Sequence[HealthSample]) -> Iterator[Advice]:
    """Rows that were not read, as the query was too far behind."""
    grown = recent[-1].shed_rows - recent[0].shed_rows
    if grown > 0:
        yield Advice(
            f"{count_text(grown)} rows were shed in the last minute: more come than it can read",
            "narrow the windows, select earlier, or give the server more cores; "
            "its option shed says how many rows may wait",
        )


def _held_back(last: HealthSample, streams: Sequence[StreamStatus]) -> Iterator[Advice]:
    if last.watermark_lag is None or last.watermark_lag < _MOST_LAG:
        return
    marks = [one for one in streams if one.held_by is not None and one.watermark is not None]
    behind = min(marks, key=lambda one: one.watermark or 0, default=None)
    lag = f"its watermark is {length_words(last.watermark_lag)} behind the clock"
    if behind is None:
        yield Advice(
            lag,
            "a stream is silent, or its times are old; IDLE ends the wait for silent ones",
        )
        return
    reached = last.time + round(last.batch_millis * 1000) - last.watermark_lag
    if (behind.watermark or 0) - reached > _MOST_LAG:  # the sensors are not the cause
        yield Advice(
            f"{lag}: the query has not kept up with its input",
            f"its last micro-batch took {count_text(round(last.batch_millis))} ms; "
            "if that continues, narrow the windows, select earlier, or give the server more cores",
        )
        return
    yield Advice(
        f"{lag}: held back by the sensor {behind.held_by} of {behind.name}",
        "check that sensor, or declare the stream with IDLE so that silent sensors are not waited "
        "for",
    )


def _full(streams: Sequence[StreamStatus]) -> Iterator[Advice]:
    for one in streams:
        if one.full:
            yield Advice(
                f"the log of {one.name} is full, its sensors wait",
                "raise its disk option, or drop readers that no longer read",
            )
