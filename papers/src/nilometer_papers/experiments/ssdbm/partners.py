"""SSDBM, output execution time by load: by the partners of a sale, and by unlike stores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.registry import ALGORITHMS
from nilometer_papers.experiments.contest import second_half
from nilometer_papers.experiments.experiment import Claim, Experiment, Outcome, Row, Setting
from nilometer_papers.experiments.measured import brief, distinct, select
from nilometer_papers.experiments.plots import Axis, Curve, draw_curves, share_legend
from nilometer_papers.experiments.ratio_claims import TIME, ratio
from nilometer_papers.experiments.service import check_same, serve
from nilometer_papers.experiments.workloads.transactions import HOUR, Stores, transactions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORWARD, BACKWARD = "FEW_HASH", "BEW_HASH"
PARTNERS, SIZES = "partners", "sizes"
STORES: Final = (2, 3, 4)
ITEMS: Final = (20_000, 10_000, 5_000, 2_500, 1_500, 1_000, 500)
FEW_ITEMS: Final = 1_000
LARGEST: Final = (1.0, 2.0, 4.0, 16.0)
"""How many times as much the first store sells as the last."""
MANY: Final = 1.2
"""From so many partners in each other store on FEW-join compares less."""
COMPARED: Final = "comparisons"


def measure(setting: Setting) -> list[Row]:
    """Comparisons and times once windows are full: by the number of items, then by sizes."""
    rows: list[Row] = []
    for stores in setting.progress.track(STORES, "number of stores"):
        for items in setting.progress.track(ITEMS, "numbers of items"):
            sold = sales(setting, stores, items)
            rows += _rows(setting, PARTNERS, round(partners(sold), 3), sold)
        for largest in setting.progress.track(LARGEST, "sizes of stores"):
            rows += _rows(setting, SIZES, largest, sales(setting, stores, FEW_ITEMS, largest))
    return rows


def sales(setting: Setting, stores: int, items: int, largest: float = 1) -> Stores:
    """Stores that sell 625 an hour each on average."""
    return Stores(stores, setting.choose(625, 625, 100) * stores, items=items, largest=largest)


def partners(sold: Stores) -> float:
    """How many sales of another store in the last hour are of the same item, on average."""
    return sold.per_hour / sold.stores * sold.matching


def _rows(setting: Setting, case: str, at: float, sold: Stores) -> list[Row]:
    arrivals = transactions(sold, setting.choose(25_000, 6_000, 1_000), setting.seed)
    task = JoinTask.uniform(sold.stores, HOUR)
    services = {name: serve(ALGORITHMS[name].start(task), arrivals) for name in (BACKWARD, FORWARD)}
    check_same(services)
    return [
        {
            "case": case,
            "streams": sold.stores,
            "at": at,
            "algorithm": name,
            TIME: round(steady.microseconds, 3),
            COMPARED: round(steady.comparisons, 2),
        }
        for name, one in services.items()
        for steady in (second_half(one),)
    ]


def ratios(
    rows: Sequence[Row], case: str, stores: int, column: str = COMPARED
) -> dict[float, float]:
    """BEW-join as a multiple of FEW-join, by what the case goes through."""
    group = select(rows, case=case, streams=stores)
    return {
        float(at): ratio(select(group, at=at), BACKWARD, FORWARD, column)
        for at in distinct(group, "at")
    }


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """BEW-join as a multiple of FEW-join; where it is more, the paper's claim holds."""
    by_partners, by_sizes = figure.subplots(1, 2, sharey=True)
    y = Axis("BEW-join / FEW-join", log=True)
    x = Axis("partners of a sale in each other store", log=True)
    draw_curves(by_partners, _curves(rows, PARTNERS), x, y, "stores of like rates", markers=True)
    x = Axis("sales of the largest store / of the smallest", log=True)
    title = f"{FEW_ITEMS} items"
    draw_curves(by_sizes, _curves(rows, SIZES), x, y, title, markers=True)
    for axes in (by_partners, by_sizes):
        _shade(axes)
    share_legend(figure, [by_partners, by_sizes])


def _curves(rows: Sequence[Row], case: str) -> list[Curve]:
    return [
        Curve(f"{stores} stores, {label}", list(points), list(points.values()), style)
        for column, label, style in ((COMPARED, "comparisons", "-"), (TIME, "time", ":"))
        for stores in STORES
        for points in (ratios(rows, case, stores, column),)
    ]


def _shade(axes: Axes) -> None:
    top = axes.get_ylim()[1]
    axes.axhspan(1, top, color="tab:green", alpha=0.1, label="the paper's claim holds")
    axes.set_ylim(top=top)


def _figures(rows: Sequence[Row], case: str, unit: str) -> str:
    return "; ".join(
        f"{stores} stores: "
        + ", ".join(
            f"{brief(one)} by comparisons and {brief(timed[at])} by the clock at {brief(at)}{unit}"
            for at, one in ratios(rows, case, stores).items()
        )
        for stores in STORES
        for timed in (ratios(rows, case, stores, TIME),)
    )


def _depends_on_partners(rows: Sequence[Row]) -> Outcome:
    holds = True
    for stores in STORES:
        by_partners = ratios(rows, PARTNERS, stores)
        holds = holds and by_partners[min(by_partners)] < 1
        holds = holds and all(one > 1 for at, one in by_partners.items() if at >= MANY)
    return Outcome(holds, _figures(rows, PARTNERS, " partners"))


def _unlike_rates_do_not_help(rows: Sequence[Row]) -> Outcome:
    by_stores = [ratios(rows, SIZES, stores) for stores in STORES]
    return Outcome(
        all(one[LARGEST[-1]] < one[LARGEST[0]] for one in by_stores), _figures(rows, SIZES, " to 1")
    )


CLAIMS = (
    Claim(
        "ours: FEW-join compares less than BEW-join where a sale has a partner or more in each "
        "other store, not where it has a tenth",
        f"comparisons({BACKWARD}) > comparisons({FORWARD}) from {MANY} partners on, < at the "
        "fewest, for each number of stores",
        _depends_on_partners,
    ),
    Claim(
        "ours: that stores sell unlike numbers does not help FEW-join",
        f"comparisons({BACKWARD}) / comparisons({FORWARD}) is less where the largest store sells "
        f"{LARGEST[-1]:g} times as much as the smallest than where they are alike",
        _unlike_rates_do_not_help,
    ),
)

EXPERIMENT = Experiment(
    "ssdbm-partners",
    "SSDBM",
    "output execution time by load",
    "FEW-join against BEW-join by the partners of a sale, and by unlike stores",
    measure,
    draw,
    CLAIMS,
    "the stores of ssdbm-transactions, but each sells 625 an hour on average (with --smoke 100), "
    f"and from 20 000 to 500 items; right: the first store sells up to {LARGEST[-1]:g} times as "
    f"much as the last, all {FEW_ITEMS} items. 25 000 sales, with --quick 6000, with --smoke 1000; "
    "means over the second half. Sizes and items are ours: the paper tells neither. Each algorithm "
    "runs once, as comparisons are the same in every run",
)
