"""Nile Figure 14: response times of Q5 against the input rate."""

from __future__ import annotations

from nilometer_papers.experiments.experiment import Experiment, Row, Setting
from nilometer_papers.experiments.nile.loads import (
    PARAMETERS,
    Lengths,
    measure_synthetic,
    slowed_to,
)
from nilometer_papers.experiments.nile.queries import q5
from nilometer_papers.experiments.nile.response_claims import (
    ALL,
    AVERAGE,
    BETTER,
    MAXIMUM,
    SCANS_COST,
    batches_wait,
    expirations_come_sooner,
    grows,
    same,
    scans_cost,
    times_faster,
)
from nilometer_papers.experiments.nile.response_figure import curves_by

RATES = (10, 20, 30, 40)
SELECTIVITY = 0.2


def measure(setting: Setting) -> list[Row]:
    """Response times, by tuples a second of each stream."""
    windows = Lengths.of(setting).two_windows
    slowed = slowed_to(setting, q5(windows, RATES[-1], SELECTIVITY), RATES[-1])
    rows: list[Row] = []
    for rate in setting.progress.track(RATES, "rates"):
        query = q5(windows, rate, SELECTIVITY)
        rows += measure_synthetic(setting, query, rate, slowed, rate=rate)
    return rows


CLAIMS = (
    times_faster(
        "NTA",
        "TPA",
        BETTER,
        "rate",
        RATES,
        text="NTA has the best average, followed by TPA",
    ),
    times_faster("TPA", "ITA", BETTER, "rate", RATES, text="TPA is followed by ITA"),
    same(
        "NTA",
        "TPA",
        "rate",
        RATES,
        text="NTA and TPA have almost the same maximum",
        column=MAXIMUM,
        reason="the longest wait is that behind scans of the buffer, which NTA has not",
    ),
    times_faster(
        "NTA", "ITA", BETTER, "rate", RATES, text="ITA has the largest maximum", column=MAXIMUM
    ),
    scans_cost("rate", RATES).repeats(f"nile-figure-10: {SCANS_COST}"),
    grows(
        ALL,
        AVERAGE,
        "rate",
        (RATES[0], RATES[-1]),
        text="at high rates response times increase in all approaches",
        reason="TPA's do, by its scans; ITA waits for the next result of the join, which comes "
        "sooner at higher rates, and NTA is nearly always idle (see cpu_us)",
    ),
    expirations_come_sooner("NTA", "TPA", BETTER, "rate", RATES),
    expirations_come_sooner("TPA", "ITA", BETTER, "rate", RATES),
    batches_wait("rate", RATES),
)

EXPERIMENT = Experiment(
    "nile-figure-14",
    "Nile",
    "Figure 14 (a) and (b)",
    "response times of Q5 (MAX, two windows) by input rate",
    measure,
    curves_by("rate", "tuples per second of each stream"),
    CLAIMS,
    f"10 to 40 tuples a second of each stream, W-join 0.2; {PARAMETERS}",
)
