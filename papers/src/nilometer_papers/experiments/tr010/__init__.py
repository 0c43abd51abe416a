"""The figures of TR-010: service times of the W-join algorithms."""

from __future__ import annotations

from typing import Final

from nilometer_papers.experiments.experiment import Experiment
from nilometer_papers.experiments.tr010 import (
    figure_7,
    figure_8,
    figure_9a,
    figure_9b,
    figure_9c,
    figure_13,
    figure_14,
    structures,
    turns,
)

EXPERIMENTS: Final[tuple[Experiment, ...]] = (
    figure_7.EXPERIMENT,
    figure_8.EXPERIMENT,
    figure_9a.EXPERIMENT,
    figure_9b.EXPERIMENT,
    figure_9c.EXPERIMENT,
    figure_13.EXPERIMENT,
    figure_14.EXPERIMENT,
    structures.EXPERIMENT,
    turns.EXPERIMENT,
)
