"""Golab Figure 4 and Table 8 by counts: what a look into a bucket for old tuples must cost."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from nilometer.model.join_cost import StreamLoad
from nilometer_papers.algorithms.multiway_hash_join import MultiwayHashJoin
from nilometer_papers.experiments.experiment import Claim, Experiment, Outcome, Row, Setting
from nilometer_papers.experiments.golab import figure_4a, figure_4b
from nilometer_papers.experiments.golab.order_tables import TABLE_5
from nilometer_papers.experiments.golab.workload import SCALE, make_workload
from nilometer_papers.experiments.measured import brief, select
from nilometer_papers.experiments.plots import (
    Axis,
    Curve,
    colour_of,
    draw_curves,
    share_legend,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TABLES: Final = "1 to slow"
FIVE, TEN, EQUAL = "5 to slow", "10 to slow", "Equal"
SHARES: Final = "48 buckets in all"
"""By buckets of each slow window; the fast one has the rest."""
AVERAGE: Final = 12
FEW: Final = 10
"""From so many buckets on average on '10 to slow' has as many for the fast window, or more."""
BY_MODEL: Final = (60_000 / 35_900 * 3) ** 0.5
"""Where 35 900 / b_slow + 60 000 / b_fast is least for a number of buckets in all."""
EIGHT: Final = 8
"""The best average number of buckets of '1 to slow' in the paper."""
INTERVALS: Final = {"HASH2": (2, 4), "HASH10": (10, 15), "HASH30": (30, 30)}
"""Buckets, and the best interval in the paper's Figure 4(a)."""
TAUS: Final = (1, 2, 4, 7, 10, 15, 20, 30, 50)
TABLE_8: Final = {"NLJ": 1, "HASH5": 5}
"""Buckets of each window: nested loops are a hash join with one."""
EAGER: Final = 0
TABLE_8_TAUS: Final = (EAGER, 5, 10)
COSTS: Final = range(501)
"""Comparisons that a look may cost."""


def measure(setting: Setting) -> list[Row]:
    """Tuples compared and buckets looked into, for each tuple that arrives."""
    return [*_tables(setting), *_intervals(setting), *_table_8(setting)]


def _tables(setting: Setting) -> list[Row]:
    """Each strategy by the average number of buckets; then all ways to share out as many."""
    averages = setting.choose(range(1, 21), range(1, 21), range(2, 15, 2))
    units, tau, loads = setting.choose(100, 15, 3), figure_4b.TAU, figure_4b.LOADS
    tables = [
        (name, average, figure_4b.allot(average, slow))
        for name, slow in figure_4b.STRATEGIES.items()
        for average in averages
    ]
    tables += [(SHARES, slow, figure_4b.allot(AVERAGE, slow)) for slow in range(1, 16)]
    return [
        _row(case, at, count(loads, buckets, tau, units, setting.seed), sum(buckets), tau, loads)
        for case, at, buckets in setting.progress.track(tables, "tables")
        if buckets is not None
    ]


def _intervals(setting: Setting) -> list[Row]:
    """Each number of buckets by the interval."""
    units = setting.choose(1000, 150, 50)
    rows: list[Row] = []
    for name, (number, _) in INTERVALS.items():
        buckets = [number] * len(figure_4a.LOADS)
        for tau in setting.progress.track(TAUS, f"intervals of {name}"):
            compared = count(figure_4a.LOADS, buckets, tau, units, setting.seed)
            rows.append(_row(name, tau, compared, sum(buckets), tau, figure_4a.LOADS))
    return rows


def _table_8(setting: Setting) -> list[Row]:
    """The streams of Table 8 by the interval, in its best order, which is that of the streams."""
    units = setting.choose(2000, 200, 20)
    return [
        _row(
            name,
            tau,
            count(TABLE_5, [number] * len(TABLE_5), tau, units, setting.seed),
            number * len(TABLE_5),
            tau,
            TABLE_5,
        )
        for name, number in TABLE_8.items()
        for tau in setting.progress.track(TABLE_8_TAUS, f"Table 8, {name}")
    ]


def count(
    loads: Sequence[StreamLoad], buckets: list[int], tau: int, units: int, seed: int
) -> float:
    """Tuples that MULTI-WAY HASH JOIN compares for each that arrives, windows being full."""
    workload = make_workload(loads, round(units * sum(one.rate for one in loads)), seed)
    every = tau * workload.unit or None
    algorithm = workload.fill(MultiwayHashJoin(workload.task, buckets, every=every))
    for one in workload.measured:
        algorithm.process(one)
    algorithm.finish()
    return algorithm.counters.visited / len(workload.measured)


