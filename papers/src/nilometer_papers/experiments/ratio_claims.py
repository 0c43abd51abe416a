"""Claims about how many times one algorithm is slower than another."""

from __future__ import annotations

from collections.abc import Sequence

from nilometer_papers.experiments.columnar import COLUMNAR
from nilometer_papers.experiments.experiment import Claim, Outcome, Row
from nilometer_papers.experiments.measured import Label, brief, distinct, mean, select, values

TIME = "microseconds"
MOST_GROWTH = 2
"""Up to this multiple of the first times there is no build-up, where loads change with the hour."""
NO_BUILD_UP = "service times do not build up as more tuples are processed, as buffers are updated"

_EACH = {
    "streams": "number of streams",
    "windows": "choice of windows",
    "case": "case",
    "capture": "capture",
}
"""The names of groups of rows in inequalities."""


def ratio(rows: Sequence[Row], slow: str, fast: str, column: str = TIME) -> float:
    """The mean of one algorithm as a multiple of another's."""
    return mean(rows, column, algorithm=slow) / mean(rows, column, algorithm=fast)


def times_slower(
    slow: str, fast: str, *, least: float, by: str, text: str, reason: str = ""
) -> Claim:
    """One algorithm takes this many times as long as another, wherever they are compared."""

    def check(rows: Sequence[Row]) -> Outcome:
        groups = {value: select(rows, **{by: value}) for value in distinct(rows, by)}
        holds = all(ratio(group, slow, fast) >= least for group in groups.values())
        figures = [
            f"{name(by, v)}: {ratio_figures(group, slow, fast)}" for v, group in groups.items()
        ]
        return Outcome(holds, "; ".join(figures))

    factor = "" if least == 1 else f"{brief(least)} × "
    return Claim(text, f"time({slow}) ≥ {factor}time({fast}) for each {_EACH[by]}", check, reason)


def does_not_build_up(*algorithms: str, by: str, text: str) -> Claim:
    """Service times do not grow, however many tuples have been processed."""

    def check(rows: Sequence[Row]) -> Outcome:
        growths, figures = [], []
        for value in distinct(rows, by):
            for one in algorithms:
                times = values(rows, TIME, algorithm=one, **{by: value})
                half = len(times) // 2
                growths.append(sum(times[-half:]) / sum(times[:half]))
                figures.append(f"{name(by, value)}: {one} {brief(growths[-1])}")
        return Outcome(max(growths) <= MOST_GROWTH, "; ".join(figures))

    inequality = (
        f"time over the second half of the tuples ≤ {MOST_GROWTH} × time over the first half "
        f"(without removal about 3 times), for {' and '.join(algorithms)}"
    )
    return Claim(text, inequality, check)


def is_best(best: str, *others: str, by: str, text: str) -> Claim:
    """One algorithm takes no more time than any of some others, wherever they are compared."""

    def check(rows: Sequence[Row]) -> Outcome:
        groups = {value: select(rows, **{by: value}) for value in distinct(rows, by)}
        holds = all(ratio(rs, one, best) >= 1 for rs in groups.values() for one in others)
        figures = [
            f"{name(by, value)}: "
            + ", ".join(f"{one} {brief(mean(rs, TIME, algorithm=one))}" for one in (best, *others))
            + " µs"
            for value, rs in groups.items()
        ]
        return Outcome(holds, "; ".join(figures))

    least = ", ".join(f"time({one})" for one in others)
    return Claim(text, f"time({best}) ≤ min({least}) for each {_EACH[by]}", check)


def scales_best(best: str, *others: str, text: str, reason: str = "") -> Claim:
    """The time of one algorithm grows least from the fewest streams to the most."""

    def check(rows: Sequence[Row]) -> Outcome:
        first, *_, last = distinct(rows, "streams")
        growths = {
            one: mean(rows, TIME, algorithm=one, streams=last)
            / mean(rows, TIME, algorithm=one, streams=first)
            for one in (best, *others)
        }
        figures = ", ".join(f"{one} {brief(growth)}" for one, growth in growths.items())
        holds = all(growths[best] < growths[one] for one in others)
        return Outcome(holds, f"from {first} to {last} streams: {figures} times")

    listed = " and ".join(others)
    inequality = f"time(most streams) / time(fewest) is less for {best} than for {listed}"
    return Claim(text, inequality, check, reason)


def batching_gains(*algorithms: str, by: str, reason: str = "") -> Claim:
    """What the columnar engine's micro-batches gain over the best of the papers' algorithms."""

    def check(rows: Sequence[Row]) -> Outcome:
        gains, figures = [], []
        for value in distinct(rows, by):
            group = select(rows, **{by: value})
            best = min(algorithms, key=lambda one: mean(group, TIME, algorithm=one))
            gains.append(ratio(group, best, COLUMNAR))
            took = mean(group, TIME, algorithm=COLUMNAR)
            figures.append(
                f"{name(by, value)}: {brief(took)} µs, {brief(gains[-1])} times as fast as {best}"
            )
        return Outcome(min(gains) > 1, "; ".join(figures))

    text = "ours: micro-batches of the columnar engine beat the best of the papers' algorithms"
    inequality = f"time(columnar) < min(time(algorithm)) for each {_EACH[by]}"
    return Claim(text, inequality, check, reason)


def ratio_figures(rows: Sequence[Row], slow: str, fast: str) -> str:
    """Both times and their ratio, and the ratio of comparisons where both have any."""
    one, other = mean(rows, TIME, algorithm=slow), mean(rows, TIME, algorithm=fast)
    compared = [mean(rows, "comparisons", algorithm=one) for one in (slow, fast)]
    counted = f", comparisons {brief(compared[0] / compared[1])}" if all(compared) else ""
    return f"{slow} {brief(one)} µs / {fast} {brief(other)} µs = {brief(one / other)}{counted}"


def name(by: str, value: Label) -> str:
    """A group in words.

    >>> name("streams", 3), name("rates", "unlike")
    ('3 streams', 'unlike')
    """
    return f"{value} {by}" if isinstance(value, int | float) else value
