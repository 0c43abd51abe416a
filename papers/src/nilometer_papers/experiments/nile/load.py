"""Nile Figures 10, 14 and 15 by the share of tuples that pass and by how busy the machine is.

Time is counted work, not CPU time: it is the same in every run, so a machine can be as fast or as
slow as wanted. A tuple that an operator processes costs as much as a hundred tuples that a scan of
a buffer passes, as was measured here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import nan
from typing import TYPE_CHECKING, Final

from nilometer_papers.algorithms.nile.answer import Output
from nilometer_papers.algorithms.nile.operator import Operator
from nilometer_papers.algorithms.nile.pipeline import Approach, Arrival, Pipeline, Scheduling
from nilometer_papers.experiments.experiment import Claim, Experiment, Outcome, Row, Setting
from nilometer_papers.experiments.measured import Label, brief, distinct, select, values
from nilometer_papers.experiments.nile.columnar_changes import TimedChanges
from nilometer_papers.experiments.nile.figure_10 import PAPER, PER_SECOND
from nilometer_papers.experiments.nile.figure_14 import RATES
from nilometer_papers.experiments.nile.figure_14 import SELECTIVITY as AT_RATES
from nilometer_papers.experiments.nile.figure_15 import SELECTIVITIES
from nilometer_papers.experiments.nile.loads import Lengths
from nilometer_papers.experiments.nile.queries import Query, q1, q5
from nilometer_papers.experiments.nile.response_claims import ALL, AVERAGE, EXPIRED, MAXIMUM, NEARLY
from nilometer_papers.experiments.nile.responses import check_same_changes, clocks_of, response_of
from nilometer_papers.experiments.nile.sales import synthetic_sales
from nilometer_papers.experiments.plots import (
    Axis,
    Curve,
    colour_of,
    draw_curves,
    share_legend,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SCAN: Final = 0.01
"""What it costs to compare the time of a stored tuple, where processing a tuple costs 1."""
QUIET: Final = 0.3
"""Up to this share a machine is idle most of the time."""
ONE_IN: Final = (4, 10, 20, 30, 40, 80)
"""One of so many tuples passes the selection of Q1."""
PASSES, RATE, JOIN = "Figure 10", "Figure 14", "Figure 15"
BUSY: Final = {RATE: (0.01, 0.3, 0.7, 0.95, 1.3), JOIN: (0.01, 0.3, 0.7, 0.95)}
"""The share of the time that TPA would work at the heaviest load of a figure if it were not behind.

