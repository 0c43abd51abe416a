"""Claims are judged by what their inequalities say, on both sides of the line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from matplotlib.figure import Figure

from nilometer_papers.experiments.experiment import Claim, Row
from nilometer_papers.experiments.nile.production import POINTS, rises_slower
from nilometer_papers.experiments.nile.response_claims import delays_of_ita, grows
from nilometer_papers.experiments.plots import Axis, Curve, draw_curves, panels
from nilometer_papers.experiments.ratio_claims import (
    batching_gains,
    does_not_build_up,
    is_best,
    scales_best,
    times_slower,
)


def holds(claim: Claim, rows: Sequence[Row]) -> bool:
    return claim.check(rows).holds


def curve(times: Mapping[str, Sequence[float]]) -> list[Row]:
    """Service times over tuples processed."""
    return [
        {"streams": 2, "algorithm": name, "processed": i, "microseconds": time, "comparisons": 1.0}
        for name, line in times.items()
        for i, time in enumerate(line)
    ]


def by_streams(times: Mapping[str, Sequence[float]]) -> list[Row]:
    """Service times from two streams on."""
    return [
        {"streams": 2 + i, "algorithm": name, "microseconds": time, "comparisons": 1.0}
        for name, line in times.items()
        for i, time in enumerate(line)
    ]


@pytest.mark.parametrize(("last", "expected"), [(4.0, True), (4.1, False)])
def test_what_builds_up(last: float, expected: bool) -> None:
    claim = does_not_build_up("HW", "NLW", by="streams", text="")
    assert holds(claim, curve({"HW": [1, 1], "NLW": [2, last]})) == expected


@pytest.mark.parametrize(("slow", "expected"), [(10.0, True), (9.9, False)])
def test_how_many_times_slower(slow: float, expected: bool) -> None:
    claim = times_slower("NLW", "MW", least=10, by="streams", text="")
    assert holds(claim, by_streams({"NLW": [50, slow], "MW": [1, 1]})) == expected


@pytest.mark.parametrize(("hw", "expected"), [(3.0, True), (3.1, False)])
def test_which_is_best(hw: float, expected: bool) -> None:
    claim = is_best("HW", "NLW", "MW", by="streams", text="")
    assert holds(claim, by_streams({"HW": [1, hw], "NLW": [9, 9], "MW": [2, 3]})) == expected


@pytest.mark.parametrize(("hw", "expected"), [(3.9, True), (4.0, False)])
def test_which_scales_best(hw: float, expected: bool) -> None:
    claim = scales_best("HW", "NLW", "MW", text="")
    assert holds(claim, by_streams({"HW": [2, hw], "NLW": [1, 9], "MW": [1, 2]})) == expected


@pytest.mark.parametrize(("columnar", "expected"), [(1.9, True), (2.0, False)])
def test_batches_are_compared_with_the_best(columnar: float, expected: bool) -> None:
    claim = batching_gains("NLW", "MW", by="streams")
    rows = by_streams({"NLW": [9, 2], "MW": [3, 3], "columnar": [1, columnar]})
    assert holds(claim, rows) == expected


def responses(times: Mapping[str, Sequence[float]]) -> list[Row]:
    """Response times by rate."""
    return [
        {
            "rate": rate,
            "algorithm": name,
            "average_ms": time,
            "expired_ms": time / 2,
            "maximum_ms": 2 * time,
        }
        for name, line in times.items()
        for rate, time in zip((5, 10), line, strict=True)
    ]


@pytest.mark.parametrize(("nta", "expected"), [(2.1, True), (2.0, False)])
def test_what_grows_grows_under_each_approach(nta: float, expected: bool) -> None:
    claim = grows(("TPA", "NTA"), "average_ms", "rate", (5, 10), text="")
    assert holds(claim, responses({"TPA": [1, 2], "NTA": [2, nta]})) == expected


@pytest.mark.parametrize(
    ("ita", "expected"), [((500, 500), True), ((400, 500), False), ((1000, 1001), False)]
)
def test_delays_in_seconds(ita: tuple[float, float], expected: bool) -> None:
    """On average 0.5 to 2 s; at most 0.5 to 2 s, where the maximum is twice the average."""
    claim = delays_of_ita("rate", (5, 10), (1.0, 1.0), text="")
    assert holds(claim, responses({"ITA": ita})) == expected


@pytest.mark.parametrize(("last", "expected"), [(4.0, True), (3.9, False)])
def test_times_rise_over_the_second_half(last: float, expected: bool) -> None:
    def rows(name: str, middle: float, end: float) -> list[Row]:
        times = [middle] * (POINTS // 2) + [end] * (POINTS // 2)
        return [{"algorithm": name, "produced": i, "cpu_seconds": t} for i, t in enumerate(times)]

    claim = rises_slower("NTA", "TPA", text="")
    assert holds(claim, [*rows("NTA", 1, 2), *rows("TPA", 2, last)]) == expected


@pytest.mark.parametrize("heights", [(1.0, 5.0), (5.0, 1.0)])
def test_panels_on_one_scale_show_all_curves(heights: tuple[float, float]) -> None:
    axes = panels(Figure(), 2)
    for one, height in zip(axes, heights, strict=True):
        draw_curves(one, [Curve("MW", [0, 1], [height / 2, height])], Axis("x"), Axis("y"))
    for one in axes:
        assert one.get_ylim() == (0, pytest.approx(5.25))
