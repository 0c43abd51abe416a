"""How many rows a second a query has recently taken in or given out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

from nilometer.database.query_status import HealthSample

LATELY: Final = 10_000_000
"""Rates vary from micro-batch to micro-batch: the mean over this time is shown (microseconds)."""


def rate_in(sample: HealthSample) -> float:
    """Rows that a query has read."""
    return sample.input_rows_per_second


def rate_out(sample: HealthSample) -> float:
    """Rows of its results."""
    return sample.output_rows_per_second


def recent_rate(
    samples: Sequence[HealthSample], rate: Callable[[HealthSample], float], now: int
) -> float | None:
    """The mean of a rate over the last seconds before an instant; None: nothing is known.

    A sample covers the time since the one before it. Where there was no micro-batch for that long,
    there were no rows.
    """
    if not samples:
        return None
    since, last = now - LATELY, samples[-1]
    if last.time <= since:
        return 0.0
    recent = [(before.time, one) for before, one in pairwise(samples) if one.time > since]
    if not recent or recent[0][0] >= last.time:
        return rate(last)
    rows = sum(rate(one) * (one.time - before) for before, one in recent)
    return rows / (last.time - recent[0][0])
