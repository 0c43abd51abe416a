"""How fast pipelines produce when more arrives than they can handle (Nile Figures 13 and 16)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nilometer_papers.algorithms.nile.answer import Output
from nilometer_papers.algorithms.nile.pipeline import Approach, Pipeline
from nilometer_papers.algorithms.nile.w_aggregate import WAggregate
from nilometer_papers.experiments.columnar import COLUMNAR
from nilometer_papers.experiments.experiment import Claim, Outcome, Row, Setting
from nilometer_papers.experiments.measured import brief, distinct, values
from nilometer_papers.experiments.nile.columnar_changes import ColumnarQuery, TimedChanges
from nilometer_papers.experiments.nile.queries import Query
from nilometer_papers.experiments.nile.responses import check_same_changes
from nilometer_papers.experiments.nile.sales import synthetic_sales
from nilometer_papers.experiments.plots import Axis, Curve, draw_curves, share_legend
from nilometer_papers.experiments.service import no_garbage_collection

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PER_SECOND = 2056
"""Tuples a second of each stream (Nile section 6.2)."""
POINTS = 20
ALIKE = 0.15

PARAMETERS = (
    "2056 tuples a second of each stream by their timestamps, all of which wait from the start: "
    "more than can be taken (Nile section 6.2). Time is CPU time. The columnar engine takes "
    "twenty micro-batches, one for each point"
)


def measure_production(setting: Setting, query: Query, tuples: int) -> list[Row]:
    """CPU time and tuples produced after each part of the arrivals.

    The approaches take turns, part by part, so that any disturbance affects all of them. The output
    of the columnar engine is counted as for the last of them.
    """
    arrivals = synthetic_sales(query.streams, PER_SECOND, query.items, tuples, setting.seed)
    waiting = [one._replace(clock=0) for one in arrivals]
    size = -(-tuples // POINTS)
    parts = [waiting[first : first + size] for first in range(0, tuples, size)]
    last = min(max(a.time for a in arrivals if a.stream == s) for s in range(query.streams))
    outputs = {one.value: Output(query.plan()) for one in Approach}
    pipelines = {one.value: Pipeline(outputs[one.value], one) for one in Approach}
    columnar = ColumnarQuery(query)
    columnar_changes: TimedChanges = []
    rows: list[Row] = []
    with no_garbage_collection():
        for part in setting.progress.track(parts, "arrivals"):
            for name, running in pipelines.items():
                running.replay(part)
                rows.append(_row(name, _produced(running), running.worked))
            columnar_changes += [(change, 0.0) for change in columnar.feed(part)]
            rows.append(_row(COLUMNAR, int(rows[-1]["produced"]), columnar.microseconds))
    for running in pipelines.values():
        running.finish()
    answers = {
        name: [(c, 0.0) for c in (*one.changes, *one.implied)] for name, one in outputs.items()
    }
    check_same_changes({**answers, COLUMNAR: columnar_changes}, last)
    return rows


def _produced(running: Pipeline) -> int:
    """Rows that reached the answer; for an aggregate, the tuples it reacted to.

    By Algorithm 4.3 an aggregate outputs a tuple for each; here only if its value has changed.
    """
    top = running.operators[-2]
    return (
        top.counters.lookups
        if isinstance(top, WAggregate)
        else sum(one.sign > 0 for one in running.changes)
    )


def _row(algorithm: str, produced: int, microseconds: float) -> Row:
    return {"algorithm": algorithm, "produced": produced, "cpu_seconds": microseconds / 1_000_000}


def draw_production(figure: Figure, rows: Sequence[Row]) -> None:
    """CPU time against tuples produced."""
    axes = figure.subplots()
    curves = [
        Curve(
            name,
            values(rows, "produced", algorithm=name),
            values(rows, "cpu_seconds", algorithm=name),
        )
        for name in map(str, distinct(rows, "algorithm"))
    ]
    draw_curves(axes, curves, Axis("tuples produced"), Axis("CPU seconds"))
    share_legend(figure, [axes])


def total(rows: Sequence[Row], algorithm: str) -> float:
    """CPU time for the whole load."""
    return values(rows, "cpu_seconds", algorithm=algorithm)[-1]


def faster(fast: str, slow: str, text: str, reason: str = "") -> Claim:
    """One approach takes less time for the whole load than another."""

    def check(rows: Sequence[Row]) -> Outcome:
        times = total(rows, fast), total(rows, slow)
        figures = f"{fast} {brief(times[0])} s, {slow} {brief(times[1])} s"
        return Outcome(times[0] <= times[1], figures)

    return Claim(text, f"cpu_seconds({fast}) ≤ cpu_seconds({slow}), all produced", check, reason)


def rises_slower(slow: str, *others: str, text: str, reason: str = "") -> Claim:
    """The time of one approach rises at most half as much as others', once windows are full."""

    def check(rows: Sequence[Row]) -> Outcome:
        rises = {
            one: total(rows, one) - values(rows, "cpu_seconds", algorithm=one)[POINTS // 2 - 1]
            for one in (slow, *others)
        }
        figures = ", ".join(f"{one} {brief(rise)} s" for one, rise in rises.items())
        return Outcome(all(2 * rises[slow] <= rises[one] for one in others), figures)

    inequality = (
        f"2 × the rise of cpu_seconds({slow}) over the second half of the arrivals ≤ that of "
        + " and of ".join(others)
    )
    return Claim(text, inequality, check, reason)


def alike(first: str, second: str, text: str, reason: str = "") -> Claim:
    """Two approaches take comparable time for the whole load."""

    def check(rows: Sequence[Row]) -> Outcome:
        times = sorted((total(rows, first), total(rows, second)))
        figures = f"{first} {brief(total(rows, first))} s, {second} {brief(total(rows, second))} s"
        return Outcome(times[1] <= times[0] * (1 + ALIKE), figures)

    inequality = f"cpu_seconds of {first} and {second} differ by ≤ 15 %, all produced"
    return Claim(text, inequality, check, reason)


def batching_gains() -> Claim:
    """What the columnar engine's micro-batches gain over the best of the approaches."""

    def check(rows: Sequence[Row]) -> Outcome:
        best = min((a.value for a in Approach), key=lambda one: total(rows, one))
        gain = total(rows, best) / total(rows, COLUMNAR)
        figures = (
            f"columnar {brief(total(rows, COLUMNAR))} s, {brief(gain)} times as fast as {best}"
        )
        return Outcome(gain > 1, figures)

    text = "ours: micro-batches of the columnar engine beat the best of the approaches"
    return Claim(text, "cpu_seconds(columnar) < min(cpu_seconds(approach))", check)
