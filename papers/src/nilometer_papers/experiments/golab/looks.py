"""Golab Figure 4 by counts: what a look into a bucket for old tuples must cost for its optima."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from nilometer.model.join_cost import StreamLoad
from nilometer_papers.algorithms.multiway_hash_join import MultiwayHashJoin
from nilometer_papers.experiments.experiment import Claim, Experiment, Outcome, Row, Setting
from nilometer_papers.experiments.golab import figure_4a, figure_4b
from nilometer_papers.experiments.golab.workload import SCALE, make_workload
from nilometer_papers.experiments.measured import select
from nilometer_papers.experiments.plots import Axis, Curve, draw_curves, share_legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TABLES: Final = "1 to slow"
EIGHT: Final = 8
"""The best average number of buckets of '1 to slow' in the paper."""
INTERVALS: Final = {"HASH2": (2, 4), "HASH10": (10, 15), "HASH30": (30, 30)}
"""Buckets, and the best interval in the paper's Figure 4(a)."""
TAUS: Final = (1, 2, 4, 7, 10, 15, 20, 30, 50)
COSTS: Final = range(501)
"""Comparisons that a look may cost."""


def measure(setting: Setting) -> list[Row]:
    """Tuples compared and buckets looked into, for each tuple that arrives."""
    averages = setting.choose(range(1, 21), range(1, 21), range(2, 15, 2))
    units = setting.choose(100, 15, 3)
    rows: list[Row] = []
    for average in setting.progress.track(averages, "tables"):
        buckets = figure_4b.allot(average, 1) or []
        compared = count(figure_4b.LOADS, buckets, figure_4b.TAU, units, setting.seed)
        rows.append(_row(TABLES, average, compared, sum(buckets), figure_4b.TAU, figure_4b.LOADS))
    units = setting.choose(1000, 150, 50)
    for name, (number, _) in INTERVALS.items():
        buckets = [number] * len(figure_4a.LOADS)
        for tau in setting.progress.track(TAUS, f"intervals of {name}"):
            compared = count(figure_4a.LOADS, buckets, tau, units, setting.seed)
            rows.append(_row(name, tau, compared, sum(buckets), tau, figure_4a.LOADS))
    return rows


def count(
    loads: Sequence[StreamLoad], buckets: list[int], tau: int, units: int, seed: int
) -> float:
    """Tuples that MULTI-WAY HASH JOIN compares for each that arrives, windows being full."""
    workload = make_workload(loads, round(units * sum(one.rate for one in loads)), seed)
    algorithm = workload.fill(MultiwayHashJoin(workload.task, buckets, every=tau * workload.unit))
    for one in workload.measured:
        algorithm.process(one)
    algorithm.finish()
    return algorithm.counters.visited / len(workload.measured)


def _row(
    case: str, at: int, compared: float, buckets: int, tau: int, loads: Sequence[StreamLoad]
) -> Row:
    looks = buckets / (tau * sum(one.rate for one in loads))
    return {"case": case, "at": at, "compared": round(compared, 2), "looks": round(looks, 5)}


def best(rows: Sequence[Row], case: str, look: float) -> int:
    """Where the cost is least, if a look into a bucket costs so many comparisons."""
    group = select(rows, case=case)
    least = min(group, key=lambda row: float(row["compared"]) + look * float(row["looks"]))
    return int(least["at"])


def allowed(rows: Sequence[Row]) -> dict[str, tuple[int, int]]:
    """The costs of a look for which the best intervals are those of the paper's Figure 4(a)."""
    found = {
        name: [cost for cost in COSTS if best(rows, name, cost) == interval]
        for name, (_, interval) in INTERVALS.items()
    }
    return {name: (costs[0], costs[-1]) for name, costs in found.items() if costs}


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """The best table and the best intervals, against what a look costs."""
    tables, intervals = figure.subplots(1, 2)
    x = Axis("comparisons that a look into a bucket costs")
    curve = Curve("1 to slow, by counts", COSTS, [best(rows, TABLES, one) for one in COSTS])
    draw_curves(tables, [curve], x, Axis("best average number of buckets"), "Figure 4(b)")
    tables.axhline(EIGHT, color="tab:red", linestyle=":", label="1 to slow, in the paper")
    _shade(tables, rows)
    costs = COSTS[:101]
    curves = [Curve(name, costs, [best(rows, name, one) for one in costs]) for name in INTERVALS]
    draw_curves(intervals, curves, x, Axis("best tau (units of time)"), "Figure 4(a)")
    _shade(intervals, rows)
    share_legend(figure, [tables, intervals])


def _shade(axes: Axes, rows: Sequence[Row]) -> None:
    """From the least to the most that a look may cost for the intervals of the paper."""
    found = allowed(rows).values()
    if found:
        ends = min(one for one, _ in found), max(one for _, one in found)
        axes.axvspan(*ends, color="tab:green", alpha=0.15, label="the paper's best tau by counts")


def _tells_tables(rows: Sequence[Row]) -> Outcome:
    most = max((last for _, last in allowed(rows).values()), default=0)
    needed = next((one for one in COSTS if best(rows, TABLES, one) <= EIGHT), COSTS[-1])
    told = (
        f"best at {best(rows, TABLES, 0)} if a look costs nothing, at {best(rows, TABLES, most)} "
        f"if it costs {most}, at {EIGHT} or fewer from {needed} on"
    )
    return Outcome(best(rows, TABLES, most) > EIGHT, told)


def _tells_intervals(rows: Sequence[Row]) -> Outcome:
    found = allowed(rows)
    told = "; ".join(f"{name}: {first} to {last}" for name, (first, last) in found.items())
    return Outcome(len(found) == len(INTERVALS), told)


CLAIMS: Final = (
    Claim(
        "ours: by counts the best intervals of Figure 4(a), 4, 15 and 30 units, are right if a "
        "look into a bucket costs tens of comparisons",
        "for each number of buckets there are costs of a look with which the paper's tau is best",
        _tells_intervals,
    ),
    Claim(
        "ours: then the best of '1 to slow' in Figure 4(b) has more than eight buckets on average",
        "best average > 8, if a look costs the most that Figure 4(a) allows",
        _tells_tables,
    ),
)

EXPERIMENT: Final = Experiment(
    "golab-looks",
    "Golab",
    "Figure 4 by counts",
    "the best tables and intervals by what a look for old tuples costs",
    measure,
    draw,
    CLAIMS,
    "the streams of Figures 4(a) and 4(b). Cost is tuples compared, and buckets that an expiration "
    "looks into, each taken for so many comparisons; no clock is read. Here a look takes a fifth "
    f"of the time of a comparison. {SCALE}",
)
