"""SSDBM, maximum throughput of the hash implementations of BEW-join and FEW-join."""

from __future__ import annotations

from nilometer_papers.experiments.contest import from_registry
from nilometer_papers.experiments.experiment import Experiment, Row, Setting
from nilometer_papers.experiments.throughput import measure_throughput
from nilometer_papers.experiments.throughput_claims import draw_throughput, throughput_claims
from nilometer_papers.experiments.workloads.exponential import SECOND

VALUES_PER_SECOND = 5000
REASONS = (
    "with two streams both probe one bucket a tuple; FEW-join saves only tests of time (6 "
    "against 20 at the largest rate)",
    "BEW-join probes a bucket again for every combination so far, FEW-join each bucket once: at "
    "the largest rates of BEW-join 1, 3.7 and 5.3 probes a tuple against 1, 1.9 and 2.3 for 2, 3 "
    "and 4 streams, so what FEW-join saves grows with the streams",
)


def measure(setting: Setting) -> list[Row]:
    """The largest rates, by the number of streams."""
    seconds = setting.choose(60, 0.2, 0.05)
    values, window = int(VALUES_PER_SECOND * seconds), int(seconds * SECOND)
    return measure_throughput(setting, from_registry("BEW_HASH", "FEW_HASH"), window, values)


EXPERIMENT = Experiment(
    "ssdbm-throughput-hash",
    "SSDBM",
    "maximum throughput, hash",
    "the largest rate that the hash implementations bear",
    measure,
    draw_throughput,
    throughput_claims("FEW_HASH", "BEW_HASH", REASONS),
    "a window of 1 minute and streams of equal rates; the paper's numbers are lost in the text we "
    "have: 2-6 streams, 5000 distinct integers for each second of the window are ours. "
    "The window is 0.2 s with --quick (2-4 streams), 0.05 s with --smoke (2 and 3)",
)