A scan serves all that expired since the last one, so it keeps up at more than 1.
"""


class CountedWork:
    """A meter by what operators count."""

    def __init__(self, microseconds: float) -> None:
        self._nanoseconds = 1000 * microseconds
        self._operators: Sequence[Operator] = ()

    def watch(self, operators: Sequence[Operator]) -> None:
        """Count the work of these operators."""
        self._operators = operators

    def __call__(self) -> int:
        counted = [one.counters for one in self._operators]
        work = sum(one.tuples + SCAN * one.comparisons for one in counted)
        return round(self._nanoseconds * work)


def run_counted(
    query: Query,
    arrivals: Sequence[Arrival],
    approach: Approach,
    microseconds: float,
    scheduling: Scheduling = Scheduling.CLOCK,
) -> tuple[Pipeline, Output]:
    """Replay arrivals on a machine that takes so long to process a tuple."""
    output, meter = Output(query.plan()), CountedWork(microseconds)
    running = Pipeline(output, approach, meter, scheduling)
    meter.watch(running.operators)
    running.replay(arrivals)
    running.finish()
    return running, output


def respond(
    query: Query,
    arrivals: Sequence[Arrival],
    since: int,
    microseconds: float,
    scheduling: Scheduling = Scheduling.CLOCK,
) -> dict[str, Row]:
    """Response times of each approach over the changes that all put out, windows being full."""
    last = min(max(a.time for a in arrivals if a.stream == s) for s in range(query.streams))
    answers: dict[str, TimedChanges] = {}
    for approach in Approach:
        running, output = run_counted(query, arrivals, approach, microseconds, scheduling)
        changes = zip(running.changes, running.clocks, strict=True)
        answers[approach] = [*changes, *((one, nan) for one in output.implied)]
    check_same_changes(answers, last)
    clocks = {name: clocks_of(one) for name, one in answers.items()}
    put_out = set.intersection(*(set(clocks[one]) for one in (Approach.ITA, Approach.TPA)))
    arrived = {one.time for one in arrivals}
    responses: dict[str, Row] = {}
    for name, one in clocks.items():
        measured = {key for key in put_out & one.keys() if since <= key[0] < last}
        responses[str(name)] = response_of(one, measured, arrived)
    return responses


def measure(setting: Setting) -> list[Row]:
    """Response times, by figure, point, busy share and seed."""
    lengths, seeds = Lengths.of(setting), setting.choose(10, 3, 1)
    rows: list[Row] = []
    for seed in setting.progress.track(range(setting.seed, setting.seed + seeds), "seeds"):
        for one_in in ONE_IN:
            query = q1(lengths.window, 1 / one_in)
            responses = respond(
                query, _arrivals(lengths, query, PER_SECOND, seed), lengths.window, 0
            )
            rows += _rows(PASSES, one_in, 0, seed, responses)
        windows = lengths.two_windows
        by_rate = {float(rate): q5(windows, rate, AT_RATES) for rate in (RATES[0], RATES[-1])}
        points = {
            rate: (query, _arrivals(lengths, query, rate, seed)) for rate, query in by_rate.items()
        }
        rows += _by_busy(setting, RATE, points, lengths.window, seed)
        by_join = {
            one: q5(windows, PER_SECOND, one) for one in (SELECTIVITIES[0], *SELECTIVITIES[-2:])
        }
        joins = {
            one: (query, _arrivals(lengths, query, PER_SECOND, seed))
            for one, query in by_join.items()
        }
        rows += _by_busy(setting, JOIN, joins, lengths.window, seed)
    return rows


def _by_busy(
    setting: Setting,
    figure: str,
    points: Mapping[float, tuple[Query, list[Arrival]]],
    since: int,
    seed: int,
) -> list[Row]:
    query, arrivals = points[max(points)]
    running, _ = run_counted(query, arrivals, Approach.TPA, 0.001)
    full = 0.001 * arrivals[-1].clock / running.worked
    rows: list[Row] = []
    for busy in setting.progress.track(BUSY[figure], f"{figure}, busy shares"):
        for at, (one, load_arrivals) in points.items():
            rows += _rows(figure, at, busy, seed, respond(one, load_arrivals, since, busy * full))
    return rows


def _rows(figure: str, at: float, busy: float, seed: int, responses: dict[str, Row]) -> list[Row]:
    return [
        {"figure": figure, "at": at, "busy": busy, "seed": seed, "algorithm": name, **response}
        for name, response in responses.items()
    ]


def _arrivals(lengths: Lengths, query: Query, rate: float, seed: int) -> list[Arrival]:
    seconds = (lengths.window + lengths.measured) / 1_000_000
    tuples = int(seconds * rate * query.streams)
    return synthetic_sales(query.streams, rate, query.items, tuples, seed)


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """ITA's delays by the share that passes; then how times grow, by how busy TPA is."""
    passes, rates, joins = figure.subplots(1, 3)
    _draw_delays(passes, rows)
    label = f"average at {RATES[-1]} / at {RATES[0]} tuples a second"
    _draw_growth(rates, rows, RATE, (RATES[0], RATES[-1]), f"Figure 14: {label}")
    apart = [_apart(rows, busy) for busy in BUSY[RATE]]
    legend = "difference of NTA's and TPA's maxima / ITA's"
    rates.set_ylim(bottom=NEARLY)
    rates.plot(BUSY[RATE], apart, ":", color="black", marker="x", label=legend)
    low, high = SELECTIVITIES[-2:]
    _draw_growth(joins, rows, JOIN, (low, high), f"Figure 15: average at {high} / at {low}")
    lags = [_lag(rows, busy, high) / _lag(rows, busy, SELECTIVITIES[0]) for busy in BUSY[JOIN]]
    legend = f"ITA's lag at {high} / at {SELECTIVITIES[0]}"
    joins.plot(BUSY[JOIN], lags, ":", color="tab:purple", marker="x", label=legend)
    share_legend(figure, [passes, rates, joins])