def _row(
    case: str, at: int, compared: float, buckets: int, tau: int, loads: Sequence[StreamLoad]
) -> Row:
    looks = buckets / (tau * sum(one.rate for one in loads) or 1)
    return {"case": case, "at": at, "compared": round(compared, 2), "looks": round(looks, 5)}


def best(rows: Sequence[Row], case: str, look: float) -> int:
    """Where the cost is least, if a look into a bucket costs so many comparisons."""
    return least_cost(rows, case, look)[1]


def least_cost(rows: Sequence[Row], case: str, look: float) -> tuple[float, int]:
    """The least cost, in comparisons, and where it is."""
    group = select(rows, case=case)
    return min(
        (float(one["compared"]) + look * float(one["looks"]), int(one["at"])) for one in group
    )


def counts(rows: Sequence[Row], case: str) -> dict[int, float]:
    """Tuples compared for each that arrives, by what the case goes through."""
    return {int(row["at"]): float(row["compared"]) for row in select(rows, case=case)}


def shares(rows: Sequence[Row]) -> dict[float, float]:
    """Tuples compared by how many times as many buckets the fast window has as a slow one."""
    counted = counts(rows, SHARES)
    return {
        (4 * AVERAGE - 3 * slow) / slow: counted[slow] for slow in sorted(counted, reverse=True)
    }


def allowed(rows: Sequence[Row]) -> dict[str, tuple[int, int]]:
    """The costs of a look for which the best intervals are those of the paper's Figure 4(a)."""
    fitting = {
        name: [cost for cost in COSTS if best(rows, name, cost) == interval]
        for name, (_, interval) in INTERVALS.items()
    }
    return {name: (costs[0], costs[-1]) for name, costs in fitting.items() if costs}


def cost_by_tau(rows: Sequence[Row], case: str, look: float) -> list[float]:
    """What a tuple of Table 8 costs under each interval, in comparisons."""
    return [
        float(row["compared"]) + look * float(row["looks"])
        for tau in TABLE_8_TAUS
        for row in select(rows, case=case, at=tau)
    ]


def limit(rows: Sequence[Row], case: str) -> float:
    """Up to what cost of a look a longer interval of Table 8 costs more than each shorter one."""
    points = [select(rows, case=case, at=tau)[0] for tau in TABLE_8_TAUS]
    return min(
        (float(after["compared"]) - float(before["compared"]))
        / (float(before["looks"]) - float(after["looks"]))
        for before, after in pairwise(points)
    )


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """By what a look costs: the best table and intervals, and Table 8; how buckets are shared."""
    figure.set_size_inches(12, 9)
    (tables, intervals), (shared, longer) = figure.subplots(2, 2)
    x = Axis("comparisons that a look into a bucket costs")
    curve = Curve("1 to slow, by counts", COSTS, [best(rows, TABLES, one) for one in COSTS])
    draw_curves(tables, [curve], x, Axis("best average number of buckets"), "Figure 4(b)")
    tables.axhline(EIGHT, color="tab:red", linestyle=":", label="1 to slow, in the paper")
    _shade(tables, rows)
    costs = COSTS[:101]
    curves = [Curve(name, costs, [best(rows, name, one) for one in costs]) for name in INTERVALS]
    draw_curves(intervals, curves, x, Axis("best tau (units of time)"), "Figure 4(a)")
    _shade(intervals, rows)
    _draw_shares(shared, shares(rows))
    _draw_longer(longer, rows)
    share_legend(figure, [tables, intervals, shared, longer])


def _draw_longer(axes: Axes, rows: Sequence[Row]) -> None:
    looks = [10 ** (place / 10) for place in range(-10, 31)]
    costs = {case: [cost_by_tau(rows, case, look) for look in looks] for case in TABLE_8}
    curves = [
        Curve(
            f"{case}, tau {tau} / eager", looks, [one[place] / one[0] for one in costs[case]], style
        )
        for case in TABLE_8
        for place, (tau, style) in enumerate(((5, "-"), (10, "--")), 1)
    ]
    x = Axis("comparisons that a look into a bucket costs", log=True)
    draw_curves(axes, curves, x, Axis("cost / cost of the eager join"), "Table 8")
    axes.axhline(1, color="black", linewidth=1)
    _shade(axes, rows)


def _draw_shares(axes: Axes, counted: dict[float, float]) -> None:
    x = Axis("buckets of the fast window / of a slow one", log=True)
    curve = Curve(SHARES, list(counted), list(counted.values()))
    draw_curves(axes, [curve], x, Axis("tuples compared for each that arrives"), "Figure 4(b)")
    for name, slow in figure_4b.STRATEGIES.items():
        fast = (4 * AVERAGE - 3 * slow) / slow if slow else 1
        axes.axvline(fast, color=colour_of(name), linestyle="--", label=name)
    axes.axvline(BY_MODEL, color="black", linestyle=":", label="best by the cost model")


