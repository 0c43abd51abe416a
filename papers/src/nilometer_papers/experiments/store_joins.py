"""Joins of stores over an hour, as in TR-010 Figures 7 and 8 and STEAM Figure 7."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nilometer_papers.algorithms.join_task import JoinTask
from nilometer_papers.experiments.contest import Starts, contest, curve_rows
from nilometer_papers.experiments.experiment import Row, Setting
from nilometer_papers.experiments.workloads.transactions import HOUR, Stores, transactions

STREAMS: Final = (2, 3, 4)
PARAMETERS: Final = (
    "a window of 1 hour, 5000 transactions an hour over all stores, clean-up of the baseline "
    "every 10 000 tuples, as in TR-010 section 4; generated transactions in the place of the "
    "logs (20 000 items, Zipf with exponent 0.5: ours), 125 000 of them. With --quick 20 000, "
    "with --smoke 2000; then rates and clean-up are a quarter and a twentieth of that"
)

SHORT_BUCKETS: Final = (
    "each of the 20 000 items has a bucket of its own, in which few tuples are, old ones or not: "
    "XJoin makes 2.6 tests of time a tuple (3 stores), HW-join, which looks for old tuples at "
    "each visit, 4.8. Where buckets are long HW-join wins clearly: see packets in captures-joins"
)


def measure_stores(setting: Setting, starts: Callable[[int], Starts]) -> list[Row]:
    """Service over some days of sales; the algorithms are told how often to clean up."""
    tuples = setting.choose(125_000, 20_000, 2_000)
    share = setting.choose(1, 4, 20)
    rows: list[Row] = []
    for streams in setting.progress.track(STREAMS, "number of streams"):
        arrivals = transactions(Stores(streams, 5000 / share), tuples, setting.seed)
        task, title = JoinTask.uniform(streams, HOUR), f"{streams} streams"
        services = contest(setting, title, task, arrivals, starts(10_000 // share))
        rows += curve_rows(services, streams=streams)
    return rows
