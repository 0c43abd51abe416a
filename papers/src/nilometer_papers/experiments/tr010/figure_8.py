"""TR-010 Figure 8: the adapted XJoin and HW-join on 2, 3 and 4 stores."""

from __future__ import annotations

from functools import partial

from nilometer_papers.algorithms.xjoin import XJoin
from nilometer_papers.experiments.contest import Starts, from_registry
from nilometer_papers.experiments.experiment import Experiment, Row, Setting
from nilometer_papers.experiments.ratio_claims import (
    NO_BUILD_UP,
    batching_gains,
    does_not_build_up,
    times_slower,
)
from nilometer_papers.experiments.service_figure import draw_service_curves
from nilometer_papers.experiments.store_joins import PARAMETERS, SHORT_BUCKETS, measure_stores


def measure(setting: Setting) -> list[Row]:
    """Service times over the tuples processed."""
    return measure_stores(setting, _starts)


def _starts(cleanup: int) -> Starts:
    return {"XJOIN": partial(XJoin, cleanup=cleanup), **from_registry("HW")}


CLAIMS = (
    times_slower(
        "XJOIN",
        "HW",
        least=1,
        by="streams",
        text="HW-join outperforms XJoin in all cases",
        reason=SHORT_BUCKETS,
    ),
    does_not_build_up(
        "HW",
        by="streams",
        text=NO_BUILD_UP,
    ).repeats(f"tr010-figure-7: {NO_BUILD_UP}"),
    batching_gains("HW", "XJOIN", by="streams"),
)

EXPERIMENT = Experiment(
    "tr010-figure-8",
    "TR-010",
    "Figure 8",
    "XJoin and HW-join on sales of 2, 3 and 4 stores",
    measure,
    partial(draw_service_curves, by="streams"),
    CLAIMS,
    PARAMETERS,
)
