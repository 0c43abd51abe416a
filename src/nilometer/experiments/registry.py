"""All experiments, in the order of the papers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nilometer.experiments.experiment import Experiment

EXPERIMENTS: Final[tuple[Experiment, ...]] = ()

BY_NAME: Final[Mapping[str, Experiment]] = {one.name: one for one in EXPERIMENTS}
