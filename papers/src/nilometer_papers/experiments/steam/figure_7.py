"""STEAM Figure 7: W-joins against the adapted ripple join and XJoin on 2, 3 and 4 stores."""

from __future__ import annotations

from functools import partial

from nilometer_papers.algorithms.ripple_join import RippleJoin
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
    """Service times over the tuples processed, nested loops and hash tables together."""
    return measure_stores(setting, _starts)


def _starts(cleanup: int) -> Starts:
    adapted: Starts = {
        "RIPPLE": partial(RippleJoin, cleanup=cleanup),
        "XJOIN": partial(XJoin, cleanup=cleanup),
    }
    return {**adapted, **from_registry("NLW", "HW")}


CLAIMS = (
    times_slower(
        "RIPPLE",
        "NLW",
        least=1,
        by="streams",
        text="(a) the W-join outperforms the ripple join in all cases",
    ).repeats("tr010-figure-7: NLW-join outperforms the ripple join in all cases"),
    times_slower(
        "XJOIN",
        "HW",
        least=1,
        by="streams",
        text="(b) the W-join outperforms XJoin in all cases",
        reason=SHORT_BUCKETS,
    ).repeats("tr010-figure-8: HW-join outperforms XJoin in all cases"),
    does_not_build_up(
        "NLW",
        "HW",
        by="streams",
        text=NO_BUILD_UP,
    ).repeats(f"tr010-figure-7: {NO_BUILD_UP}"),
    batching_gains("NLW", "HW", "RIPPLE", "XJOIN", by="streams"),
)

EXPERIMENT = Experiment(
    "steam-figure-7",
    "STEAM",
    "Figure 7",
    "W-joins against ripple join and XJoin on sales of 2, 3 and 4 stores",
    measure,
    partial(draw_service_curves, by="streams"),
    CLAIMS,
    PARAMETERS,
)
