"""Nile Figure 11: response times of Q3 against the input rate."""

from __future__ import annotations

from nilometer_papers.experiments.experiment import Experiment, Row, Setting
from nilometer_papers.experiments.nile.loads import (
    PARAMETERS,
    Lengths,
    measure_synthetic,
    slowed_to,
)
from nilometer_papers.experiments.nile.queries import q3
from nilometer_papers.experiments.nile.response_claims import (
    BETTER,
    batches_wait,
    converges,
    expirations_come_sooner,
    times_faster,
)
from nilometer_papers.experiments.nile.response_figure import curves_by

RATES = (5, 10, 20, 40)

BUSY_ONLY = (
    "an arrival or an expiration is told at once while the machine is idle, and then the tuples "
    "that NTA processes in addition delay nobody. It holds where the machine is busy: at the "
    "highest rates"
)


def measure(setting: Setting) -> list[Row]:
    """Response times, by tuples a second."""
    query = q3(Lengths.of(setting).window)
    slowed = slowed_to(setting, query, RATES[-1])
    rows: list[Row] = []
    for rate in setting.progress.track(RATES, "rates"):
        rows += measure_synthetic(setting, query, rate, slowed, rate=rate)
    return rows


CLAIMS = (
    times_faster(
        "TPA",
        "NTA",
        BETTER,
        "rate",
        RATES,
        text="TPA has the best performance, followed by NTA",
        reason=BUSY_ONLY,
    ),
    times_faster(
        "NTA", "ITA", BETTER, "rate", RATES, text="NTA is followed by ITA, also at high rates"
    ),
    converges("rate", RATES[0], RATES[-1], text="the approaches converge as rates increase"),
    expirations_come_sooner("NTA", "ITA", BETTER, "rate", RATES),
    batches_wait("rate", RATES),
)

EXPERIMENT = Experiment(
    "nile-figure-11",
    "Nile",
    "Figure 11",
    "response times of Q3 (GROUP BY) by input rate",
    measure,
    curves_by("rate", "tuples per second"),
    CLAIMS,
    f"5 to 40 tuples a second; join with favourites 0.1; {PARAMETERS}",
)
