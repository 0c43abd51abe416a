"""Nile section 4.2, Equation 1: the output rate of W-DISTINCT by input rate and window."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from time import process_time_ns
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from nilometer.local.database import LocalDatabase
from nilometer_papers.algorithms.nile.answer import Output
from nilometer_papers.algorithms.nile.pipeline import Approach, Arrival, Pipeline, Scheduling
from nilometer_papers.algorithms.nile.stream_scan import StreamScan
from nilometer_papers.algorithms.nile.w_distinct import WDistinct
from nilometer_papers.experiments.columnar import COLUMNAR
from nilometer_papers.experiments.experiment import Claim, Experiment, Outcome, Row, Setting
from nilometer_papers.experiments.measured import brief, distinct, select, values
from nilometer_papers.experiments.plots import Axis, Curve, draw_curves, share_legend
from nilometer_papers.experiments.workloads.exponential import SECOND

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KEYS: Final = 26
"""The paper's example: letters."""
RATES: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 200.0)
WINDOWS: Final = (2, 5, 10)
NEAR: Final = 0.1
ENGINE_RATE: Final = 20.0


def predicted(rate: float, window: float) -> float:
    """Tuples a second by Equation 1.

    >>> round(predicted(1000, 10), 3)
    2.6
    """
    absent: float = (1 - 1 / KEYS) ** (rate * window)
    return KEYS * (1 - absent) / window


def measure(setting: Setting) -> list[Row]:
    """Tuples per second that W-DISTINCT emits once the window is full, over several seeds."""
    windows_long = setting.choose(200, 30, 8)
    seeds = setting.choose(10, 5, 2)
    rows: list[Row] = []
    points = [(rate, window) for window in WINDOWS for rate in RATES]
    for rate, window in setting.progress.track(points, "points"):
        outputs = sorted(
            _output_rate(rate, window, windows_long, setting.seed + one) for one in range(seeds)
        )
        rows.append(
            {
                "algorithm": "W-DISTINCT",
                "rate": rate,
                "window": window,
                "output": sum(outputs) / seeds,
                "least": outputs[0],
                "most": outputs[-1],
                "equation": predicted(rate, window),
                "cpu_us": 0.0,
            }
        )
    return [*rows, *_engine_rows(setting)]


def arrivals_at(rate: float, seconds: float, seed: int) -> list[Arrival]:
    """Uniform values at exponential times, up to a time."""
    random, time, arrivals = Random(f"{seed} {rate}"), 0.0, []
    while (time := time + random.expovariate(rate)) < seconds:
        at = int(time * SECOND)
        arrivals.append(Arrival(at, 0, at, (random.randrange(KEYS),)))
    return arrivals


def _output_rate(rate: float, window: int, windows_long: int, seed: int) -> float:
    windows_long = max(min(20, windows_long), round(windows_long * min(1, 10 / rate)))
    seconds = window * (1 + windows_long)
    output = Output(WDistinct(StreamScan(0, window * SECOND)))
    running = Pipeline(output, Approach.TPA, lambda: 0, Scheduling.CLOCK)
    running.replay(arrivals_at(rate, seconds, seed))
    since = window * SECOND
    insertions = sum(one.sign > 0 and one.instant >= since for one in output.changes)
    return insertions / (seconds - window)


def _engine_rows(setting: Setting) -> list[Row]:
    """CPU time per arrival of W-DISTINCT, and of the columnar engine's DISTINCT."""
    window = WINDOWS[-1]
    arrivals = arrivals_at(ENGINE_RATE, setting.choose(600, 300, 100), setting.seed)
    output = Output(WDistinct(StreamScan(0, window * SECOND)))
    running = Pipeline(output, Approach.TPA, scheduling=Scheduling.CLOCK)
    running.replay(arrivals)
    rows = pa.table(
        {
            "ts": pa.array([one.time for one in arrivals], pa.timestamp("us", "UTC")),
            "key": pa.array([one.values[0] for one in arrivals]),
        }
    )
    db = LocalDatabase()
    db.create_stream("S", rows.schema.empty_table(), time="ts")
    statement = f"SELECT DISTINCT key FROM S [RANGE {window} SECONDS] EMIT CHANGES"
    query, spent = db.query(statement), 0
    for batch in rows.to_batches(max_chunksize=1000):
        began = process_time_ns()
        query.feed({"S": batch})
        spent += process_time_ns() - began
    common: Row = {
        "rate": ENGINE_RATE,
        "window": window,
        "output": 0.0,
        "least": 0.0,
        "most": 0.0,
        "equation": 0.0,
    }
    return [
        {"algorithm": "CPU W-DISTINCT", **common, "cpu_us": running.worked / len(arrivals)},
        {"algorithm": COLUMNAR, **common, "cpu_us": spent / 1000 / len(arrivals)},
    ]


