"""Response times of a query under each approach, compared with those of the columnar engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from math import isnan, nan
from time import thread_time_ns
from typing import Final

from nilometer_papers.algorithms.nile.answer import Output
from nilometer_papers.algorithms.nile.pipeline import Approach, Arrival, Pipeline, Scheduling
from nilometer_papers.experiments.columnar import COLUMNAR
from nilometer_papers.experiments.experiment import Row
from nilometer_papers.experiments.nile.columnar_changes import TimedChanges, respond_columnar
from nilometer_papers.experiments.nile.queries import Query
from nilometer_papers.experiments.service import WrongResultsError, no_garbage_collection

Key = tuple[int, tuple[object, ...]]
"""The instant at which a row comes or leaves, and the row."""


WORK: Final = ("tuples", "comparisons", "probes")
"""What operators count, here per arriving tuple."""


@dataclass(frozen=True)
class Period:
    """The changes over which response times are taken."""

    since: int
    """The start: once windows are full."""
    columnar: int
    """How long before the end the columnar engine takes micro-batches; all before that is one."""
    slowed: float = 1.0
    """How many times slower than this one the machine is."""
    scheduling: Scheduling = Scheduling.CLOCK


def measure_responses(
    query: Query, arrivals: Sequence[Arrival], period: Period, /, **labels: str | float
) -> list[Row]:
    """A row for each approach and the columnar engine, over the changes of a period.

    The streams do not end: what has not come out with the last arrivals comes out at that point.
    """
    last = min(max(a.time for a in arrivals if a.stream == s) for s in range(query.streams))
    answers: dict[str, TimedChanges] = {}
    spent: dict[str, Row] = {}
    for approach in Approach:
        output = Output(query.plan())
        running = _run(output, arrivals, approach, period)
        changes = zip(running.changes, running.clocks, strict=True)
        answers[approach] = [*changes, *((one, nan) for one in output.implied)]
        cpu = running.worked / period.slowed / len(arrivals)
        work = {name: _per_tuple(running, name, arrivals) for name in WORK}
        spent[approach] = {"cpu_us": cpu, **work}
    put_out = set.intersection(
        *(set(clocks_of(answers[one])) for one in (Approach.ITA, Approach.TPA))
    )
    answers[COLUMNAR], cpu = respond_columnar(query, arrivals, last - period.columnar)
    spent[COLUMNAR] = {"cpu_us": cpu / len(arrivals), **dict.fromkeys(WORK, 0)}
    check_same_changes(answers, last)
    arrived = {one.time for one in arrivals}
    rows: list[Row] = []
    for name, one in answers.items():
        since = last - period.columnar if name == COLUMNAR else period.since
        clocks = clocks_of(one)
        keys = _net(one, last).keys() if name == COLUMNAR else put_out & clocks.keys()
        measured = {key for key in keys if since <= key[0] < last}
        response = response_of(clocks, measured, arrived)
        rows.append({"algorithm": str(name), **labels, **response, **spent[name]})
    return rows


def check_same_changes(runs: Mapping[str, TimedChanges], until: int) -> None:
    """Refuse to report on runs whose answers differ at some instant."""
    answers = {name: set(_net(one, until).items()) for name, one in runs.items()}
    first = next(iter(answers.values()))
    if any(one != first for one in answers.values()):
        counts = ", ".join(f"{name} {len(one)}" for name, one in answers.items())
        raise WrongResultsError("pipelines give different answers", detail=f"changes: {counts}")


def _net(changes: TimedChanges, until: int) -> dict[Key, int]:
    """The changes before an instant, without those that cancel out."""
    copies: Counter[Key] = Counter()
    for (values, instant, sign), _ in changes:
        if instant < until:
            copies[instant, values] += sign
    return {key: count for key, count in copies.items() if count}


def clocks_of(changes: TimedChanges) -> dict[Key, float]:
    """When each change came out; one that no tuple reports, a row's end with its window, never did.

    Under NTA a negative tuple reports that end, too: it is not compared.
    """
    return {(one.instant, one.values): clock for one, clock in changes if not isnan(clock)}


def response_of(clocks: Mapping[Key, float], measured: Set[Key], arrived: Set[int]) -> Row:
    """Average and maximum delay from the instant at which a change takes effect until it is out.

    Separately, those at instants at which nothing arrived: they follow from
    expirations.
    """
    delays = [clocks[key] - key[0] for key in measured]
    expired = [clocks[key] - key[0] for key in measured if key[0] not in arrived]
    return {
        "changes": len(delays),
        "average_ms": sum(delays) / len(delays) / 1000 if delays else nan,
        "maximum_ms": max(delays, default=nan) / 1000,
        "expired_ms": sum(expired) / len(expired) / 1000 if expired else nan,
    }


def _run(
    output: Output, arrivals: Sequence[Arrival], approach: Approach, period: Period
) -> Pipeline:
    def meter() -> int:
        return round(thread_time_ns() * period.slowed)

    running = Pipeline(output, approach, meter, period.scheduling)
    with no_garbage_collection():
        running.replay(arrivals)
        running.finish()
    return running


def _per_tuple(running: Pipeline, counter: str, arrivals: Sequence[Arrival]) -> float:
    total = sum(getattr(one.counters, counter) for one in running.operators)
    return float(total) / len(arrivals)