def _draw_delays(axes: Axes, rows: Sequence[Row]) -> None:
    curves = []
    for column, statistic in ((AVERAGE, "average"), (MAXIMUM, "maximum")):
        seconds = [_pooled(rows, column, PASSES, one, 0, "ITA") / 1000 for one in ONE_IN]
        curves.append(
            Curve(f"ITA, {statistic}", ONE_IN, seconds, "-" if column == AVERAGE else "--")
        )
        bands = [_band(rows, column, PASSES, one, 0, "ITA") for one in ONE_IN]
        lows, highs = ([band[side] / 1000 for band in bands] for side in (0, 1))
        axes.fill_between(ONE_IN, lows, highs, color="tab:red", alpha=0.2)
        near = PAPER[column] / 2000, PAPER[column] / 500
        axes.axhspan(*near, color="tab:gray", alpha=0.2, label="half to twice the paper's")
    x, y = Axis("one of so many tuples passes", log=True), Axis("seconds", log=True)
    draw_curves(axes, curves, x, y, "Figure 10: Q1 at 20 tuples a second", markers=True)
    axes.set_xticks(ONE_IN)


def _draw_growth(
    axes: Axes, rows: Sequence[Row], figure: str, ends: tuple[float, float], title: str
) -> None:
    curves = []
    for name in ALL:
        growth = [_growth(rows, figure, ends, busy, name) for busy in BUSY[figure]]
        curves.append(Curve(name, BUSY[figure], growth))
        by_seed = [
            [_growth(select(rows, seed=seed), figure, ends, busy, name) for seed in _seeds(rows)]
            for busy in BUSY[figure]
        ]
        lows, highs = [min(one) for one in by_seed], [max(one) for one in by_seed]
        axes.fill_between(BUSY[figure], lows, highs, color=colour_of(name), alpha=0.15)
    x = Axis("how busy TPA is at the heaviest load")
    draw_curves(axes, curves, x, Axis("ratio", log=figure == RATE), title, markers=True)
    axes.axhline(1, color="black", linewidth=0.8)


def _seeds(rows: Sequence[Row]) -> list[Label]:
    return distinct(rows, "seed")


def _pooled(
    rows: Sequence[Row], column: str, figure: str, at: float, busy: float, algorithm: str
) -> float:
    """The mean over the changes of all seeds; of maxima, the mean of those of the seeds."""
    group = select(rows, figure=figure, at=at, busy=busy, algorithm=algorithm)
    weights = [float(row["changes"]) if column == AVERAGE else 1.0 for row in group]
    pairs = zip(group, weights, strict=True)
    return sum(float(row[column]) * weight for row, weight in pairs) / sum(weights)


def _band(
    rows: Sequence[Row], column: str, figure: str, at: float, busy: float, algorithm: str
) -> tuple[float, float]:
    numbers = values(rows, column, figure=figure, at=at, busy=busy, algorithm=algorithm)
    return min(numbers), max(numbers)


def _growth(
    rows: Sequence[Row], figure: str, ends: tuple[float, float], busy: float, algorithm: str
) -> float:
    first, last = (_pooled(rows, AVERAGE, figure, end, busy, algorithm) for end in ends)
    return last / first


def _lag(rows: Sequence[Row], busy: float, selectivity: float) -> float:
    """How much later than the best of the others ITA answers."""
    ita, *others = (_pooled(rows, AVERAGE, JOIN, selectivity, busy, name) for name in ALL)
    return ita - min(others)


def _apart(rows: Sequence[Row], busy: float) -> float:
    """The most by which the maxima of NTA and TPA differ, as a share of ITA's."""
    shares = []
    for rate in (RATES[0], RATES[-1]):
        ita, tpa, nta = (_pooled(rows, MAXIMUM, RATE, rate, busy, name) for name in ALL)
        shares.append(abs(tpa - nta) / ita)
    return max(shares)


def _delays(rows: Sequence[Row]) -> Outcome:
    figures, near = [], []
    for one_in in ONE_IN:
        delays = {
            column: _pooled(rows, column, PASSES, one_in, 0, "ITA")
            for column in (AVERAGE, MAXIMUM, EXPIRED)
        }
        near.append(all(PAPER[one] / 2 <= delays[one] <= 2 * PAPER[one] for one in PAPER))
        average, longest, expired = (brief(one / 1000) for one in delays.values())
        figures.append(
            f"one in {one_in}: {average} s ({expired} s by expirations alone), {longest} s"
        )
    held = [one_in for one_in, holds in zip(ONE_IN, near, strict=True) if holds]
    return Outcome(bool(held) and not any(near[:2]), "; ".join(figures))


def _maxima(rows: Sequence[Row]) -> Outcome:
    figures = []
    for busy in BUSY[RATE]:
        maxima = [
            ", ".join(
                f"{name} {brief(_pooled(rows, MAXIMUM, RATE, rate, busy, name))}" for name in ALL
            )
            for rate in (RATES[0], RATES[-1])
        ]
        figures.append(f"busy {busy}: {' and '.join(maxima)} ms, {_apart(rows, busy):.1%} of ITA's")
    return Outcome(_apart(rows, BUSY[RATE][0]) <= NEARLY, "; ".join(figures))


