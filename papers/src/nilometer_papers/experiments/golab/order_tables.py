"""Golab Tables 5, 6 and 7: the costs of all global orders, by the model and as counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import permutations
from typing import TYPE_CHECKING, Final

from nilometer.model.join_cost import Order, StreamLoad, cost_of_orders, orders_of
from nilometer.model.join_order import choose_global_order
from nilometer_papers.algorithms.eager_nlj import EagerNLJ
from nilometer_papers.experiments.experiment import Claim, Experiment, Outcome, Row, Setting
from nilometer_papers.experiments.golab.window_samples import compared_with, draw_windows
from nilometer_papers.experiments.golab.workload import (
    SCALE,
    Workload,
    make_workloads,
    with_even_origins,
)
from nilometer_papers.experiments.measured import brief, values
from nilometer_papers.experiments.plots import Axis, Curve, draw_curves, share_legend
from nilometer_papers.experiments.service import WrongResultsError, add_fingerprints, fingerprint_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TABLE_5: Final = (
    StreamLoad(10, 100, 500),
    StreamLoad(1, 100, 50),
    StreamLoad(1, 200, 40),
    StreamLoad(3, 100, 5),
)
TABLE_6: Final = (
    StreamLoad(100, 100, 200),
    StreamLoad(1, 100, 200),
    StreamLoad(1, 100, 20),
    StreamLoad(3, 100, 2),
)
TABLE_7: Final = (
    StreamLoad(11, 100, 200),
    StreamLoad(10, 100, 100),
    StreamLoad(1, 100, 65),
    StreamLoad(1, 100, 20),
)

Loads = Sequence[StreamLoad]


def name_of(order: Order) -> str:
    """An order as the paper writes it, streams counted from 1."""
    return "".join(str(stream + 1) for stream in order)


def all_orders(loads: Loads) -> dict[str, Order]:
    """All global orders, the cheapest by the model first."""
    orders = sorted(permutations(range(len(loads))), key=lambda order: model_cost(loads, order))
    return {name_of(order): order for order in orders}


def model_cost(loads: Loads, order: Order) -> float:
    """Comparisons per unit of time by the cost model."""
    return cost_of_orders(loads, orders_of(order)).total


def _measure(loads: Loads, quoted: Iterable[str]) -> Callable[[Setting], list[Row]]:
    def measure(setting: Setting) -> list[Row]:
        parts, tuples = setting.choose((600, 20), (60, 12), (3, 8))
        workloads = [
            with_even_origins(one, loads, setting.seed + part)
            for part, one in enumerate(make_workloads(loads, parts, tuples, setting.seed))
        ]
        orders = all_orders(loads)
        ranked = list(orders)
        average = sum(model_cost(loads, one) for one in orders.values()) / len(orders)
        some = [one for one in ranked if one in (*ranked[:3], *ranked[3::5], *quoted, ranked[-1])]
        counts = {
            name: count(orders[name], loads, workloads)
            for name in setting.progress.track(setting.choose(ranked, some, some), "global orders")
        }
        if len({fingerprint for _, fingerprint in counts.values()}) > 1:
            raise WrongResultsError("global orders give different results")
        contents = draw_windows(loads, setting.choose(10_000, 2_000, 200), setting.seed)
        sampled = {name: compared_with(orders[name], loads, contents) for name in counts}
        return [
            {
                "order": name,
                "rank": ranked.index(name) + 1,
                "model": round(model_cost(loads, orders[name]), 1),
                "average": round(average, 1),
                "counted": cost,
                "sampled": round(float(sampled[name].mean()), 1),
                "deviation": round(float(sampled[name].std()) / len(contents) ** 0.5, 1),
            }
            for name, (cost, _) in counts.items()
        ]

    return measure


def count(order: Order, loads: Loads, workloads: Sequence[Workload]) -> tuple[float, int]:
    """Comparisons per unit of time of EAGER MULTI-WAY NLJ; and a fingerprint of its results."""
    visited, tuples, fingerprint = [0] * len(loads), [0] * len(loads), 0
    for workload in workloads:
        algorithm = EagerNLJ(workload.task, order)
        workload.fill(algorithm)
        for one in workload.measured:
            before = algorithm.counters.visited
            results = algorithm.process(one)
            visited[one.stream] += algorithm.counters.visited - before
            tuples[one.stream] += 1
            fingerprint = add_fingerprints(fingerprint, fingerprint_of(results))
    per_tuple = [v / n for v, n in zip(visited, tuples, strict=True)]
    cost = sum(load.rate * each for load, each in zip(loads, per_tuple, strict=True))
    return round(cost, 1), fingerprint


def _draw(figure: Figure, rows: Sequence[Row], quoted: Mapping[str, int]) -> None:
    axes, places = figure.subplots(), range(len(rows))
    points = [
        (i, quoted[str(row["order"])]) for i, row in enumerate(rows) if row["order"] in quoted
    ]
    curves = [
        Curve("model", places, values(rows, "model")),
        Curve("counted (EAGER MULTI-WAY NLJ)", places, values(rows, "counted"), ":"),
        Curve("over many windows", places, values(rows, "sampled"), "--"),
    ]
    draw_curves(
        axes, curves, Axis("global order"), Axis("comparisons per unit of time"), markers=True
    )
    axes.plot(*zip(*points, strict=True), "k*", markersize=12, label="in the paper", linestyle="")
    axes.set_xticks(places, [str(row["order"]) for row in rows], rotation=90)
    share_legend(figure, [axes])


def _costs(quoted: Mapping[str, int], best: str) -> Claim:
    """Orders cost what the paper reports, and the cheapest is the one it reports."""

    def check(rows: Sequence[Row]) -> Outcome:
        models = _models(rows)
        close = all(abs(models[order] - cost) <= 0.005 * cost for order, cost in quoted.items())
        figures = ", ".join(f"{order}: {models[order]:.0f}" for order in quoted)
        holds = close and models[best] == min(models.values())
        return Outcome(holds, f"{figures}; least {min(models.values()):.0f}")

    listed = ", ".join(f"{order} {cost}" for order, cost in quoted.items())
    return Claim(
        f"orders cost: {listed}; {best} is optimal",
        f"|model / paper - 1| ≤ 0.5 % for each of them, and model({best}) = min(model)",
        check,
    )


def _worst(maximum: int) -> Claim:
    """The most expensive order costs nearly what the paper reports."""

    def check(rows: Sequence[Row]) -> Outcome:
        dearest = max(_models(rows).values())
        return Outcome(0.95 * maximum <= dearest <= maximum, f"{dearest:.0f}")

    return Claim(
        f"the worst plan costs nearly {maximum}", f"0.95 ≤ max(model) / {maximum} ≤ 1", check
    )


def _check_first_is_fast(rows: Sequence[Row]) -> Outcome:
    ranks = {int(row["rank"]): str(row["order"]) for row in rows}
    cheapest = [order for rank, order in sorted(ranks.items()) if rank <= 5]
    holds = all(order[0] == "1" for order in cheapest[:-1]) and ranks[5] == "2134"
    return Outcome(holds, f"the five cheapest: {', '.join(cheapest)}")


_FAST_FIRST: Final = Claim(
    "the cheapest plans have the fast stream first; 2134 is fifth-best",
    "the four orders of least model begin with 1, the fifth is 2134",
    _check_first_is_fast,
)


def _check_average(rows: Sequence[Row]) -> Outcome:
    models, average = _models(rows), float(rows[0]["average"])
    tried, top = ("3412", "3142", "3124"), ("1234", "2134")
    holds = (
        round(average) == 63362
        and all(models[order] < average for order in tried)
        and all(models[order] > average for order in top)
    )
    return Outcome(holds, f"average {average:.0f}")


_AVERAGE: Final = Claim(
    "all orders that the heuristic tries cost less than the average, 63362; fast streams all the "
    "way up cost more",
    "average(model) = 63362, more than model(3412, 3142, 3124), less than model(1234, 2134)",
    _check_average,
)


def _models(rows: Sequence[Row]) -> dict[str, float]:
    return {str(row["order"]): float(row["model"]) for row in rows}


_SAMPLE: Final = (
    "a few tuples with the values that all streams have cause most of the cost: the error is that "
    "of the sample, and smaller in longer profiles"
)


def _heuristic(loads: Loads) -> Claim:
    chosen = name_of(choose_global_order(loads))

    def check(rows: Sequence[Row]) -> Outcome:
        model = _models(rows)
        counted = {str(row["order"]): float(row["counted"]) for row in rows}
        holds = model[chosen] <= min(model.values()) + 0.1 and (
            counted[chosen] <= 1.05 * min(counted.values())
        )
        fewest = min(counted, key=counted.__getitem__)
        figures = f"{chosen}: {brief(counted[chosen])} counted; fewest, {fewest}"
        return Outcome(holds, f"{figures}: {brief(counted[fewest])}")

    return Claim(
        "the heuristic with fast streams moved up finds the best global order",
        "model(chosen) = min(model), counted(chosen) ≤ 1.05 min(counted) over the orders counted",
        check,
        reason=_SAMPLE,
    )


def _check_close(rows: Sequence[Row]) -> Outcome:
    many, few = (_errors(rows, column) for column in ("sampled", "counted"))
    worst, mean = _largest_and_mean(many)
    error = max(float(row["deviation"]) / float(row["sampled"]) for row in rows)
    figures = (
        f"{worst}, mean of all {mean}, standard error at most {error:.1%}; "
        "in EAGER MULTI-WAY NLJ, with fewer windows, {}, mean of all {}"
    ).format(*_largest_and_mean(few))
    return Outcome(max(map(abs, many.values())) <= 0.1, figures)


def _errors(rows: Sequence[Row], column: str) -> dict[str, float]:
    return {str(row["order"]): float(row[column]) / float(row["model"]) - 1 for row in rows}


def _largest_and_mean(errors: Mapping[str, float]) -> tuple[str, str]:
    worst = max(errors, key=lambda order: abs(errors[order]))
    mean = sum(map(abs, errors.values())) / len(errors)
    return f"largest {errors[worst]:+.1%} ({worst})", f"{mean:.1%}"


CLOSE: Final = Claim(
    "the cost model tells how many comparisons each order takes",
    "|comparisons / model - 1| ≤ 10 % for each order counted, over many windows",
    _check_close,
)


def _table(
    number: int, loads: Loads, quoted: Mapping[str, int], best: str, *more: Claim
) -> Experiment:
    return Experiment(
        f"golab-table-{number}",
        "Golab",
        f"Table {number}",
        "what the global orders of a four-way join cost",
        _measure(loads, quoted),
        partial(_draw, quoted=quoted),
        (_costs(quoted, best), *more, _heuristic(loads), CLOSE),
        f"the rates, windows and numbers of values of Table {number}; the model is that of "
        f"section 4.2, comparisons are counted in EAGER MULTI-WAY NLJ, for as many new tuples of "
        "each stream, weighted by the rates: 600 times 20 tuples, with --quick 60 times 12, with "
        "--smoke 3 times 8, and then only for some orders. How far the model is off is judged over "
        "10 000 windows, with --quick 2000, with --smoke 200, in which what the same loops compare "
        f"follows from how many tuples of each value there are. {SCALE}",
    )


EXPERIMENTS: Final = (
    _table(5, TABLE_5, {"1234": 16000, "2134": 19600}, "1234", _FAST_FIRST, _worst(90_000)),
    _table(
        6,
        TABLE_6,
        {"2134": 80400, "2314": 123_000, "2341": 248_000, "1234": 120_000},
        "2134",
        _worst(650_000),
    ),
    _table(
        7,
        TABLE_7,
        {"3412": 49542, "3142": 47977, "3124": 51954, "1234": 68200, "2134": 79000},
        "3142",
        _AVERAGE,
    ),
)
