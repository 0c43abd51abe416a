"""TR-010 Figures 7 and 9 where joins read streams in turn, and where sales match more often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.algorithms.registry import ALGORITHMS
from nilometer_papers.algorithms.stream_tuple import StreamTuple
from nilometer_papers.experiments.experiment import Claim, Experiment, Outcome, Row, Setting
from nilometer_papers.experiments.measured import brief, distinct, mean, select, values
from nilometer_papers.experiments.plots import Axis, Curve, draw_curves, share_legend
from nilometer_papers.experiments.service import Block, check_same, serve
from nilometer_papers.experiments.tr010.figure_9a import SLOWEST, unlike_rates
from nilometer_papers.experiments.workloads.exponential import SECOND, exponential_streams
from nilometer_papers.experiments.workloads.transactions import HOUR, Stores, transactions
from nilometer_papers.experiments.workloads.turns import in_turn

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOOPS: Final = ("NLW", "MW")
IN_TIME, IN_TURN = "in the order of time", "in turn"
SIZES, PARTNERS = "stores", "partners"
LARGEST: Final = (1.0, 1.5, 2.0, 4.0)
"""How many times as much the first store sells as the last."""
ITEMS: Final = (20_000, 10_000, 5_000, 2_500, 2_000)
ORDER: Final = 10
ALMOST: Final = 5
"""The factors by which the claims of Figures 9(a) and 7 are judged."""
TESTS: Final = 4
"""For a tuple in the window Figure 5 tests IsOut once, IsIn twice and the condition once."""
_HELD: Final[Mapping[str, Any]] = {
    "color": "tab:green",
    "alpha": 0.1,
    "label": "the paper's claim holds",
}
COUNTED, TIMED = "comparisons", "microseconds"


def measure(setting: Setting) -> list[Row]:
    """What nested loops compare by tuples read; then by sizes of stores; then growth by matches."""
    streams = setting.choose((2, 3, 4, 5, 6), (2, 4, 6), (2, 3))
    rows: list[Row] = []
    for number in setting.progress.track(streams, "streams of unlike rates"):
        rows += _by_tuples(setting, number)
    for largest in setting.progress.track(LARGEST, "sizes of stores"):
        rows += _by_sizes(setting, largest)
    for items in setting.progress.track(ITEMS, "numbers of items"):
        rows += _by_partners(setting, items)
    return rows


def _by_tuples(setting: Setting, streams: int) -> list[Row]:
    tuples, rates = setting.choose(60_000, 16_000, 2_000), unlike_rates(streams)
    count = int(1.2 * tuples / streams / SLOWEST * sum(float(str(one.per_second)) for one in rates))
    arrivals, task = (
        exponential_streams(rates, count, setting.seed),
        JoinTask.uniform(streams, SECOND),
    )
    rows: list[Row] = []
    for order, ordered in ((IN_TIME, arrivals), (IN_TURN, in_turn(arrivals, streams))):
        services = _serve(task, ordered[:tuples], LOOPS)
        for name, blocks in services.items():
            rows += [_row(order, streams, one.processed, name, (one,)) for one in blocks]
    return rows


def _by_sizes(setting: Setting, largest: float) -> list[Row]:
    tuples, share = setting.choose(125_000, 40_000, 1_500), setting.choose(1, 4, 20)
    rows: list[Row] = []
    for stores in (2, 3, 4):
        sold = Stores(stores, 5000 / share, largest=largest)
        fewest = sold.sales_of(stores - 1) / sold.per_hour
        arrivals = transactions(sold, int(1.1 * tuples / stores / fewest), setting.seed)
        ordered = in_turn(arrivals, stores)[:tuples]
        services = _serve(JoinTask.uniform(stores, HOUR), ordered, LOOPS)
        rows += [_row(SIZES, stores, largest, name, one) for name, one in services.items()]
    return rows


def _by_partners(setting: Setting, items: int) -> list[Row]:
    tuples, each = setting.choose(20_000, 8_000, 1_000), setting.choose(625, 625, 100)
    rows: list[Row] = []
    for stores in (2, 6):
        sold = Stores(stores, each * stores, items=items)
        arrivals = transactions(sold, tuples, setting.seed)
        services = _serve(JoinTask.uniform(stores, HOUR), arrivals, (*LOOPS, "HW"))
        partners = round(each * sold.matching, 3)
        rows += [_row(PARTNERS, stores, partners, name, one) for name, one in services.items()]
    return rows


def _serve(
    task: JoinTask, arrivals: Sequence[StreamTuple], names: Sequence[str]
) -> dict[str, Sequence[Block]]:
    """The service of each algorithm; comparisons are the same in every run, so one is enough."""
    services = {name: serve(ALGORITHMS[name].start(task), arrivals) for name in names}
    check_same(services)
    return {name: one.blocks for name, one in services.items()}


def _row(case: str, streams: int, at: float, algorithm: str, blocks: Sequence[Block]) -> Row:
    half = blocks[len(blocks) // 2 :]
    return {
        "case": case,
        "streams": streams,
        "at": at,
        "algorithm": algorithm,
        TIMED: round(sum(one.microseconds for one in half) / len(half), 3),
        COUNTED: round(sum(one.comparisons for one in half) / len(half), 2),
    }


def draw(figure: Figure, rows: Sequence[Row]) -> None:
    """How far NLW-join is behind, by tuples read and by sizes of stores; growth by matches."""
    left, middle, right = figure.subplots(1, 3)
    _draw_by_tuples(left, rows)
    _draw_by_sizes(middle, rows)
    _draw_growth(right, rows)
    share_legend(figure, [left, middle, right])


def _draw_by_tuples(axes: Axes, rows: Sequence[Row]) -> None:
    curves = [
        Curve(
            f"{streams} streams, {timing}",
            values(group, "at", algorithm="MW"),
            _ratios(group, COUNTED),
            style,
        )
        for case, timing, style in ((IN_TURN, "in turn", "-"), (IN_TIME, "by time", "--"))
        for streams in distinct(select(rows, case=case), "streams")
        for group in (select(rows, case=case, streams=streams),)
    ]
    x, y = Axis("tuples read"), Axis("NLW-join / MW-join", log=True)
    draw_curves(axes, curves, x, y, "comparisons, streams of unlike rates")
    _shade_from(axes, ORDER)


def _draw_by_sizes(axes: Axes, rows: Sequence[Row]) -> None:
    curves = [
        Curve(f"{stores} stores, {label}", LARGEST, _ratios(group, column), style)
        for column, label, style in ((COUNTED, "comparisons", "-"), (TIMED, "time", ":"))
        for stores in distinct(select(rows, case=SIZES), "streams")
        for group in (select(rows, case=SIZES, streams=stores),)
    ]
    x = Axis("sales of the largest store / of the smallest")
    y = Axis("NLW-join / MW-join", log=True)
    draw_curves(axes, curves, x, y, "stores, read in turn", markers=True)
    _shade_from(axes, ALMOST)


def _draw_growth(axes: Axes, rows: Sequence[Row]) -> None:
    at = [float(one) for one in distinct(select(rows, case=PARTNERS), "at")]
    curves = [Curve(name, at, [_growth(rows, name, one) for one in at]) for name in (*LOOPS, "HW")]
    x = Axis("partners of a sale in another store")
    title = "stores that each sell the same"
    draw_curves(axes, curves, x, Axis("time with 6 stores / with 2"), title, markers=True)
    holds = [one for one in at if _scales_best(rows, one)]
    if holds:
        axes.axvspan(min(holds), max(holds), **_HELD)


def _shade_from(axes: Axes, ratio: float) -> None:
    axes.axhspan(ratio, axes.get_ylim()[1], **_HELD)


def _ratios(rows: Sequence[Row], column: str) -> list[float]:
    both = (values(rows, column, algorithm=one) for one in LOOPS)
    return [one / other for one, other in zip(*both, strict=True)]


def _growth(rows: Sequence[Row], algorithm: str, at: float) -> float:
    first, last = (
        mean(rows, TIMED, case=PARTNERS, streams=stores, at=at, algorithm=algorithm)
        for stores in (2, 6)
    )
    return last / first


def _scales_best(rows: Sequence[Row], at: float) -> bool:
    return _growth(rows, "HW", at) < min(_growth(rows, one, at) for one in LOOPS)


def _bounded(rows: Sequence[Row]) -> Outcome:
    figures, largest = [], []
    for streams in distinct(select(rows, case=IN_TIME), "streams"):
        ratios = _ratios(select(rows, case=IN_TIME, streams=streams), COUNTED)
        figures.append(f"{streams} streams: at most {brief(max(ratios))} times")
        largest.append(max(ratios))
    return Outcome(max(largest) < ORDER and largest[0] <= TESTS, "; ".join(figures))


def _drifts(rows: Sequence[Row]) -> Outcome:
    holds, figures = True, []
    for streams in distinct(select(rows, case=IN_TURN), "streams"):
        group = select(rows, case=IN_TURN, streams=streams)
        counted, timed = (_ratios(group, column) for column in (COUNTED, TIMED))
        quarter = max(1, len(counted) // 4)
        early, late = sum(counted[:quarter]) / quarter, sum(counted[-quarter:]) / quarter
        clock = sum(timed[-quarter:]) / quarter
        holds = holds and late >= ORDER and clock >= ORDER and late > early
        figures.append(
            f"{streams} streams: comparisons {brief(early)}, then {brief(late)} times, "
            f"the clock then {brief(clock)} times"
        )
    return Outcome(holds, "; ".join(figures))


def _unlike_stores(rows: Sequence[Row]) -> Outcome:
    holds, figures = True, []
    for stores in distinct(select(rows, case=SIZES), "streams"):
        group = select(rows, case=SIZES, streams=stores)
        counted, timed = (_ratios(group, column) for column in (COUNTED, TIMED))
        holds = holds and min(counted[-1], timed[-1]) >= ALMOST
        listed = ", ".join(
            f"{brief(one)} by comparisons and {brief(other)} by the clock at {largest:g} to 1"
            for largest, one, other in zip(LARGEST, counted, timed, strict=True)
        )
        figures.append(f"{stores} stores: {listed}")
    return Outcome(holds, "; ".join(figures))


def _scales(rows: Sequence[Row]) -> Outcome:
    best, figures = [], []
    for at in distinct(select(rows, case=PARTNERS), "at"):
        growths = {one: _growth(rows, one, float(at)) for one in (*LOOPS, "HW")}
        best.append(_scales_best(rows, float(at)))
        listed = ", ".join(f"{name} {brief(one)}" for name, one in growths.items())
        figures.append(f"{at} partners: {listed} times")
    return Outcome(best[-1] and not best[0], "; ".join(figures))


CLAIMS = (
    Claim(
        "ours: where a join reads in the order of time, MW-join cannot be an order of magnitude "
        "better: for a pair in the window NLW-join makes four tests, MW-join one",
        f"comparisons(NLW) < {ORDER} × comparisons(MW) in each block of tuples, with two streams "
        f"≤ {TESTS} ×",
        _bounded,
    ),
    Claim(
        "ours: where it reads streams of unlike rates in turn, as Figure 5 does, MW-join is an "
        "order of magnitude better than NLW-join, and the more so the more is read",
        f"comparisons and time of NLW ≥ {ORDER} × those of MW over the last quarter of the tuples; "
        "more comparisons than over the first quarter; for each number of streams",
        _drifts,
    ),
    Claim(
        "ours: where stores of unlike sizes are read in turn, MW-join is almost an order of "
        "magnitude faster than NLW-join",
        f"comparisons and time of NLW ≥ {ALMOST} × those of MW where the largest store sells "
        f"{LARGEST[-1]:g} times as much as the smallest, for each number of stores",
        _unlike_stores,
    ),
    Claim(
        "ours: whether HW-join is more scalable depends on how many partners a sale has",
        "time(6 stores) / time(2 stores) is less for HW than for NLW and MW at the most partners, "
        "not at the fewest",
        _scales,
    ),
)

EXPERIMENT = Experiment(
    "tr010-turns",
    "TR-010",
    "Figures 7 and 9 read in turn",
    "joins that take a tuple of each stream in turn, and sales with more partners",
    measure,
    draw,
    CLAIMS,
    "left: the streams of Figure 9(a), 60 000 tuples, with --quick 16 000, with --smoke 2000, read "
    "in the order of time and in turn, one tuple of each, as TurnOnStream has it in Figure 5 where "
    "all streams have tuples ready: then those of few tuples are ahead in time, and NLW-join scans "
    "all that is ahead. Middle: the stores of Figure 7, 125 000 sales, with --quick 40 000, with "
    "--smoke 1500, rates as there, read in turn; the first store sells up to four times as much as "
    "the last, those between in even steps. Right: stores that sell 625 an hour each (with --smoke "
    "100), in the order of time, and from 20 000 to 2000 items; 20 000 sales, with --quick 8000, "
    "with --smoke 1000. Sizes and items are ours: the paper tells neither. Means over the second "
    "half; each algorithm runs once, as comparisons are the same in every run",
)
