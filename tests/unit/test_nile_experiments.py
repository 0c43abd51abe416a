"""Nile's experiments: what they measure is checked, and how claims are judged."""

from __future__ import annotations

from math import isnan, nan
from typing import Any

import pytest
from matplotlib.figure import Figure

from nilometer_papers.algorithms.nile.answer import Change
from nilometer_papers.experiments.experiment import Profile, Row, Setting
from nilometer_papers.experiments.nile import EXPERIMENTS
from nilometer_papers.experiments.nile.figure_13 import measure as measure_q4
from nilometer_papers.experiments.nile.production import alike, batching_gains, faster
from nilometer_papers.experiments.nile.queries import Query, q1, q2, q3, q4, q5
from nilometer_papers.experiments.nile.response_claims import (
    batches_wait,
    converges,
    expirations_come_sooner,
    grows,
    same,
    scans_cost,
    times_faster,
)
from nilometer_papers.experiments.nile.response_figure import bars_by_query, curves_by
from nilometer_papers.experiments.nile.responses import (
    Period,
    check_same_changes,
    measure_responses,
)
from nilometer_papers.experiments.nile.sales import store_sales, synthetic_sales
from nilometer_papers.experiments.service import WrongResultsError

SECOND = 1_000_000
WINDOW = 3 * SECOND
RATE = 20


@pytest.mark.parametrize(
    "query",
    [q1(WINDOW), q2(WINDOW, RATE), q3(WINDOW), q4(WINDOW, RATE), q5((WINDOW, SECOND), RATE, 0.8)],
    ids=lambda query: query.name,
)
def test_a_query_answers_the_same_in_all_pipelines_and_in_sql(query: Query) -> None:
    arrivals = synthetic_sales(query.streams, RATE, query.items, 200 * query.streams, seed=4)
    rows = measure_responses(query, arrivals, Period(WINDOW, 4 * SECOND), query=query.name)
    by_name: dict[Any, Row] = {row["algorithm"]: row for row in rows}
    ita, tpa, nta = (by_name[name] for name in ("ITA", "TPA", "NTA"))
    assert ita["changes"] == tpa["changes"] >= nta["changes"] > 0
    assert nta["tuples"] > tpa["tuples"] == ita["tuples"]
    assert tpa["probes"] > ita["probes"]
    assert nta["comparisons"] == 0 < ita["comparisons"]


def test_sales_are_as_selective_as_the_queries_want() -> None:
    query = q4(10 * SECOND, 100)
    assert query.items == round(0.25 * 1000 / 0.6)
    assert q5((10 * SECOND, 5 * SECOND), 100, 0.1).items == 7500
    sales = store_sales(3600, seed=1)
    assert 0.7 < len(sales) / 3600 < 1.4
    assert sum(one.values[2] < 250 for one in sales) / len(sales) == pytest.approx(0.25, abs=0.05)


def test_different_answers_are_not_reported() -> None:
    row = (Change((1,), 5, 1), 7.0)
    cancelled = [(Change((2,), 6, 1), 8.0), (Change((2,), 6, -1), 9.0)]
    check_same_changes({"ITA": [row], "TPA": [*cancelled, row]}, until=10)
    check_same_changes({"ITA": [row], "TPA": []}, until=5)
    with pytest.raises(WrongResultsError, match="pipelines give different answers"):
        check_same_changes({"ITA": [row], "TPA": []}, until=10)
    with pytest.raises(WrongResultsError):
        check_same_changes({"ITA": [row], "TPA": [row, row]}, until=10)


def test_a_period_without_changes_has_no_response_time() -> None:
    query = q1(WINDOW, selectivity=0.0)
    arrivals = synthetic_sales(1, RATE, query.items, 100, seed=4)
    rows = measure_responses(query, arrivals, Period(WINDOW, SECOND))
    assert all(row["changes"] == 0 and isnan(float(row["average_ms"])) for row in rows)


def points(**averages: tuple[float, float]) -> list[Row]:
    """Rows of two points, a and b."""
    return [
        {
            "algorithm": name,
            "at": at,
            "average_ms": value,
            "expired_ms": 3 * value if at == "a" else nan,
            "maximum_ms": value,
            "cpu_us": value,
        }
        for name, pair in averages.items()
        for at, value in zip("ab", pair, strict=True)
    ]


