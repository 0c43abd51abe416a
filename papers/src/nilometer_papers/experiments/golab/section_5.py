"""Golab sections 3.5, 3.6, 5.3 and 5.4: hash tables on some windows, windows of rows, orders."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Final

from nilometer.model.index_choice import choose_indexes, hybrid_order, with_indexes
from nilometer.model.join_cost import Order, Predicate, StreamLoad, cost_of_orders, orders_of
from nilometer.model.join_order import choose_global_order
from nilometer_papers.algorithms.count_join import CountNLJ
from nilometer_papers.algorithms.eager_nlj import EagerNLJ
from nilometer_papers.algorithms.hybrid_join import HybridJoin
from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.experiments.experiment import Claim, Experiment, Outcome, Row, Setting
from nilometer_papers.experiments.golab.expensive_loops import Asked, asked_by_order
from nilometer_papers.experiments.golab.order_tables import TABLE_5, TABLE_6, name_of
from nilometer_papers.experiments.golab.rates import run
from nilometer_papers.experiments.golab.workload import SCALE, Workload, make_workloads
from nilometer_papers.experiments.measured import brief, select
from nilometer_papers.experiments.plots import label_log_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BUCKETS: Final = 10
HYBRID: Final = "hybrid"
PLANNED: Final = "planned"
COUNTED: Final = "rows"
DEAR: Final = "expensive"
BESIDE: Final = "beside the key"
TEST_COST: Final = 20.0
PREDICATE_COST: Final = 100.0
_KNOWLEDGE: Final = ("not known", "planned")
_NONE: Final[frozenset[int]] = frozenset()


def measure(setting: Setting) -> list[Row]:
    """Costs by the model and as counted, case by case; tuples compared per arrival."""
    parts, tuples = setting.choose((40, 60), (6, 40), (2, 20))
    rows: list[Row] = []
    work = make_workloads(TABLE_5, parts, tuples, setting.seed)
    choices = [_NONE, *(frozenset({i}) for i in range(4))]
    for chosen in setting.progress.track(choices, "hash tables"):
        rows += _hybrid_rows(work, chosen)
    fast = make_workloads(TABLE_6, max(1, parts // 2), tuples, setting.seed)
    for label, order in (("as written", (0, 1, 2, 3)), ("planned", choose_global_order(TABLE_6))):
        counted = run(partial(EagerNLJ, order=order), fast).visited
        rows.append(_row(PLANNED, label, order, counted, _model(TABLE_6, order)))
    rows += _count_rows(work)
    many = make_workloads(TABLE_5, 5 * parts, max(1, tuples // 4), setting.seed)
    asked = asked_by_order(many, setting)
    return rows + _dear_rows(asked) + _beside_rows(asked)


def _hybrid_rows(work: Sequence[Workload], chosen: frozenset[int]) -> list[Row]:
    """One window has a hash table: in the inner loops, and in the outermost."""
    loads = with_indexes(TABLE_5, chosen, BUCKETS)
    inner = hybrid_order(loads)
    outer = (*(i for i in inner if i in chosen), *(i for i in inner if i not in chosen))
    label = f"S{min(chosen) + 1}" if chosen else "none"
    rows = []
    for place, order in (("inner", inner), ("outer", outer), ("best", choose_global_order(loads))):
        make = partial(HybridJoin, buckets=dict.fromkeys(chosen, BUCKETS), order=order)
        counted = run(make, work).visited
        rows.append(_row(HYBRID, f"{label}, {place}", order, counted, _model(loads, order)))
    return rows


def _count_rows(work: Sequence[Workload]) -> list[Row]:
    """Windows of as many rows as the windows of time hold on average."""
    order = choose_global_order(TABLE_5)
    counted = run(partial(EagerNLJ, order=order), work).visited
    rows = [_row(COUNTED, "EAGER_NLJ", order, counted, _model(TABLE_5, order))]
    sizes = [round(load.size) for load in TABLE_5]
    visited = arrivals = 0
    for one in work:
        algorithm = CountNLJ(JoinTask.last_rows(sizes), order)
        for arrival in one.filling:
            algorithm.windows[arrival.stream].insert(arrival)
        for arrival in one.measured:
            algorithm.process(arrival)
        algorithm.finish()
        visited += algorithm.counters.visited
        arrivals += len(one.measured)
    rows.append(_row(COUNTED, "COUNT_NLJ", order, visited / arrivals, _model(TABLE_5, order)))
    return rows


def _dear_rows(asked: Mapping[Order, Asked]) -> list[Row]:
    """The key of one window is expensive to compare: the cheapest of all orders as counted."""
    rows = [_row(DEAR, "none, best place", *_cheapest(asked, lambda one: one.visited))]
    for i in range(4):
        costs = partial(Asked.with_dear_window, stream=i, cost=TEST_COST)
        best, counted = _cheapest(asked, costs)
        last = (*(j for j in best if j != i), i)
        rows.append(_row(DEAR, f"S{i + 1}, best place", best, counted))
        rows.append(_row(DEAR, f"S{i + 1}, last", last, costs(asked[last])))
    return rows


def _cheapest(asked: Mapping[Order, Asked], costs: Callable[[Asked], float]) -> tuple[Order, float]:
    order = min(asked, key=lambda one: costs(asked[one]))
    return order, costs(asked[order])


def _beside_rows(asked: Mapping[Order, Asked]) -> list[Row]:
    """An expensive predicate of two streams beside the key: the order with and without its cost."""
    rows = []
    usual = choose_global_order(TABLE_5)
    for pair in map(frozenset, combinations(range(4), 2)):
        predicates = [Predicate(pair, PREDICATE_COST)]
        name = ", ".join(f"S{i + 1}" for i in sorted(pair))
        planned = choose_global_order(TABLE_5, predicates=predicates)
        for label, order in zip(_KNOWLEDGE, (usual, planned), strict=True):
            counted = asked[order].with_predicate(pair, PREDICATE_COST)
            model = _model(TABLE_5, order, predicates)
            rows.append(_row(BESIDE, f"{name}: {label}", order, counted, model))
    return rows


def _model(
    loads: Sequence[StreamLoad], order: Order, predicates: Sequence[Predicate] = ()
) -> float:
    """Tuples compared per arrival."""
    cost = cost_of_orders(loads, orders_of(order), predicates=predicates).total
    return cost / sum(load.rate for load in loads)


def _row(case: str, label: str, order: Order, counted: float, model: float = 0.0) -> Row:
    """One measured order; without a model 0 stands for it."""
    name = name_of(order)
    return {"case": case, "label": label, "order": name, "model": model, "counted": counted}


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """Bars of comparisons per arrival, by the model and as counted."""
    panels = list(figure.subplots(1, 4, width_ratios=(2.4, 1.2, 1.4, 1.4)))
    cases_of_panels = ((HYBRID,), (PLANNED, COUNTED), (DEAR,), (BESIDE,))
    for axes, cases in zip(panels, cases_of_panels, strict=True):
        shown = [row for case in cases for row in select(rows, case=case)]
        places = range(len(shown))
        below = 0.0 if cases == (DEAR,) else 0.2
        if below:
            modelled = [float(row["model"]) for row in shown]
            axes.barh([i - below for i in places], modelled, 0.4, label="model")
        counted = [float(row["counted"]) for row in shown]
        look = {"label": "counted", "hatch": "//", "color": "tab:orange"}
        axes.barh([i + below for i in places], counted, 0.4, **look)
        axes.set_yticks(places, [f"{r['label']} ({r['order']})" for r in shown], fontsize=8)
        axes.invert_yaxis()
        axes.set_xlabel("comparisons")
        if cases == (DEAR,):
            axes.set_xscale("log")
            axes.set_xlim(left=100)
            label_log_axis(axes.xaxis)
        axes.grid(visible=True, axis="x", alpha=0.3)
        axes.set_title(_TITLES[cases[0]], fontsize=9)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)


_TITLES: Final = {
    HYBRID: "one hash table of 10 buckets",
    PLANNED: "Table 6; windows of rows",
    DEAR: "one window's\npredicate costs 20",
    BESIDE: "a predicate beside\nthe key costs 100",
}


def _labelled(rows: Sequence[Row], case: str, label: str) -> Row:
    return select(rows, case=case, label=label)[0]


def _inner_is_cheaper(rows: Sequence[Row]) -> Outcome:
    figures, holds = [], True
    for i in range(4):
        inner, outer = (
            float(_labelled(rows, HYBRID, f"S{i + 1}, {place}")["counted"])
            for place in ("inner", "outer")
        )
        figures.append(f"S{i + 1}: inner {brief(inner)}, outermost {brief(outer)}")
        holds = holds and inner <= outer
    return Outcome(holds, "; ".join(figures))


def _index_is_best(rows: Sequence[Row]) -> Outcome:
    (chosen,) = choose_indexes(TABLE_5, 1, BUCKETS)
    counted = {i: float(_labelled(rows, HYBRID, f"S{i + 1}, best")["counted"]) for i in range(4)}
    figures = ", ".join(f"S{i + 1} {brief(cost)}" for i, cost in counted.items())
    return Outcome(counted[chosen] == min(counted.values()), f"chosen S{chosen + 1}; {figures}")


def _planned_is_cheaper(rows: Sequence[Row]) -> Outcome:
    written, planned = (_labelled(rows, PLANNED, one) for one in ("as written", "planned"))
    costs = float(written["counted"]), float(planned["counted"])
    figures = f"{written['order']} {brief(costs[0])}, {planned['order']} {brief(costs[1])}"
    return Outcome(costs[1] < costs[0], f"{figures}: {brief(costs[0] / costs[1])} times")


def _rows_carry_over(rows: Sequence[Row]) -> Outcome:
    costs = [float(_labelled(rows, COUNTED, one)["counted"]) for one in ("EAGER_NLJ", "COUNT_NLJ")]
    figures = f"EAGER_NLJ {brief(costs[0])}, COUNT_NLJ {brief(costs[1])}"
    return Outcome(max(costs) <= 1.25 * min(costs), figures)


def _dear_is_early(rows: Sequence[Row]) -> Outcome:
    usual = str(_labelled(rows, DEAR, "none, best place")["order"])
    figures, moves = [], []
    for name in "1234":
        best = _labelled(rows, DEAR, f"S{name}, best place")
        order, last = str(best["order"]), float(_labelled(rows, DEAR, f"S{name}, last")["counted"])
        figures.append(f"S{name}: {order} {brief(float(best['counted']))}, last {brief(last)}")
        moves.append(usual.index(name) - order.index(name))
    return Outcome(min(moves) >= 0 and max(moves) > 0, f"else {usual}; {'; '.join(figures)}")


def _known_cost_is_cheaper(rows: Sequence[Row]) -> Outcome:
    figures, gains = [], []
    labels = [str(row["label"]) for row in select(rows, case=BESIDE)]
    for name in dict.fromkeys(label.partition(":")[0] for label in labels):
        usual, planned = (_labelled(rows, BESIDE, f"{name}: {one}") for one in _KNOWLEDGE)
        costs = float(usual["counted"]), float(planned["counted"])
        gains.append(costs[0] - costs[1])
        if usual["order"] != planned["order"]:
            figures.append(
                f"{name}: {usual['order']} {brief(costs[0])}, {planned['order']} {brief(costs[1])}"
            )
    same = f"the same order in {len(gains) - len(figures)} of {len(gains)} pairs"
    return Outcome(min(gains) >= 0 and max(gains) > 0, "; ".join([*figures, same]))


CLAIMS = (
    Claim(
        "windows with hash indices belong in the inner for-loops, which repeat most (5.4)",
        "counted(hash table in the inner loops) ≤ counted(in the outermost) for each window",
        _inner_is_cheaper,
        "a hash table makes a window cheap to look at wherever it is; whether it should be looked "
        "at early depends on how many partners it gives, as before. It holds for windows that "
        "give many partners. The cost model with b_i sees that, and orders by the cost instead",
    ),
    Claim(
        "expensive predicates may need to be near the top (5.4)",
        "in the cheapest of all orders, as counted, a window whose predicate costs 20 comparisons "
        "is never further down than with the usual cost, and for some window further up",
        _dear_is_early,
    ),
    Claim(
        "the algorithms carry over to windows of rows (3.6)",
        "COUNT_NLJ compares as many tuples as EAGER_NLJ with windows of as many, within 25 %",
        _rows_carry_over,
    ),
    Claim(
        "ours: choosing the window to index by the cost model is right (5.4 leaves it open)",
        "counted with the chosen hash table = min over all windows",
        _index_is_best,
    ),
    Claim(
        "ours: the planner orders the loops of a hint without an order, and that is cheaper",
        "counted(order of the heuristic) < counted(order of FROM), Table 6",
        _planned_is_cheaper,
    ),
    Claim(
        "ours: an order chosen with the cost of a predicate beside the key is cheaper",
        "counted(order of the heuristic, a predicate of two streams costs 100) ≤ counted(order "
        "without that cost) for each pair, < for some",
        _known_cost_is_cheaper,
    ),
)

EXPERIMENT = Experiment(
    "golab-section-5",
    "Golab",
    "Sections 3.5, 3.6, 5.3 and 5.4",
    "hash tables on some windows, expensive predicates, windows of rows, planned orders",
    measure,
    draw,
    CLAIMS,
    f"the streams of Table 5 and, for planned orders, of Table 6; hash tables of {BUCKETS} "
    f"buckets; the paper reports no experiment with them: all figures are ours. {SCALE}",
)
