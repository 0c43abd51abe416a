"""TR-010 Figure 7: the adapted ripple join, NLW-join and MW-join on 2, 3 and 4 stores."""

from __future__ import annotations

from functools import partial

from nilometer_papers.algorithms.ripple_join import RippleJoin
from nilometer_papers.experiments.contest import Starts, from_registry
from nilometer_papers.experiments.experiment import Experiment, Row, Setting
from nilometer_papers.experiments.ratio_claims import (
    NO_BUILD_UP,
    batching_gains,
    does_not_build_up,
    times_slower,
)
from nilometer_papers.experiments.service_figure import draw_service_curves
from nilometer_papers.experiments.store_joins import PARAMETERS, measure_stores


def measure(setting: Setting) -> list[Row]:
    """Service times over the tuples processed."""
    return measure_stores(setting, _starts)


def _starts(cleanup: int) -> Starts:
    ripple = {"RIPPLE": partial(RippleJoin, cleanup=cleanup)}
    return {**ripple, **from_registry("NLW", "MW")}


CLAIMS = (
    times_slower(
        "RIPPLE",
        "NLW",
        least=1,
        by="streams",
        text="NLW-join outperforms the ripple join in all cases",
    ),
    times_slower(
        "RIPPLE",
        "MW",
        least=1,
        by="streams",
        text="MW-join outperforms the ripple join in all cases",
    ),
    times_slower(
        "NLW",
        "MW",
        least=5,
        by="streams",
        text="MW-join is almost an order of magnitude faster than NLW-join",
        reason="for a tuple that it visits NLW-join tests the time twice and then the value, "
        "MW-join the value only: three times the comparisons with two streams. With more, tuples "
        "of later streams meet in NLW-join's pipeline only the few combinations that joined so "
        "far. Mode 1 skips nothing: all tuples are admitted and joined (counted)",
    ),
    does_not_build_up(
        "NLW",
        "MW",
        by="streams",
        text=NO_BUILD_UP,
    ),
    batching_gains("NLW", "MW", "RIPPLE", by="streams"),
)

EXPERIMENT = Experiment(
    "tr010-figure-7",
    "TR-010",
    "Figure 7",
    "ripple join, NLW-join and MW-join on sales of 2, 3 and 4 stores",
    measure,
    partial(draw_service_curves, by="streams"),
    CLAIMS,
    PARAMETERS,
)
