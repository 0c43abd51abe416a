"""All experiments, in the order of the papers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nilometer.experiments.experiment import Experiment
from nilometer.experiments.steam import figure_7 as steam_figure_7
from nilometer.experiments.tr010 import (
    figure_7,
    figure_8,
    figure_9a,
    figure_9b,
    figure_9c,
    figure_13,
    figure_14,
)

EXPERIMENTS: Final[tuple[Experiment, ...]] = (
    figure_7.EXPERIMENT,
    figure_8.EXPERIMENT,
    figure_9a.EXPERIMENT,
    figure_9b.EXPERIMENT,
    figure_9c.EXPERIMENT,
    figure_13.EXPERIMENT,
    figure_14.EXPERIMENT,
    steam_figure_7.EXPERIMENT,
)

BY_NAME: Final[Mapping[str, Experiment]] = {one.name: one for one in EXPERIMENTS}
