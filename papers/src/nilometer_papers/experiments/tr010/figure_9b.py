"""TR-010 Figure 9(b): NLW-join, MW-join and HW-join for 2-6 stores of comparable rates."""

from __future__ import annotations

from collections.abc import Sequence

from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.experiments.contest import contest, from_registry, steady_rows
from nilometer_papers.experiments.experiment import Claim, Experiment, Outcome, Row, Setting
from nilometer_papers.experiments.measured import distinct, select
from nilometer_papers.experiments.ratio_claims import (
    TIME,
    batching_gains,
    is_best,
    ratio,
    ratio_figures,
    scales_best,
)
from nilometer_papers.experiments.service_figure import draw_service_by_streams
from nilometer_papers.experiments.workloads.transactions import HOUR, Stores, transactions

FEWER = (
    "5000 an hour over all stores are fewer for each store the more stores there are: from 2 to 6 "
    "stores the comparisons of NLW-join fall from 2400 to 350 a tuple, those of MW-join from 790 "
    "to 290 (quick). HW-join makes 6 all along, and a step of its pipeline for each store"
)


def measure(setting: Setting) -> list[Row]:
    """Service times once stores have sold for hours, by the number of streams."""
    tuples, share = setting.choose(60_000, 15_000, 2_000), setting.choose(1, 4, 20)
    rows: list[Row] = []
    for streams in setting.progress.track((2, 3, 4, 5, 6), "number of streams"):
        arrivals = transactions(Stores(streams, 5000 / share), tuples, setting.seed)
        task, starts = JoinTask.uniform(streams, HOUR), from_registry("NLW", "MW", "HW")
        services = contest(setting, f"{streams} streams", task, arrivals, starts)
        rows += steady_rows(services, streams=streams)
    return rows


def _converge(rows: Sequence[Row]) -> Outcome:
    groups = {n: select(rows, streams=n) for n in distinct(rows, "streams")}
    figures = "; ".join(
        f"{n} streams: {ratio_figures(one, 'NLW', 'MW')}" for n, one in groups.items()
    )
    holds = []
    for column in (TIME, "comparisons"):
        first, *_, last = (ratio(one, "NLW", "MW", column) for one in groups.values())
        holds.append(abs(last - 1) < abs(first - 1) and 0.5 <= last <= 2)
    return Outcome(all(holds), figures)


CLAIMS = (
    Claim(
        "at comparable rates NLW-join and MW-join converge as streams are added",
        "NLW / MW is nearer to 1 for the most streams than for the fewest, and then between 1/2 "
        "and 2, by the time and by comparisons",
        _converge,
        "by comparisons they do, as MW-join's fall less: its second mode compares what NLW-join "
        "does. But a comparison of NLW-join takes longer the more is stored: with six stores "
        "0.089 µs at 5000 sales an hour, 0.057 at 2500",
    ),
    is_best("HW", "NLW", "MW", by="streams", text="HW-join achieves the best performance"),
    scales_best("HW", "NLW", "MW", text="HW-join is more scalable", reason=FEWER),
    batching_gains("NLW", "MW", "HW", by="streams"),
)

EXPERIMENT = Experiment(
    "tr010-figure-9b",
    "TR-010",
    "Figure 9(b)",
    "2-6 stores of comparable rates",
    measure,
    draw_service_by_streams,
    CLAIMS,
    "a window of 1 hour, 5000 transactions an hour over all stores (TR-010 section 4.3), "
    "generated transactions (20 000 items, Zipf with exponent 0.5: ours), 60 000 of them, of which "
    "the second half counts. With --quick 15 000, with --smoke 2000; then rates are a quarter and "
    "a twentieth of that",
)