def test_claims_about_response_times() -> None:
    rows = points(ITA=(100.0, 20.0), TPA=(10.0, 10.0), NTA=(10.4, 9.0), columnar=(300.0, nan))
    assert times_faster("TPA", "ITA", 10, "at", ("a",), "").check(rows).holds
    assert not times_faster("TPA", "ITA", 10, "at", ("a", "b"), "").check(rows).holds
    assert times_faster("TPA", "ITA", 10, "at", ("a",), "").inequality.startswith("10 × average_ms")
    figures = times_faster("TPA", "ITA", 10, "at", ("a", "b"), "").check(rows).figures
    assert (
        figures == "a: TPA 10, ITA 100 ms (30, 300 ms by expirations alone); b: TPA 10, ITA 20 ms"
    )
    assert expirations_come_sooner("TPA", "ITA", 10, "at", ("a",)).check(rows).holds
    assert not expirations_come_sooner("TPA", "ITA", 10, "at", ("b",)).check(rows).holds
    assert same("TPA", "NTA", "at", ("a",), "").check(rows).holds
    assert not same("TPA", "NTA", "at", ("a", "b"), "").check(rows).holds
    assert scans_cost("at", ("b",)).check(rows).holds
    assert not scans_cost("at", ("a",)).check(rows).holds
    assert converges("at", "a", "b", "").check(rows).holds
    assert not converges("at", "b", "a", "").check(rows).holds
    assert grows(("NTA",), "cpu_us", "at", ("b", "a"), "").check(rows).holds
    assert not grows(("NTA",), "cpu_us", "at", ("a", "b"), "").check(rows).holds
    assert batches_wait("at", ("a", "b")).check(rows).holds
    assert not batches_wait("at", ("a",)).check(points(columnar=(1001.0, 0.0))).holds


def test_claims_about_throughput() -> None:
    seconds = {"ITA": 10.0, "TPA": 11.0, "NTA": 12.0, "columnar": 1.0}
    rows: list[Row] = [{"algorithm": n, "cpu_seconds": s} for n, s in seconds.items()]
    assert alike("ITA", "TPA", "").check(rows).holds
    assert not alike("NTA", "ITA", "").check(rows).holds
    assert faster("TPA", "NTA", "").check(rows).holds
    assert not faster("NTA", "TPA", "").check(rows).holds
    assert batching_gains().check(rows).figures == "columnar 1 s, 10 times as fast as ITA"


def test_throughput_is_measured_until_the_last_arrival() -> None:
    rows = measure_q4(Setting(Profile.SMOKE))
    produced = {name: [] for name in ("ITA", "TPA", "NTA", "columnar")}
    for row in rows:
        produced[row["algorithm"]].append(row["produced"])
    assert {len(counts) for counts in produced.values()} == {20}
    assert produced["TPA"][-1] == produced["NTA"][-1] == produced["columnar"][-1] > 1000


def test_experiments_are_named_for_their_figures() -> None:
    figures = [f"nile-figure-{n}" for n in range(10, 17)]
    assert [one.name for one in EXPERIMENTS] == ["nile-equation-1", *figures, "nile-load"]


@pytest.mark.parametrize(("expired", "panels"), [(3.0, 4), (nan, 3)])
def test_expirations_have_a_panel_where_they_cause_anything(expired: float, panels: int) -> None:
    rows: list[Row] = [
        {**row, "expired_ms": expired, "changes": 1, "query": row["at"], "rate": rate}
        for rate, row in enumerate(points(ITA=(9.0, 8.0), TPA=(2.0, 1.0)))
    ]
    curves, bars = Figure(), Figure()
    curves_by("rate", "tuples a second")(curves, rows)
    bars_by_query(bars, rows, {})
    for figure in (curves, bars):
        titles = [axes.get_title() for axes in figure.axes]
        assert len(titles) == panels
        assert ("average over what expirations cause" in titles) == (panels == 4)