def _shade(axes: Axes, rows: Sequence[Row]) -> None:
    """From the least to the most that a look may cost for the intervals of the paper."""
    ranges = allowed(rows).values()
    if ranges:
        ends = min(one for one, _ in ranges), max(one for _, one in ranges)
        axes.axvspan(*ends, color="tab:green", alpha=0.15, label="the paper's best tau by counts")


def _tells_tables(rows: Sequence[Row]) -> Outcome:
    top = max((last for _, last in allowed(rows).values()), default=0)
    needed = next((one for one in COSTS if best(rows, TABLES, one) <= EIGHT), COSTS[-1])
    figures = (
        f"best at {best(rows, TABLES, 0)} if a look costs nothing, at {best(rows, TABLES, top)} "
        f"if it costs {top}, at {EIGHT} or fewer from {needed} on"
    )
    return Outcome(best(rows, TABLES, top) > EIGHT, figures)


def _tells_intervals(rows: Sequence[Row]) -> Outcome:
    ranges = allowed(rows)
    figures = "; ".join(f"{name}: {first} to {last}" for name, (first, last) in ranges.items())
    return Outcome(len(ranges) == len(INTERVALS), figures)


def _equal_is_best(rows: Sequence[Row]) -> Outcome:
    costs = {look: [least_cost(rows, one, look) for one in (EQUAL, FIVE)] for look in COSTS}
    figures = "; ".join(
        f"looks of {look}: {EQUAL} {brief(equal)} at {at}, {FIVE} {brief(five)} at {other}"
        for look in (COSTS[0], COSTS[50], COSTS[-1])
        for (equal, at), (five, other) in (costs[look],)
    )
    return Outcome(all(equal < five for equal, five in costs.values()), figures)


def _ten_is_less(rows: Sequence[Row]) -> Outcome:
    five, ten = counts(rows, FIVE), counts(rows, TEN)
    figures = ", ".join(f"{at}: {brief(ten[at])} and {brief(five[at])}" for at in ten)
    return Outcome(all(ten[at] < five[at] for at in ten if at >= FEW), figures)


def _twice_to_fast(rows: Sequence[Row]) -> Outcome:
    counted = shares(rows)
    at = min(counted, key=counted.__getitem__)
    figures = f"fewest at {brief(at)} ({brief(counted[at])}), {brief(counted[1.0])} at 1 ({EQUAL})"
    return Outcome(1.5 <= at <= 3, f"{figures}, {brief(counted[6.6])} at 6.6 ({FIVE})")


def _longer_is_slower(rows: Sequence[Row]) -> Outcome:
    limits = {case: limit(rows, case) for case in TABLE_8}
    needed = min((first for first, _ in allowed(rows).values()), default=0)
    figures = "; ".join(f"{case}: up to {brief(one)} comparisons" for case, one in limits.items())
    holds = 0 < limits["HASH5"] < needed < limits["NLJ"]
    return Outcome(holds, f"{figures}; the intervals of Figure 4(a) need {needed} or more")


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
    Claim(
        "ours: whatever a look costs, equal tables at their best cost less than '5 to slow'",
        f"least cost(Equal) < least cost(5 to slow) for looks of 0 to {COSTS[-1]} comparisons",
        _equal_is_best,
    ),
    Claim(
        "ours: '10 to slow' compares less than '5 to slow' already with few buckets, and looks as "
        "often",
        f"compared(10 to slow) < compared(5 to slow) from {FEW} on average on",
        _ten_is_less,
    ),
    Claim(
        "ours: the fast window should have about twice the buckets of a slow one, as the model has "
        "it, not 6.6 times as many",
        f"of {4 * AVERAGE} buckets, fewest are compared where b_fast / b_slow is 1.5 to 3 "
        f"({brief(BY_MODEL)} by the model)",
        _twice_to_fast,
    ),
    Claim(
        "ours: in Table 8 a longer interval costs more if a look is cheap, with hash tables "
        "cheaper than the best intervals of Figure 4(a) have it",
        "0 < the most that a look may cost with hash tables < the least that Figure 4(a) allows < "
        "the most with nested loops",
        _longer_is_slower,
    ),
)

EXPERIMENT: Final = Experiment(
    "golab-looks",
    "Golab",
    "Figure 4 and Table 8 by counts",
    "the best tables and intervals by what a look for old tuples costs",
    measure,
    draw,
    CLAIMS,
    "the streams of Figures 4(a) and 4(b) and of Table 8. Cost is tuples compared, and buckets "
    "that an expiration looks into, each taken for so many comparisons; no clock is read. Here a "
    f"look takes a fifth of the time of a comparison. {SCALE}",
)
