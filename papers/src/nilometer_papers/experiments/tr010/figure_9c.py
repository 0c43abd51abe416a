"""TR-010 Figure 9(c): how NLW-join, MW-join and HW-join react to a stream that is slow at times."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.experiments.contest import contest, curve_rows, from_registry
from nilometer_papers.experiments.experiment import Claim, Experiment, Outcome, Row, Setting
from nilometer_papers.experiments.measured import brief, mean
from nilometer_papers.experiments.ratio_claims import TIME, batching_gains
from nilometer_papers.experiments.service_figure import draw_service_curves
from nilometer_papers.experiments.workloads.exponential import SECOND, Rate, exponential_streams

LIKE, CHANGING = "all 1000/s", "D 10/s or 1000/s"
SHORT, LONG = "0.05 s", "1 s"
WINDOWS = {SHORT: SECOND // 20, LONG: SECOND}
VALUES_PER_SECOND = 1000
_REACTS = "MW-join improves greatly as soon as a stream gets slow (window {})"
_STAY = "NLW-join and HW-join do not change significantly (window {})"


def slow_or_fast(number: int) -> float:
    """The rate of a stream that changes with every hundred of its tuples."""
    return 10 if number // 100 % 2 == 0 else 1000


def measure(setting: Setting) -> list[Row]:
    """Service times over the tuples processed, at equal rates and with a changing stream."""
    rows: list[Row] = []
    for window, length in setting.progress.track(list(WINDOWS.items()), "windows"):
        values = VALUES_PER_SECOND * length // SECOND
        fast, changing = Rate(1000, values), Rate(slow_or_fast, values)
        tuples = setting.choose(120_000, 30_000 if window == SHORT else 8_000, 2_000)
        for rates, last in ((LIKE, fast), (CHANGING, changing)):
            arrivals = exponential_streams([fast, fast, fast, last], tuples, setting.seed)
            task, title = JoinTask.uniform(4, length), f"{window}, {rates}"
            starts = from_registry("NLW", "HW", "MW")
            services = contest(setting, title, task, arrivals, starts)
            rows += curve_rows(services, case=title, window=window, rates=rates)
    return rows


def _gain(rows: Sequence[Row], name: str, window: str, column: str = TIME) -> float:
    """How many times as fast it is with the changing stream, or how many fewer comparisons."""
    like, changing = (
        mean(rows, column, algorithm=name, rates=one, window=window) for one in (LIKE, CHANGING)
    )
    return like / changing


def _figures(rows: Sequence[Row], name: str, window: str) -> str:
    fewer = _gain(rows, name, window, "comparisons")
    fast = brief(_gain(rows, name, window))
    return f"{name}: {fast} times as fast with the changing stream, comparisons {brief(fewer)}"


def _reacts(window: str, reason: str = "") -> Claim:
    def check(rows: Sequence[Row]) -> Outcome:
        return Outcome(_gain(rows, "MW", window) >= 3, _figures(rows, "MW", window))

    inequality = f"time(MW, {LIKE}) ≥ 3 × time(MW, {CHANGING})"
    return Claim(_REACTS.format(window), inequality, check, reason)


def _stay(window: str, reason: str = "") -> Claim:
    def check(rows: Sequence[Row]) -> Outcome:
        gains = [_gain(rows, name, window) for name in ("NLW", "HW")]
        figures = "; ".join(_figures(rows, name, window) for name in ("NLW", "HW"))
        return Outcome(all(0.5 <= gain <= 2 for gain in gains), figures)

    inequality = f"1/2 ≤ time({LIKE}) / time({CHANGING}) ≤ 2 for NLW and HW"
    return Claim(_STAY.format(window), inequality, check, reason)


CLAIMS = (
    _reacts(SHORT).repeats(f"tr010-figure-9c: {_REACTS.format(LONG)}"),
    _stay(SHORT).repeats(f"tr010-figure-9c: {_STAY.format(LONG)}"),
    _reacts(
        LONG,
        "Mode 1 skips little: a second holds some tuples of the slow stream, too, and 97 % of all "
        "tuples are admitted and joined (counted; 53 % with the window of 0.05 s)",
    ),
    _stay(LONG, "with fewer tuples of a stream in the window nested loops have less to do"),
    batching_gains("NLW", "HW", "MW", by="case"),
)

EXPERIMENT = Experiment(
    "tr010-figure-9c",
    "TR-010",
    "Figure 9(c)",
    "four streams, one of which changes its rate",
    measure,
    partial(draw_service_curves, by="case"),
    CLAIMS,
    "four streams of 1000 tuples a second; the last changes between 10 and 1000 with every 100 "
    "of its tuples (TR-010 section 4.3). The paper does not tell the window; as it finds MW-join "
    "mostly in Mode 1, it must be shorter than the 0.1 s between tuples of the slow stream: here "
    "0.05 s. The first choice, 1 s, is shown, too. 1000 distinct integers for each second of the "
    "window are ours. 120 000 tuples; with --quick 30 000 (window of 0.05 s), in which the last "
    "stream changes twice, and 8000 (1 s), in which it stays slow, as with --smoke: 2000",
)
