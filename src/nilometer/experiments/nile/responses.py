"""Response times of a query under each approach, and beside them those of the columnar engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Final

from nilometer.algorithms.nile.answer import Answer
from nilometer.algorithms.nile.pipeline import Approach, Arrival, Pipeline
from nilometer.experiments.columnar import COLUMNAR
from nilometer.experiments.experiment import Row
from nilometer.experiments.nile.columnar_changes import Told, respond_columnar
from nilometer.experiments.nile.queries import Query
from nilometer.experiments.service import WrongResultsError, no_garbage_collection

Key = tuple[int, tuple[object, ...]]
"""From when a row comes or leaves, and the row."""


WORK: Final = ("tuples", "comparisons", "probes")
"""What operators count, here per tuple that arrives."""


@dataclass(frozen=True)
class Period:
    """Over which changes response times are taken."""

    since: int
    """From when on: once windows are full."""
    columnar: int
    """How long before the end the columnar engine takes micro-batches; all before is one."""


def measure_responses(
    query: Query, arrivals: Sequence[Arrival], period: Period, /, **labels: str | float
) -> list[Row]:
    """A row for each approach and the columnar engine, over the changes of a period.

    The streams do not end: what has not come out with the last arrivals comes out then.
    """
    last = min(max(a.time for a in arrivals if a.stream == s) for s in range(query.streams))
    told: dict[str, Told] = {}
    rows: list[Row] = []
    for approach in Approach:
        running = _run(query, arrivals, approach)
        told[approach] = list(zip(running.changes, running.clocks, strict=True))
        work = {name: _per_tuple(running, name, arrivals) for name in WORK}
        response = _response_of(told[approach], period.since, last)
        cpu = running.worked / len(arrivals)
        rows.append({"algorithm": approach.value, **labels, **response, "cpu_us": cpu, **work})
    told[COLUMNAR], spent = respond_columnar(query, arrivals, last - period.columnar)
    response = _response_of(told[COLUMNAR], last - period.columnar, last)
    cpu, none = spent / len(arrivals), dict.fromkeys(WORK, 0)
    rows.append({"algorithm": COLUMNAR, **labels, **response, "cpu_us": cpu, **none})
    check_same_changes(told, last)
    return rows


def check_same_changes(told: Mapping[str, Told], until: int) -> None:
    """Refuse to report on runs whose answers are not the same at every instant."""
    answers = {name: set(_net(one, until).items()) for name, one in told.items()}
    first = next(iter(answers.values()))
    if any(one != first for one in answers.values()):
        counts = ", ".join(f"{name} {len(one)}" for name, one in answers.items())
        raise WrongResultsError("pipelines give different answers", detail=f"changes: {counts}")


def _net(told: Told, until: int) -> dict[Key, int]:
    """The changes before an instant; those that cancel are none."""
    copies: Counter[Key] = Counter()
    for (values, instant, sign), _ in told:
        if instant < until:
            copies[instant, values] += sign
    return {key: count for key, count in copies.items() if count}


def _response_of(told: Told, since: int, until: int) -> Row:
    """Average and maximum of how long after the instant from which it holds a change is out."""
    clocks = {(change.instant, change.values): clock for change, clock in told}
    delays = [clocks[key] - key[0] for key in _net(told, until) if key[0] >= since]
    return {
        "changes": len(delays),
        "average_ms": sum(delays) / len(delays) / 1000 if delays else nan,
        "maximum_ms": max(delays, default=nan) / 1000,
    }


def _run(query: Query, arrivals: Sequence[Arrival], approach: Approach) -> Pipeline:
    running = Pipeline(Answer(query.plan()), approach)
    with no_garbage_collection():
        running.replay(arrivals)
        running.finish()
    return running


def _per_tuple(running: Pipeline, counter: str, arrivals: Sequence[Arrival]) -> float:
    total = sum(getattr(one.counters, counter) for one in running.operators)
    return float(total) / len(arrivals)
