"""TR-010 Figure 9(c): how NLW-join, MW-join and HW-join react to a stream that is slow at times."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from nilometer.algorithms.join_task import JoinTask
from nilometer.experiments.contest import contest, curve_rows, from_registry
from nilometer.experiments.experiment import Claim, Experiment, Outcome, Row, Setting
from nilometer.experiments.measured import brief, mean
from nilometer.experiments.ratio_claims import TIME, batching_gains
from nilometer.experiments.service_figure import draw_service_curves
from nilometer.experiments.workloads.exponential import SECOND, Rate, exponential_streams

LIKE, CHANGING = "all 1000/s", "D 10/s or 1000/s"
VALUES = 1000


def slow_or_fast(number: int) -> float:
    """The rate of a stream that changes with every hundred of its tuples."""
    return 10 if number // 100 % 2 == 0 else 1000


def measure(setting: Setting) -> list[Row]:
    """Service times over the tuples processed, at like rates and with a changing stream."""
    tuples = setting.choose(120_000, 24_000, 3_000)
    task, fast = JoinTask.uniform(4, SECOND), Rate(1000, VALUES)
    rows: list[Row] = []
    for rates, last in ((LIKE, fast), (CHANGING, Rate(slow_or_fast, VALUES))):
        arrivals = exponential_streams([fast, fast, fast, last], tuples, setting.seed)
        starts = from_registry("NLW", "HW", "MW")
        rows += curve_rows(contest(setting, rates, task, arrivals, starts), rates=rates)
    return rows


def _gain(rows: Sequence[Row], name: str) -> float:
    like, changing = (mean(rows, TIME, algorithm=name, rates=one) for one in (LIKE, CHANGING))
    return like / changing


def _reacts(rows: Sequence[Row]) -> Outcome:
    gain = _gain(rows, "MW")
    return Outcome(gain >= 3, f"MW: {brief(gain)} times as fast with the changing stream")


def _stay(rows: Sequence[Row]) -> Outcome:
    gains = {name: _gain(rows, name) for name in ("NLW", "HW")}
    told = "; ".join(
        f"{name}: {brief(gain)} times as fast with the changing stream"
        for name, gain in gains.items()
    )
    return Outcome(all(0.5 <= gain <= 2 for gain in gains.values()), told)


CLAIMS = (
    Claim(
        "MW-join improves greatly as soon as a stream gets slow",
        f"time(MW, {LIKE}) ≥ 3 × time(MW, {CHANGING})",
        _reacts,
    ),
    Claim(
        "NLW-join and HW-join do not change significantly",
        f"1/2 ≤ time({LIKE}) / time({CHANGING}) ≤ 2 for NLW and HW",
        _stay,
    ),
    batching_gains("NLW", "HW", "MW", by="rates"),
)

EXPERIMENT = Experiment(
    "tr010-figure-9c",
    "TR-010",
    "Figure 9(c)",
    "four streams, one of which changes its rate",
    measure,
    partial(draw_service_curves, by="rates"),
    CLAIMS,
    "four streams of 1000 tuples a second; the last changes between 10 and 1000 with every 100 "
    "of its tuples (TR-010 section 4.3); the window (1 s) and the integers (1000 distinct) are "
    "ours",
)
