"""What W-DISTINCT puts out, counted from its definition, and what Equation 1 of Nile counts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import pytest

from nilometer_papers.algorithms.nile.answer import Output
from nilometer_papers.algorithms.nile.pipeline import Approach, Arrival, Pipeline, Scheduling
from nilometer_papers.algorithms.nile.stream_scan import StreamScan
from nilometer_papers.algorithms.nile.w_distinct import WDistinct
from nilometer_papers.experiments.nile.equation_1 import KEYS, NEAR, arrivals_at, predicted
from nilometer_papers.experiments.workloads.exponential import SECOND

WINDOW: Final = 5
LASTS: Final = WINDOW * SECOND
TUPLES: Final = 60_000

Heir = Callable[[Sequence[int], int], int]
"""Of when on the tuple counts that takes over from one of a given time; the times are sorted."""


def newest(times: Sequence[int], ended: int) -> int:
    return times[bisect_right(times, ended + LASTS) - 1]


def oldest(times: Sequence[int], ended: int) -> int:
    return times[bisect_right(times, ended)]


def anew(times: Sequence[int], ended: int) -> int:
    return ended + LASTS


def outputs(times: Sequence[int], heir: Heir | None) -> int:
    """How often one value is put out: it is if nothing stands for it, or if a duplicate takes over.

    Without an heir only the next arrival is put out again.
    """
    count, place = 0, 0
    while place < len(times):
        stands, count = times[place], count + 1
        while heir and bisect_right(times, stands + LASTS) > bisect_right(times, stands):
            stands, count = heir(times, stands), count + 1
        place = bisect_right(times, stands + LASTS)
    return count


def by_value(arrivals: Sequence[Arrival]) -> Mapping[int, list[int]]:
    times: dict[int, list[int]] = {}
    for one in arrivals:
        times.setdefault(one.values[0], []).append(one.time)
    return times


def beside_the_equation(rate: float, heir: Heir | None) -> float:
    arrivals = arrivals_at(rate, TUPLES / rate, seed=3)
    count = sum(outputs(times, heir) for times in by_value(arrivals).values())
    return count * rate / TUPLES / predicted(rate, WINDOW)


@pytest.mark.parametrize("rate", [1.0, 5.0, 20.0])
def test_what_w_distinct_puts_out_is_what_its_definition_says(rate: float) -> None:
    arrivals = arrivals_at(rate, 300, seed=2)
    output = Output(WDistinct(StreamScan(0, LASTS)))
    Pipeline(output, Approach.TPA, lambda: 0, Scheduling.CLOCK).replay(arrivals)
    last = arrivals[-1].time
    expected = sum(outputs(times, newest) for times in by_value(arrivals).values())
    late = sum(one.instant > last for one in output.changes)
    assert late == 0
    count = sum(one.sign > 0 for one in output.changes)
    # Those that would take over after the last arrival are not put out any more.
    assert 0 <= expected - count <= KEYS
    assert count > 200


@pytest.mark.parametrize("rate", [1.0, 2.0, 5.0, 10.0, 20.0])
def test_equation_1_counts_each_value_once_in_each_of_windows_side_by_side(rate: float) -> None:
    arrivals = arrivals_at(rate, TUPLES / rate, seed=3)
    count = len({(one.values[0], one.time // LASTS) for one in arrivals})
    assert count * rate / TUPLES == pytest.approx(predicted(rate, WINDOW), rel=0.03)


@pytest.mark.parametrize(
    ("heir", "ratio"), [(newest, 1.23), (oldest, 1.54), (anew, 1.15), (None, 0.78)]
)
def test_whichever_duplicate_takes_over_windows_slide_and_the_rate_is_another(
    heir: Heir | None, ratio: float
) -> None:
    """Five tuples a second in five seconds are about as many as there are values."""
    measured = beside_the_equation(5.0, heir)
    assert measured == pytest.approx(ratio, abs=0.03)
    assert abs(measured - 1) > NEAR


@pytest.mark.parametrize("rate", [0.05, 100.0])
def test_the_equation_is_right_where_a_window_has_far_fewer_or_far_more_tuples_than_values(
    rate: float,
) -> None:
    assert beside_the_equation(rate, newest) == pytest.approx(1, abs=NEAR)
