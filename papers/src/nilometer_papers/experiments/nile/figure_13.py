"""Nile Figure 13: CPU time of Q4 against the tuples produced, at a high input rate."""

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
)
from nilometer_papers.experiments.nile.queries import q4
from nilometer_papers.experiments.workloads.exponential import SECOND


def measure(setting: Setting) -> list[Row]:
    """CPU time and tuples produced."""
    window = setting.choose(20, 10, 1) * SECOND
    tuples = setting.choose(250_000, 120_000, 10_000)
    return measure_production(setting, q4(window, PER_SECOND), tuples)


CLAIMS = (
    alike("ITA", "TPA", text="ITA and TPA take comparable times"),
    faster("ITA", "NTA", text="NTA takes longer than ITA"),
    faster("TPA", "NTA", text="NTA takes longer than TPA"),
    batching_gains(),
)

EXPERIMENT = Experiment(
    "nile-figure-13",
    "Nile",
    "Figure 13",
    "throughput of Q4 (W-join, one window)",
    measure,
    draw_production,
    CLAIMS,
    f"{PARAMETERS}; selections 0.25, W-join 0.6. The window is ours: 20 s, with --quick 10 s, "
    "with --smoke 1 s. It matters how often it slides: with windows of 5 to 60 s and streams of at "
    "least two windows NTA took 1.2 to 1.4 times ITA's time, but with streams of one window, in "
    "which nothing expires, the same as ITA",
)
