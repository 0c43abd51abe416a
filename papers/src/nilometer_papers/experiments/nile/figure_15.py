"""Nile Figure 15: response times of Q5 against the selectivity of its W-join."""

from __future__ import annotations

from nilometer_papers.experiments.experiment import Experiment, Row, Setting
from nilometer_papers.experiments.nile.figure_10 import PER_SECOND
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
    CPU,
    SCANS_COST,
    batches_wait,
    converges,
    expirations_come_sooner,
    grows,
    scans_cost,
    times_faster,
)
from nilometer_papers.experiments.nile.response_figure import curves_by

SELECTIVITIES = (0.1, 0.2, 0.4, 0.8)


def measure(setting: Setting) -> list[Row]:
    """Response times, by join selectivity."""
    windows = Lengths.of(setting).two_windows
    slowed = slowed_to(setting, q5(windows, PER_SECOND, SELECTIVITIES[-1]), PER_SECOND)
    rows: list[Row] = []
    for selectivity in setting.progress.track(SELECTIVITIES, "selectivities"):
        query = q5(windows, PER_SECOND, selectivity)
        rows += measure_synthetic(setting, query, PER_SECOND, slowed, selectivity=selectivity)
    return rows


CLAIMS = (
    times_faster(
        "NTA",
        "TPA",
        BETTER,
        "selectivity",
        SELECTIVITIES,
        text="NTA has the best performance, followed by TPA",
    ),
    times_faster("TPA", "ITA", BETTER, "selectivity", SELECTIVITIES, text="TPA is followed by ITA"),
    converges(
        "selectivity",
        SELECTIVITIES[0],
        SELECTIVITIES[-1],
        text="the approaches converge as the selectivity increases",
    ),
    scans_cost("selectivity", SELECTIVITIES).repeats(f"nile-figure-10: {SCANS_COST}"),
    grows(
        ALL,
        AVERAGE,
        "selectivity",
        SELECTIVITIES[-2:],
        text="at high selectivities response times increase in all approaches",
        reason="TPA's do, by its scans; what ITA waits for, the next result of the join, comes "
        "sooner, and NTA is idle nearly all the time (see cpu_us)",
    ),
    grows(
        ("TPA",),
        CPU,
        "selectivity",
        (SELECTIVITIES[0], SELECTIVITIES[-1]),
        text="ours: under TPA processing takes more CPU time at high selectivities: there is more "
        "to scan",
    ),
    expirations_come_sooner("NTA", "TPA", BETTER, "selectivity", SELECTIVITIES),
    expirations_come_sooner("TPA", "ITA", BETTER, "selectivity", SELECTIVITIES),
    batches_wait("selectivity", SELECTIVITIES),
)

EXPERIMENT = Experiment(
    "nile-figure-15",
    "Nile",
    "Figure 15",
    "response times of Q5 (MAX, two windows) by join selectivity",
    measure,
    curves_by("selectivity", "join selectivity (partners per tuple)"),
    CLAIMS,
    f"{PER_SECOND} tuples a second of each stream, W-join 0.1 to 0.8; {PARAMETERS}",
)
