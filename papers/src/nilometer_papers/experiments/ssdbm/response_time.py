"""SSDBM, response time of the hash implementations against the total rate of all streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nilometer_papers.algorithms.bew_hash_join import BEWHashJoin
from nilometer_papers.algorithms.few_hash_join import FEWHashJoin
from nilometer_papers.algorithms.stream_tuple import StreamTuple
from nilometer_papers.experiments.columnar import COLUMNAR, RunningColumns
from nilometer_papers.experiments.contest import from_registry
from nilometer_papers.experiments.experiment import Claim, Experiment, Outcome, Row, Setting
from nilometer_papers.experiments.measured import brief, distinct, mean, values
from nilometer_papers.experiments.plots import Axis, Curve, draw_curves, share_legend
from nilometer_papers.experiments.simulated_clock import response_times, response_times_in_batches
from nilometer_papers.experiments.throughput import Load, check_at_first_rate
from nilometer_papers.experiments.workloads.exponential import SECOND

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STREAMS = 4
VALUES_PER_SECOND = 5000
SHARES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 0.9, 1.0, 1.1, 1.2)
"""Rates, as shares of the largest that BEW-join sustains."""
FORWARD, BACKWARD = "FEW_HASH", "BEW_HASH"
NEAR = 0.7
"""The share from which a rate is near the largest."""


class WatchedFEWHashJoin(FEWHashJoin):
    """FEW-join that reports how many tuples of each stream wait for others."""

    def held(self) -> list[int]:
        """The numbers of tuples not yet admitted."""
        return [len(waiting) for waiting in self._waiting]


def measure(setting: Setting) -> list[Row]:
    """Mean response times once windows are full, by the total rate."""
    seconds = setting.choose(60, 0.5, 0.05)
    load = Load(STREAMS, int(seconds * SECOND), int(VALUES_PER_SECOND * seconds))
    check_at_first_rate(load, from_registry(BACKWARD, FORWARD), setting)
    largest = load.largest_rate(BACKWARD, from_registry(BACKWARD), setting)
    shares, least = setting.choose(SHARES, SHARES, SHARES[1::3]), setting.choose(2000, 2000, 500)
    rows: list[Row] = []
    for share in setting.progress.track(shares, "rates"):
        rate = share * largest
        tuples = max(least, int(2 * rate * load.window / SECOND))
        arrivals = load.arrivals(rate, tuples, setting.seed)
        for name, responses in _responses(load, arrivals).items():
            steady = responses[len(responses) // 2 :]
            rows.append(
                {
                    "algorithm": name,
                    "share": share,
                    "per_second": round(rate),
                    "milliseconds": round(sum(steady) / len(steady) / 1000, 4),
                }
            )
    return rows


def _responses(load: Load, arrivals: Sequence[StreamTuple]) -> dict[str, list[float]]:
    nothing, forward = [0] * STREAMS, WatchedFEWHashJoin(load.task)
    return {
        BACKWARD: response_times(BEWHashJoin(load.task), lambda: nothing, arrivals),
        FORWARD: response_times(forward, forward.held, arrivals),
        COLUMNAR: response_times_in_batches(RunningColumns(load.task).feed, arrivals),
    }


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """Over the total rate."""
    figure.set_size_inches(8, 5)
    axes = figure.subplots()
    curves = [
        Curve(
            str(name),
            values(rows, "per_second", algorithm=name),
            values(rows, "milliseconds", algorithm=name),
        )
        for name in distinct(rows, "algorithm")
    ]
    x = Axis("rate of all streams (tuples/s)", log=True)
    draw_curves(axes, curves, x, Axis("mean response time (ms)", log=True), markers=True)
    share_legend(figure, [axes])


def _by_rate(rows: Sequence[Row], name: str) -> dict[float, float]:
    rates = sorted(set(values(rows, "per_second", algorithm=name)))
    return {r: mean(rows, "milliseconds", algorithm=name, per_second=r) for r in rates}


def _faster_at_low_rates(rows: Sequence[Row]) -> Outcome:
    backward, forward = _by_rate(rows, BACKWARD), _by_rate(rows, FORWARD)
    lowest = min(backward)
    figures = (
        f"at {brief(lowest)}/s {BACKWARD} {brief(backward[lowest])} ms, "
        f"{FORWARD} {brief(forward[lowest])} ms"
    )
    return Outcome(backward[lowest] < forward[lowest], figures)


def _forward_gets_faster(rows: Sequence[Row]) -> Outcome:
    forward = _by_rate(rows, FORWARD)
    least = min(forward, key=lambda rate: forward[rate])
    first = min(forward)
    figures = (
        f"from {brief(forward[first])} ms at {brief(first)}/s "
        f"to {brief(forward[least])} ms at {brief(least)}/s"
    )
    return Outcome(forward[least] < forward[first] / 2, figures)


def _cross(rows: Sequence[Row]) -> Outcome:
    backward, forward = _by_rate(rows, BACKWARD), _by_rate(rows, FORWARD)
    beyond = [rate for rate in backward if backward[rate] > forward[rate]]
    shares = {float(row["per_second"]): float(row["share"]) for row in rows}
    if not beyond:
        rate = max(backward)
        figures = f"not up to {brief(rate)}/s, where {BACKWARD} takes {brief(backward[rate])} ms"
        return Outcome(False, f"{figures} and {FORWARD} {brief(forward[rate])} ms")
    rate = beyond[0]
    figures = f"{BACKWARD} {brief(backward[rate])} ms, {FORWARD} {brief(forward[rate])} ms"
    at = f"first at {brief(rate)}/s, {brief(shares[rate])} × the largest rate"
    return Outcome(shares[rate] >= NEAR, f"{at}: {figures}")


def _columnar_is_bounded(rows: Sequence[Row]) -> Outcome:
    columnar, backward = _by_rate(rows, COLUMNAR), _by_rate(rows, BACKWARD)
    rate = max(columnar)
    figures = f"at {brief(rate)}/s columnar {brief(columnar[rate])} ms"
    return Outcome(
        columnar[rate] < backward[rate], f"{figures}, {BACKWARD} {brief(backward[rate])} ms"
    )


CLAIMS = (
    Claim(
        "at low rates BEW-join responds faster: FEW-join holds tuples back",
        f"response({BACKWARD}) < response({FORWARD}) at the lowest rate",
        _faster_at_low_rates,
    ),
    Claim(
        "the response time of FEW-join falls as rates rise",
        f"response({FORWARD}) falls to less than half of that at the lowest rate",
        _forward_gets_faster,
    ),
    Claim(
        "the curves cross near the largest rate that BEW-join bears",
        f"response({BACKWARD}) > response({FORWARD}) at some rate measured, all of which are up to "
        f"1.2 × the largest that {BACKWARD} bears, but at none below {NEAR} × it",
        _cross,
    ),
    Claim(
        "ours: micro-batches respond faster than BEW-join where it can bear no more",
        f"response(columnar) < response({BACKWARD}) at the highest rate",
        _columnar_is_bounded,
    ),
)

EXPERIMENT = Experiment(
    "ssdbm-response-time",
    "SSDBM",
    "response time",
    "response time of the hash implementations against the total rate",
    measure,
    draw,
    CLAIMS,
    "a 4-way join, a window of 1 minute; rates are shares of the largest that BEW-join bears, "
    "5000 distinct integers for each second of the window (ours: the paper's numbers are lost in "
    "the text we have). Arrivals come at their times on a simulated clock, service takes the CPU "
    "time measured; the engine takes what has come whenever it is free. The window is 0.5 s with "
    "--quick, 0.05 s with --smoke",
)
