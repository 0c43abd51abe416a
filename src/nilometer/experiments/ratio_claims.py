"""Claims about how many times one algorithm is slower than another."""

from __future__ import annotations

from collections.abc import Sequence

from nilometer.experiments.columnar import COLUMNAR
from nilometer.experiments.experiment import Claim, Outcome, Row
from nilometer.experiments.measured import Label, brief, distinct, mean, select

TIME = "microseconds"


def ratio(rows: Sequence[Row], slow: str, fast: str, column: str = TIME) -> float:
    """How many times the mean of one algorithm is that of another."""
    return mean(rows, column, algorithm=slow) / mean(rows, column, algorithm=fast)


def times_slower(
    slow: str, fast: str, *, least: float, by: str, text: str, reason: str = ""
) -> Claim:
    """One algorithm takes so many times the time of another, wherever they are compared."""

    def check(rows: Sequence[Row]) -> Outcome:
        groups = {value: select(rows, **{by: value}) for value in distinct(rows, by)}
        holds = all(ratio(group, slow, fast) >= least for group in groups.values())
        told = [f"{name(by, v)}: {told_ratio(group, slow, fast)}" for v, group in groups.items()]
        return Outcome(holds, "; ".join(told))

    factor = "" if least == 1 else f"{brief(least)} × "
    return Claim(text, f"time({slow}) ≥ {factor}time({fast}) for each {by}", check, reason)


def batching_gains(*algorithms: str, by: str, reason: str = "") -> Claim:
    """What micro-batches of the columnar engine gain over the best of the papers' algorithms."""

    def check(rows: Sequence[Row]) -> Outcome:
        gains, told = [], []
        for value in distinct(rows, by):
            group = select(rows, **{by: value})
            best = min(algorithms, key=lambda one: mean(group, TIME, algorithm=one))
            gains.append(ratio(group, best, COLUMNAR))
            took = mean(group, TIME, algorithm=COLUMNAR)
            told.append(
                f"{name(by, value)}: {brief(took)} µs, {brief(gains[-1])} times as fast as {best}"
            )
        return Outcome(min(gains) > 1, "; ".join(told))

    text = "ours: micro-batches of the columnar engine beat the best of the papers' algorithms"
    return Claim(text, f"time(columnar) < min(time(algorithm)) for each {by}", check, reason)


def told_ratio(rows: Sequence[Row], slow: str, fast: str) -> str:
    """Both times and their ratio, and the ratio of comparisons where both have some."""
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
