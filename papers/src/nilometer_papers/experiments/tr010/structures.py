"""TR-010 Figures 7 and 8 again, with the paper's structures: IsOut, and fixed bucket counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from nilometer_papers.algorithms.hw_join import HWJoin
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.xjoin import XJoin
from nilometer_papers.experiments.contest import Starts, contest, from_registry, steady_rows
from nilometer_papers.experiments.experiment import Claim, Experiment, Outcome, Row, Setting
from nilometer_papers.experiments.measured import brief, mean, select
from nilometer_papers.experiments.plots import Axis, Curve, colour_of, draw_curves, share_legend
from nilometer_papers.experiments.ratio_claims import batching_gains
from nilometer_papers.experiments.workloads.transactions import HOUR, Stores, transactions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOOPS: Final = "nested loops"
SKEWS: Final = (0.5, 1.0)
BUCKETS: Final = (16, 64, 256, 1024, 4096)
_ORDER: Final = 8
"""The factor that counts as almost an order of magnitude."""


def measure(setting: Setting) -> list[Row]:
    """Service with nested loops, then with hash tables by the number of buckets and the skew."""
    tuples, share = setting.choose(60_000, 8_000, 1_500), setting.choose(1, 8, 30)
    cleanup = 10_000 // share
    rows = _rows(setting, LOOPS, 0.5, 0, from_registry("NLW", "NLW_PULLED", "MW"), tuples, share)
    cases = [(skew, buckets) for skew in SKEWS for buckets in BUCKETS]
    for skew, buckets in setting.progress.track(cases, "skew and buckets"):
        starts: Starts = {
            "XJOIN": partial(XJoin, cleanup=cleanup, buckets=buckets),
            "HW": partial(HWJoin, buckets=buckets),
        }
        rows += _rows(setting, f"skew {skew:g}", skew, buckets, starts, tuples, share)
    return rows


def _rows(
    setting: Setting,
    case: str,
    skew: float,
    buckets: int,
    starts: Starts,
    tuples: int,
    share: int,
) -> list[Row]:
    stores = Stores(3, 5000 / share, skew=skew)
    arrivals = transactions(stores, tuples, setting.seed)
    services = contest(setting, case, JoinTask.uniform(3, HOUR), arrivals, starts)
    return steady_rows(services, case=case, buckets=buckets)


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """On the left the nested loops, on the right XJoin's time as a multiple of HW-join's."""
    left, right = figure.subplots(1, 2)
    loops = select(rows, case=LOOPS)
    names = [str(row["algorithm"]) for row in loops]
    times = [float(row["microseconds"]) for row in loops]
    left.barh(names, times, color=[colour_of(one) for one in names])
    left.invert_yaxis()
    left.set_xlabel("service time per tuple (µs)")
    left.set_title("nested loops, 3 stores", fontsize=10)
    curves = []
    for column, style in (("microseconds", "-"), ("comparisons", "--")):
        for skew in SKEWS:
            rated = [_ratio(rows, f"skew {skew:g}", buckets, column) for buckets in BUCKETS]
            label = f"{'time' if style == '-' else 'comparisons'}, skew {skew:g}"
            curves.append(Curve(label, BUCKETS, rated, style))
    draw_curves(
        right,
        curves,
        Axis("buckets of a hash table", log=True),
        Axis("XJoin / HW-join"),
        "above 1 HW-join is better",
        markers=True,
    )
    right.axhline(1, color="black", linewidth=0.8)
    share_legend(figure, [right])


def _ratio(rows: Sequence[Row], case: str, buckets: int, column: str) -> float:
    one, other = (
        mean(rows, column, case=case, buckets=buckets, algorithm=name) for name in ("XJOIN", "HW")
    )
    return one / other


def _order_of_magnitude(slow: str) -> Callable[[Sequence[Row]], Outcome]:
    def check(rows: Sequence[Row]) -> Outcome:
        figures = [
            f"{column} {brief(_loop(rows, slow, column))} / {brief(_loop(rows, 'MW', column))}"
            for column in ("microseconds", "comparisons")
        ]
        times = _loop(rows, slow, "microseconds") / _loop(rows, "MW", "microseconds")
        return Outcome(times >= _ORDER, f"{'; '.join(figures)}: {brief(times)} times")

    return check


def _loop(rows: Sequence[Row], algorithm: str, column: str) -> float:
    return mean(rows, column, case=LOOPS, algorithm=algorithm)


def _outperforms(skew: float) -> Callable[[Sequence[Row]], Outcome]:
    def check(rows: Sequence[Row]) -> Outcome:
        case = f"skew {skew:g}"
        ratios = {one: _ratio(rows, case, one, "microseconds") for one in BUCKETS}
        figures = "; ".join(f"{one} buckets: {brief(ratio)} times" for one, ratio in ratios.items())
        return Outcome(all(ratio > 1 for ratio in ratios.values()), figures)

    return check


_REGION: Final = (
    "by comparisons it holds as long as buckets are long: where most hold a tuple or none, there "
    "is nothing to save by keeping them short, and HW-join looks for old tuples all the same. By "
    "the clock removing tuples probably costs about what the comparisons saved do"
)

_GAINS: Final = batching_gains("XJOIN", "HW", by="case")

CLAIMS = (
    Claim(
        "ours: MW-join is almost an order of magnitude faster than NLW-join (IsOut for every tuple "
        "that is visited, as in Figure 5)",
        f"time(NLW_PULLED) ≥ {_ORDER} × time(MW)",
        _order_of_magnitude("NLW_PULLED"),
    ),
    *(
        Claim(
            f"ours: HW-join outperforms XJoin in all cases (fixed buckets, skew {skew:g})",
            "time(XJOIN) > time(HW) for each number of buckets",
            _outperforms(skew),
            _REGION,
        )
        for skew in SKEWS
    ),
    replace(_GAINS, check=lambda rows: _GAINS.check([row for row in rows if row["case"] != LOOPS])),
)

EXPERIMENT = Experiment(
    "tr010-structures",
    "TR-010",
    "Figures 7 and 8 with its structures",
    "IsOut for every tuple that is visited, and hash tables with a number of buckets",
    measure,
    draw,
    CLAIMS,
    "sales of 3 stores, a window of 1 hour, 5000 transactions an hour, 20 000 items, clean-up of "
    "XJoin every 10 000 tuples; the number of buckets (modulo) and the skews are ours, for the "
    "paper does not tell them. 60 000 tuples; with --quick 8000, with --smoke 1500, then rates and "
    "clean-up are an eighth and a thirtieth",
)
