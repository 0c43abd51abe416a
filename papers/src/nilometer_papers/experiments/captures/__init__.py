"""The join algorithms on real captures: not a figure of the papers."""

from __future__ import annotations

from typing import Final

from nilometer_papers.experiments.captures import joins
from nilometer_papers.experiments.experiment import Experiment

EXPERIMENTS: Final[tuple[Experiment, ...]] = (joins.EXPERIMENT,)
