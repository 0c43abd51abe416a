"""The STEAM paper: the figure that measures joins, and what its sections claim."""

from __future__ import annotations

from typing import Final

from nilometer_papers.experiments.experiment import Experiment
from nilometer_papers.experiments.steam import figure_7, self_scheduling, stream_manager

EXPERIMENTS: Final[tuple[Experiment, ...]] = (
    figure_7.EXPERIMENT,
    self_scheduling.EXPERIMENT,
    stream_manager.EXPERIMENT,
)
