"""The experiments of Nile (Hammad et al., Efficient Pipelined Execution), Figures 10 to 16."""

from __future__ import annotations

from typing import Final

from nilometer_papers.experiments.experiment import Experiment
from nilometer_papers.experiments.nile import (
    equation_1,
    figure_10,
    figure_11,
    figure_12,
    figure_13,
    figure_14,
    figure_15,
    figure_16,
    load,
)

EXPERIMENTS: Final[tuple[Experiment, ...]] = (
    equation_1.EXPERIMENT,
    figure_10.EXPERIMENT,
    figure_11.EXPERIMENT,
    figure_12.EXPERIMENT,
    figure_13.EXPERIMENT,
    figure_14.EXPERIMENT,
    figure_15.EXPERIMENT,
    figure_16.EXPERIMENT,
    load.EXPERIMENT,
)
