"""The figures of the SSDBM paper: BEW-join against FEW-join."""

from __future__ import annotations

from typing import Final

from nilometer_papers.experiments.experiment import Experiment
from nilometer_papers.experiments.ssdbm import (
    partners,
    response_time,
    throughput_hash,
    throughput_nested_loop,
    transactions,
)

EXPERIMENTS: Final[tuple[Experiment, ...]] = (
    throughput_hash.EXPERIMENT,
    throughput_nested_loop.EXPERIMENT,
    response_time.EXPERIMENT,
    transactions.EXPERIMENT,
    partners.EXPERIMENT,
)
