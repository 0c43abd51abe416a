"""Nile Figure 16: CPU time of Q5 against the tuples produced, at a high input rate."""

from __future__ import annotations

from nilometer_papers.experiments.experiment import Experiment, Row, Setting
from nilometer_papers.experiments.nile.production import (
    PARAMETERS,
    PER_SECOND,
    alike,
    batching_gains,
    draw_production,
    faster,
    measure_production,
    rises_slower,
)
from nilometer_papers.experiments.nile.queries import q5
from nilometer_papers.experiments.workloads.exponential import SECOND


def measure(setting: Setting) -> list[Row]:
    """CPU time and tuples produced."""
    window = setting.choose(20, 10, 1) * SECOND
    tuples = setting.choose(250_000, 120_000, 10_000)
    return measure_production(setting, q5((window, window // 2), PER_SECOND), tuples)


CLAIMS = (
    faster("NTA", "ITA", text="NTA has the best throughput, before ITA"),
    faster("NTA", "TPA", text="NTA has the best throughput, before TPA"),
    rises_slower(
        "NTA",
        "ITA",
        "TPA",
        text="times rise much more slowly under NTA",
        reason="the buffer that ITA and TPA scan is as long as the windows: with the short ones "
        "of --quick the scan is about half of the cost; with 20 s and 10 s NTA took 3.4 s where "
        "TPA took 12.0 (measured once)",
    ),
    alike("ITA", "TPA", text="TPA and ITA have the same performance: there is no probing"),
    batching_gains(),
)

EXPERIMENT = Experiment(
    "nile-figure-16",
    "Nile",
    "Figure 16",
    "throughput of Q5 (MAX, two windows)",
    measure,
    draw_production,
    CLAIMS,
    f"{PARAMETERS}; W-join 0.1. The windows are ours: 20 s and 10 s, with --quick 10 s and "
    "5 s, with --smoke 1 s and 0.5 s",
)
