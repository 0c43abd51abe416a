"""All experiments, in the order of the papers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nilometer_papers.experiments import captures, golab, idhm, nile, ssdbm, steam, tr010
from nilometer_papers.experiments.experiment import Experiment

EXPERIMENTS: Final[tuple[Experiment, ...]] = (
    *ssdbm.EXPERIMENTS,
    *tr010.EXPERIMENTS,
    *steam.EXPERIMENTS,
    *golab.EXPERIMENTS,
    *nile.EXPERIMENTS,
    *captures.EXPERIMENTS,
    *idhm.EXPERIMENTS,
)

BY_NAME: Final[Mapping[str, Experiment]] = {one.name: one for one in EXPERIMENTS}
