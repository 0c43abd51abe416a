"""The hazardous-material application of the STEAM paper, over simulated boxes."""

from __future__ import annotations

from typing import Final

from nilometer_papers.experiments.experiment import Experiment
from nilometer_papers.experiments.idhm import detection, mining

EXPERIMENTS: Final[tuple[Experiment, ...]] = (detection.EXPERIMENT, mining.EXPERIMENT)