def _points(rows: Sequence[Row], window: int) -> list[Row]:
    return select(rows, algorithm="W-DISTINCT", window=window)


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """Measured rates with bands over seeds, and the equation's rates."""
    axes = figure.subplots()
    curves = []
    for window in WINDOWS:
        points = _points(rows, window)
        rates = values(points, "rate")
        label = f"{window} s"
        curves.append(Curve(f"measured, {label}", rates, values(points, "output")))
        curves.append(Curve(f"equation, {label}", rates, values(points, "equation"), "--"))
        axes.fill_between(rates, values(points, "least"), values(points, "most"), alpha=0.2)
    x, y = Axis("input rate (tuples a second)", log=True), Axis("output rate (tuples a second)")
    draw_curves(axes, curves, x, y, "26 values, three windows; bands over seeds", markers=True)
    share_legend(figure, [axes])


def _is_near(rows: Sequence[Row]) -> Outcome:
    figures, holds = [], True
    for window in WINDOWS:
        points = _points(rows, window)
        gaps = [float(p["output"]) / float(p["equation"]) for p in points]
        figures.append(f"{window} s: {', '.join(brief(gap) for gap in gaps)}")
        holds = holds and all(abs(gap - 1) <= NEAR for gap in gaps)
    return Outcome(holds, "measured / equation by rate; " + "; ".join(figures))


def _stabilizes(rows: Sequence[Row]) -> Outcome:
    figures, holds = [], True
    for window in WINDOWS:
        *_, before, last = values(_points(rows, window), "output")
        limit = KEYS / window
        figures.append(f"{window} s: {brief(before)} then {brief(last)}, limit {brief(limit)}")
        holds = holds and abs(last / limit - 1) <= NEAR
    return Outcome(holds, "; ".join(figures))


def _falls_with_window(rows: Sequence[Row]) -> Outcome:
    figures, holds = [], True
    for rate in distinct(select(rows, algorithm="W-DISTINCT"), "rate"):
        outputs = values(rows, "output", algorithm="W-DISTINCT", rate=rate)
        figures.append(f"{rate:g}/s: {', '.join(map(brief, outputs))}")
        holds = holds and outputs == sorted(outputs, reverse=True)
    return Outcome(holds, "by window; " + "; ".join(figures))


def _batching(rows: Sequence[Row]) -> Outcome:
    ours, theirs = (
        values(rows, "cpu_us", algorithm=one)[0] for one in (COLUMNAR, "CPU W-DISTINCT")
    )
    return Outcome(ours < theirs, f"columnar {brief(ours)} µs, W-DISTINCT {brief(theirs)} µs")


CLAIMS = (
    Claim(
        "the output rate is that of Equation 1",
        "measured and predicted rates differ by ≤ 10 % at each rate and window",
        _is_near,
        "the equation counts the different values of a window, each put out once in it. That is "
        "so of windows side by side; those of W-DISTINCT slide. When a tuple ends, the duplicate "
        "that takes its place has come some time before, about n / lambda, and so ends before a "
        "whole window is over: values are put out up to 1.3 times as often. If it began a window "
        "of its own, they would be 1.16 times as often. Equation and W-DISTINCT agree where "
        "lambda * w is far from n, as the figure shows",
    ),
    Claim(
        "for a high input rate the output rate becomes almost constant, n / |w|",
        "at the highest rate it is within 10 % of n / |w|",
        _stabilizes,
    ),
    Claim(
        "the output rate decreases as the window grows",
        "output(2 s) ≥ output(5 s) ≥ output(10 s) at each rate",
        _falls_with_window,
    ),
    Claim(
        "ours: micro-batches of the columnar engine take less CPU time than W-DISTINCT",
        "cpu_us(columnar) < cpu_us(W-DISTINCT), micro-batches of 1000 rows",
        _batching,
    ),
)

EXPERIMENT = Experiment(
    "nile-equation-1",
    "Nile",
    "Equation 1",
    "the output rate of W-DISTINCT",
    measure,
    draw,
    CLAIMS,
    "uniform values, as many as there are letters (the paper's example), exponential times between "
    "arrivals; rates and windows are ours. Counted over 200 windows (fewer, but 20 at least, at "
    "more than 10 tuples a second) and ten seeds, with --quick 30 and five, with --smoke 8 and "
    "two; bands are the least and the most of all seeds",
)