def _growth_figures(rows: Sequence[Row], figure: str, ends: tuple[float, float]) -> str:
    figures = [
        f"busy {busy}: "
        + ", ".join(f"{name} {brief(_growth(rows, figure, ends, busy, name))}" for name in ALL)
        for busy in BUSY[figure]
    ]
    return f"{'; '.join(figures)} times"


def _all_grow(figure: str, ends: tuple[float, float]) -> Callable[[Sequence[Row]], Outcome]:
    def check(rows: Sequence[Row]) -> Outcome:
        grow = all(_growth(rows, figure, ends, BUSY[figure][-1], name) > 1 for name in ALL)
        return Outcome(grow, _growth_figures(rows, figure, ends))

    return check


def _converges(rows: Sequence[Row]) -> Outcome:
    first, last = SELECTIVITIES[0], SELECTIVITIES[-1]
    lags = {busy: [_lag(rows, busy, one) for one in (first, last)] for busy in BUSY[JOIN]}
    figures = "; ".join(
        f"busy {busy}: {brief(one)} to {brief(other)} ms" for busy, (one, other) in lags.items()
    )
    return Outcome(
        all(lags[busy][1] < lags[busy][0] for busy in BUSY[JOIN] if busy <= QUIET), figures
    )


CLAIMS = (
    Claim(
        "ours: with what the paper tells of its queries, one tuple in 4 or 10 passes, ITA cannot "
        "wait for as long as in Figure 10, but where fewer pass it does",
        "half to twice 0.85 s on average and 4.8 s at most for some share, not for 1/4 and 1/10",
        _delays,
    ),
    Claim(
        "ours: on a machine that is nearly always idle NTA and TPA have almost the same maximum "
        "beside that of ITA (Figure 14)",
        f"maximum_ms of NTA and TPA differ by ≤ {NEARLY:.0%} of ITA's where TPA is busy for "
        f"{BUSY[RATE][0]:.0%} of the time, at {RATES[0]} and {RATES[-1]} tuples a second",
        _maxima,
    ),
    Claim(
        "ours: near saturation response times increase at high rates in all approaches (Figure 14)",
        f"average_ms at rate {RATES[0]} < at rate {RATES[-1]} for ITA, TPA, NTA where the machine "
        f"is {BUSY[RATE][-1]} times as slow as would make TPA busy all the time",
        _all_grow(RATE, (RATES[0], RATES[-1])),
    ),
    Claim(
        "ours: on a machine that is idle most of the time the approaches converge as the "
        "selectivity increases (Figure 15)",
        f"(average_ms(ITA) - min(TPA, NTA)) at selectivity {SELECTIVITIES[-1]} < at "
        f"{SELECTIVITIES[0]} where TPA is busy for {QUIET:.0%} of the time or less",
        _converges,
    ),
    Claim(
        "ours: near saturation response times increase at high selectivities in all approaches "
        "(Figure 15)",
        f"average_ms at selectivity {SELECTIVITIES[-2]} < at {SELECTIVITIES[-1]} for ITA, TPA, NTA "
        f"where the machine is {BUSY[JOIN][-1]} times as slow as would make TPA busy all the time",
        _all_grow(JOIN, (SELECTIVITIES[-2], SELECTIVITIES[-1])),
    ),
)

EXPERIMENT = Experiment(
    "nile-load",
    "Nile",
    "Figures 10, 14 and 15 by load",
    "response times by the share of tuples that pass, and by how busy the machine is",
    measure,
    draw,
    CLAIMS,
    "the streams, queries and windows of Figures 10, 14 and 15, with ten seeds, with --quick "
    "three, with --smoke one; bands are the least and the most of all seeds, values those over the "
    "changes of all seeds, of maxima the mean. Time is counted work, so it is the same in every "
    "run: a tuple that an operator processes costs 1, a stored tuple whose time is compared with "
    "the clock 0.01, about what they cost here. Left: Q1 with other selections on a machine that "
    "takes no time at all. Middle and right: Q5; the machine takes as long for a tuple as makes "
    "TPA work for 1 %, 30 %, 70 %, 95 % and, of Figure 14, 130 % of the time at the heaviest load "
    "of the figure, if it scanned for each expiration: where it is behind, one scan serves several",
)
