"""Claims about response times under the three approaches."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

from nilometer_papers.experiments.experiment import Claim, Outcome, Row
from nilometer_papers.experiments.measured import Label, brief, mean, select, values

AVERAGE, EXPIRED, MAXIMUM, CPU = "average_ms", "expired_ms", "maximum_ms", "cpu_us"
ALL = ("ITA", "TPA", "NTA")
UNITS = {AVERAGE: "ms", EXPIRED: "ms", MAXIMUM: "ms", CPU: "µs"}
NEARLY = 0.05
"""How much two response times may differ and still be as good as each other."""
BETTER = 1 + NEARLY
"""The minimum speed, relative to another, that counts as being better."""
ORDER = 10
"""An order of magnitude."""
SCANS_COST = (
    "ours: with several windows TPA scans the buffer of MAX: that takes more CPU time than "
    "negative tuples"
)


def times_faster(
    fast: str, slow: str, least: float, by: str, at: Sequence[Label], text: str, **more: str
) -> Claim:
    """One approach is at least this many times faster than another, at some points."""
    column, reason = more.get("column", AVERAGE), more.get("reason", "")

    def check(rows: Sequence[Row]) -> Outcome:
        holds, figures = True, []
        for value in at:
            point = select(rows, **{by: value})
            first, second = (mean(point, column, algorithm=one) for one in (fast, slow))
            holds = holds and first * least <= second
            times = f"{fast} {brief(first)}, {slow} {brief(second)} {UNITS[column]}"
            apart = _by_expirations(point, fast, slow) if column == AVERAGE else ""
            figures.append(f"{value}: {times}{apart}")
        return Outcome(holds, "; ".join(figures))

    less, more_of = (f"{brief(least)} × ", "") if least > 1 else ("", f"{brief(1 / least)} × ")
    less, more_of = less.removeprefix("1 × "), more_of.removeprefix("1 × ")
    inequality = f"{less}{column}({fast}) ≤ {more_of}{column}({slow}) for {by} in {_listed(at)}"
    return Claim(text, inequality, check, reason)


def expirations_come_sooner(
    fast: str, slow: str, least: float, by: str, at: Sequence[Label]
) -> Claim:
    """What expirations alone cause, apart from what arrivals do."""
    better = "an order of magnitude better" if least == ORDER else "better"
    text = f"ours: over what expirations alone cause {fast} is {better} than {slow}, too"
    return times_faster(fast, slow, least, by, at, text, column=EXPIRED)


def _by_expirations(rows: Sequence[Row], *algorithms: str) -> str:
    """The averages over what expirations alone cause, shown beside those over all changes."""
    figures = []
    for one in algorithms:
        times = [time for time in values(rows, EXPIRED, algorithm=one) if not isnan(time)]
        if not times:
            return ""
        figures.append(brief(sum(times) / len(times)))
    return f" ({', '.join(figures)} ms by expirations alone)"


def same(first: str, second: str, by: str, at: Sequence[Label], text: str, **more: str) -> Claim:
    """Two approaches have nearly equal response times, at some points."""
    column, reason = more.get("column", AVERAGE), more.get("reason", "")

    def check(rows: Sequence[Row]) -> Outcome:
        holds, figures = True, []
        for value in at:
            point = select(rows, **{by: value})
            one, other = (mean(point, column, algorithm=name) for name in (first, second))
            holds = holds and max(one, other) <= min(one, other) * (1 + NEARLY)
            figures.append(f"{value}: {first} {brief(one)} ms, {second} {brief(other)} ms")
        return Outcome(holds, "; ".join(figures))

    inequality = f"{column} of {first} and {second} differ by ≤ 5 % for {by} in {_listed(at)}"
    return Claim(text, inequality, check, reason)


def scans_cost(by: str, at: Sequence[Label]) -> Claim:
    """The paper's reason for NTA's lead under several windows."""
    return times_faster("NTA", "TPA", 1, by, at, SCANS_COST, column=CPU)


def grows(
    algorithms: Sequence[str],
    column: str,
    by: str,
    ends: tuple[Label, Label],
    text: str,
    reason: str = "",
) -> Claim:
    """The value of some approaches is larger at the last of two points than at the first."""

    def check(rows: Sequence[Row]) -> Outcome:
        holds, figures = True, []
        for one in algorithms:
            first, last = (mean(rows, column, algorithm=one, **{by: end}) for end in ends)
            holds = holds and first < last
            figures.append(f"{one} {brief(first)} to {brief(last)} {UNITS[column]}")
        return Outcome(holds, "; ".join(figures))

    listed = ", ".join(algorithms)
    inequality = f"{column} at {by} {ends[0]} < at {by} {ends[1]} for {listed}"
    return Claim(text, inequality, check, reason)


def delays_of_ita(
    by: str, at: Sequence[Label], seconds: tuple[float, float], text: str, reason: str = ""
) -> Claim:
    """What the paper gives in seconds: waiting does not depend on how fast a machine is."""
    limits = [1000 * each for each in seconds]

    def check(rows: Sequence[Row]) -> Outcome:
        averages = [mean(rows, AVERAGE, algorithm="ITA", **{by: value}) for value in at]
        maxima = [mean(rows, MAXIMUM, algorithm="ITA", **{by: value}) for value in at]
        delays = sum(averages) / len(averages), max(maxima)
        figures = f"on average {brief(delays[0])} ms, at most {brief(delays[1])} ms"
        figures += _by_expirations([row for row in rows if row[by] in at], "ITA")
        near = [limit / 2 <= one <= 2 * limit for one, limit in zip(delays, limits, strict=True)]
        return Outcome(all(near), figures)

    inequality = (
        f"the mean of average_ms(ITA) is between half and twice {brief(limits[0])}, the largest "
        f"maximum_ms(ITA) between half and twice {brief(limits[1])}, for {by} in {_listed(at)}"
    )
    return Claim(text, inequality, check, reason)


def converges(by: str, first: Label, last: Label, text: str, reason: str = "") -> Claim:
    """ITA's lag behind the best of the others is smaller at the last point than at the first."""

    def lag(rows: Sequence[Row], value: Label) -> float:
        point = select(rows, **{by: value})
        ita, *others = (mean(point, AVERAGE, algorithm=one) for one in ALL)
        return ita - min(others)

    def check(rows: Sequence[Row]) -> Outcome:
        lags = lag(rows, first), lag(rows, last)
        figures = f"{first}: {brief(lags[0])} ms, {last}: {brief(lags[1])} ms"
        return Outcome(lags[1] < lags[0], figures)

    inequality = f"(average_ms(ITA) - min(TPA, NTA)) at {by} {last} < at {by} {first}"
    return Claim(text, inequality, check, reason)


def batches_wait(by: str, at: Sequence[Label], reason: str = "") -> Claim:
    """What the columnar engine's micro-batches cost in response time."""
    text = "ours: the columnar engine answers within twice the length of a micro-batch (0.5 s)"
    silence = "no change while it took micro-batches"

    def check(rows: Sequence[Row]) -> Outcome:
        averages = {v: mean(rows, AVERAGE, algorithm="columnar", **{by: v}) for v in at}
        figures = [f"{v}: {silence if isnan(t) else f'{brief(t)} ms'}" for v, t in averages.items()]
        return Outcome(not any(time > 1000 for time in averages.values()), "; ".join(figures))

    return Claim(text, f"average_ms(columnar) ≤ 1000 for {by} in {_listed(at)}", check, reason)


def _listed(at: Sequence[Label]) -> str:
    return ", ".join(str(one) for one in at)
