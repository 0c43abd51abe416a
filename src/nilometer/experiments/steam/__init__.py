"""The figure of the STEAM paper that measures joins."""

from __future__ import annotations

from typing import Final

from nilometer.experiments.experiment import Experiment
from nilometer.experiments.steam import figure_7

EXPERIMENTS: Final[tuple[Experiment, ...]] = (figure_7.EXPERIMENT,)
