"""SSDBM, maximum throughput of the nested-loop implementations of BEW-join and FEW-join."""

from __future__ import annotations

from nilometer_papers.experiments.contest import from_registry
from nilometer_papers.experiments.experiment import Experiment, Row, Setting
from nilometer_papers.experiments.throughput import measure_throughput
from nilometer_papers.experiments.throughput_claims import draw_throughput, throughput_claims
from nilometer_papers.experiments.workloads.exponential import SECOND

VALUES_PER_SECOND = 2000
REASONS = (
    "",
    "BEW-join makes three comparisons, two of time and one of value, where FEW-join makes one of "
    "value; counted, that is so for any number of streams",
)


def measure(setting: Setting) -> list[Row]:
    """The largest rates, by the number of streams."""
    seconds = setting.choose(5, 0.25, 0.05)
    values, window = int(VALUES_PER_SECOND * seconds), int(seconds * SECOND)
    return measure_throughput(setting, from_registry("BEW", "FEW"), window, values)


EXPERIMENT = Experiment(
    "ssdbm-throughput-nested-loop",
    "SSDBM",
    "maximum throughput, nested loop",
    "the largest rate that the nested-loop implementations bear",
    measure,
    draw_throughput,
    throughput_claims("FEW", "BEW", REASONS),
    "a window of some seconds and streams of equal rates; the paper's numbers are lost in the "
    "text we have: a window of 5 s, 2-6 streams, 2000 distinct integers for each second of the "
    "window are ours. The window is 0.25 s with --quick (2-4 streams), 0.05 s with --smoke (2, 3)",
)
