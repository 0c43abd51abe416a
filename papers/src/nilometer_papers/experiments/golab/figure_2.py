"""Golab Figure 2: EAGER against NAIVE MULTI-WAY NLJ as windows are added."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from nilometer.model.join_cost import Order, StreamLoad
from nilometer_papers.algorithms.eager_nlj import EagerNLJ
from nilometer_papers.algorithms.naive_nlj import NaiveNLJ
from nilometer_papers.experiments.experiment import Claim, Experiment, Outcome, Row, Setting
from nilometer_papers.experiments.golab.loop_costs import lazy_plans, naive_plans, total_cost
from nilometer_papers.experiments.golab.rates import Make, run
from nilometer_papers.experiments.golab.workload import SCALE, make_workloads
from nilometer_papers.experiments.measured import brief, select, values
from nilometer_papers.experiments.plots import Axis, Curve, draw_curves, share_legend
from nilometer_papers.experiments.service import check_same

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOAD: Final = StreamLoad(rate=1, window=100, distinct=50)

_PLANS: Final[Mapping[str, Callable[[Sequence[int]], list[Order]]]] = {
    "MULTI-WAY": lazy_plans,
    "NAIVE": naive_plans,
}
_MAKES: Final[Mapping[str, Make]] = {"MULTI-WAY": EagerNLJ, "NAIVE": NaiveNLJ}


def measure(setting: Setting) -> list[Row]:
    """Comparisons per unit of time, by formula and as counted."""
    largest = setting.choose(7, 6, 4)
    rows: list[Row] = []
    for windows in setting.progress.track(range(2, largest + 1), "number of windows"):
        loads = [LOAD] * windows
        workloads = make_workloads(loads, setting.choose(60, 30, 4), 4 * windows, setting.seed)
        runs = {name: run(make, workloads) for name, make in _MAKES.items()}
        check_same({name: one.service for name, one in runs.items()})
        rows += [
            {
                "windows": windows,
                "algorithm": name,
                "formula": total_cost(loads, plans(range(windows)), None, time_tests=False),
                "counted": round(runs[name].visited * windows, 1),
            }
            for name, plans in _PLANS.items()
        ]
    return rows


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """Formulas as lines, counts beside them."""
    axes = figure.subplots()
    curves = [
        Curve(
            f"{name}, {source}",
            values(rows, "windows", algorithm=name),
            values(rows, source, algorithm=name),
            style,
        )
        for name in _PLANS
        for source, style in (("formula", "-"), ("counted", ":"))
    ]
    x, y = Axis("number of windows"), Axis("comparisons per unit of time", log=True)
    draw_curves(axes, curves, x, y, markers=True)
    axes.set_xticks(sorted({int(row["windows"]) for row in rows}))
    share_legend(figure, [axes])


def _ratios(rows: Sequence[Row], source: str) -> dict[int, float]:
    """How many times the comparisons of MULTI-WAY the naive join makes, by number of windows."""
    return {
        int(row["windows"]): float(row[source])
        / values(rows, source, algorithm="MULTI-WAY", windows=row["windows"])[0]
        for row in select(rows, algorithm="NAIVE")
    }


def _check_scales(rows: Sequence[Row]) -> Outcome:
    holds, figures = True, []
    for source in ("formula", "counted"):
        ratios = _ratios(rows, source)
        larger = [ratio for windows, ratio in ratios.items() if windows > 2]
        holds = holds and min(larger) > 1 and larger[-1] > larger[0]
        figures.append(f"{source}: " + ", ".join(f"{n}: {brief(r)}" for n, r in ratios.items()))
    return Outcome(holds, "; ".join(figures))


def _check_formula(rows: Sequence[Row]) -> Outcome:
    errors = [float(row["counted"]) / float(row["formula"]) - 1 for row in rows]
    worst = max(errors, key=abs)
    return Outcome(abs(worst) <= 0.25, f"largest error {worst:+.1%}")


CLAIMS: Final = (
    Claim(
        "MULTI-WAY scales considerably better with the number of windows than NAIVE",
        "cost(NAIVE) / cost(MULTI-WAY) > 1 from 3 windows on, and larger for the most windows "
        "than for 3, by formula and as counted",
        _check_scales,
    ),
    Claim(
        "the formulas tell what the algorithms do",
        "|counted / formula - 1| ≤ 25 % for every point",
        _check_formula,
        reason="the sample is small in short profiles: the cost grows with the product of how "
        "often a value is in every window",
    ),
)

EXPERIMENT: Final = Experiment(
    "golab-figure-2",
    "Golab",
    "Figure 2",
    "Eager re-evaluation: multi-way against naive nested loops",
    measure,
    draw,
    CLAIMS,
    "all windows 100 units long, one tuple per unit, 50 values (section 4.2). The formulas are "
    "derived anew: for new tuples at place p of n equal windows of N tuples and v values, loop m "
    f"compares N^m / v^(m-2) tuples above p and N^(m-1) / v^(m-2) from p on. Up to 7 "
    f"windows, with --quick 6, with --smoke 4. {SCALE}",
)
