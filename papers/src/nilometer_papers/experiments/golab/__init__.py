"""The tables and figures of Golab and Özsu, "Processing Sliding Window Multi-Joins" (VLDB 2003)."""

from __future__ import annotations

from typing import Final

from nilometer_papers.experiments.experiment import Experiment
from nilometer_papers.experiments.golab import (
    figure_2,
    figure_3,
    figure_4a,
    figure_4b,
    looks,
    order_tables,
    section_5,
    table_8,
)

EXPERIMENTS: Final[tuple[Experiment, ...]] = (
    figure_2.EXPERIMENT,
    *figure_3.EXPERIMENTS,
    *order_tables.EXPERIMENTS,
    table_8.EXPERIMENT,
    figure_4a.EXPERIMENT,
    figure_4b.EXPERIMENT,
    looks.EXPERIMENT,
    section_5.EXPERIMENT,
)
