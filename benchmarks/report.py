"""The table of ratios from the measurements of one run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.measure import STREAMS, WINDOWS
from benchmarks.windowed import EXECUTIONS, LONG, QUESTIONS, SHORT

Measured = dict[str, dict[str, Any]]
_CHAINS = ("chain", "chain-rocksdb-2", "chain-rocksdb-4")


@dataclass(frozen=True)
class Ratio:
    """One line: what is compared, both sides, their ratio, and what it should be."""

    what: str
    ours: str
    theirs: str
    ratio: str
    wanted: str = ""
    verdict: str = ""

    def to_json(self) -> dict[str, str]:
        return asdict(self)


def ratios(measured: Measured) -> list[Ratio]:
    """Every line for which all measurements exist."""
    lines = []
    for line in (
        _base,
        _sql,
        _state,
        _memory,
        _log_join,
        _log_rows,
        _short,
        _windows,
        _streams,
        _near,
        _kernel,
        _windowed,
        _executions,
    ):
        try:
            lines += list(line(measured))
        except KeyError:  # a measurement is missing
            continue
    return lines


def best_chain(measured: Measured) -> dict[str, Any]:
    """The fastest of Spark's own variants."""
    runs = [measured[name] for name in _CHAINS if name in measured]
    return max(runs or [measured["chain"]], key=lambda run: run["rows_per_second"])


def _base(m: Measured) -> Iterator[Ratio]:
    join = m["beside-floor"]["join"]
    what = "3 streams, 300 000-row batches: rate against Spark's chain"
    yield _at_least(what, join, best_chain(m), 7)
    for name in _CHAINS[1:]:
        if name in m:
            what = f"the same against Spark's chain on {name.removeprefix('chain-')}"
            yield _faster(what, join, m[name])
    yield _at_most("the same: time against the floor", join, m["beside-floor"]["floor"], 1.6)


def _sql(m: Measured) -> Iterator[Ratio]:
    sql, join = m["sql-beside-join"]["sql"], m["sql-beside-join"]["join"]
    yield _at_most("the same in SQL: time against nm.window_join", sql, join, 1.15)


def _state(m: Measured) -> Iterator[Ratio]:
    join, chain = m["join-6-batches"], m["chain"]
    ours, theirs = join["state_file_bytes"], chain["state_file_bytes"]
    part = theirs / ours
    yield Ratio(
        "state files that a restart reads, after 6 batches each",
        _bytes(ours),
        _bytes(theirs),
        f"1/{part:.0f}",
        "1/20",
        _verdict(part >= 20),
    )
    ours, theirs = join["state_memory_bytes"], chain["state_memory_bytes"]
    yield Ratio("state in memory, as Spark counts", _bytes(ours), _bytes(theirs), "")


def _memory(m: Measured) -> Iterator[Ratio]:
    ours, theirs = m["join-6-batches"]["peak_bytes"], m["chain"]["peak_bytes"]
    yield Ratio(
        "peak memory of the whole run", _bytes(ours), _bytes(theirs), f"{ours / theirs:.2f}"
    )


def _log_join(m: Measured) -> Iterator[Ratio]:
    what = "from log to result log, 1 200 000-row batches: rate against Spark's chain"
    yield _at_least(what, m["log-join"], m["chain-600k"], 12)


def _log_rows(m: Measured) -> Iterator[Ratio]:
    pair = m["log-rows"]
    what = "a log as rows: time against Spark's source of Parquet files"
    yield _at_most(what, pair["log"], pair["files"], 1.3)


def _short(m: Measured) -> Iterator[Ratio]:
    what = "batches of a tenth of the window: rate against Spark's chain"
    pair = m["short-beside-floor"]
    yield _faster(what, pair["join"], m["chain-short"])
    yield _at_most("the same: time against the floor", pair["join"], pair["floor"], None)


def _windows(m: Measured) -> Iterator[Ratio]:
    base = m[f"window-{WINDOWS[0]}"]
    for window in WINDOWS[1:]:
        wanted = 1.3 if window == WINDOWS[-1] else None
        what = f"a window of {window} s against one of {WINDOWS[0]} s: time of a batch"
        yield _at_most(what, m[f"window-{window}"], base, wanted)


def _streams(m: Measured) -> Iterator[Ratio]:
    for n in STREAMS:
        if f"chain-streams-{n}" in m:
            what = f"{n} streams: rate against Spark's chain"
            yield _faster(what, m[f"streams-{n}"], m[f"chain-streams-{n}"])
        elif f"streams-{n}" in m:
            rate = f"{m[f'streams-{n}']['rows_per_second']:,.0f}/s"
            yield Ratio(f"{n} streams", rate, "did not finish", "")


def _near(m: Measured) -> Iterator[Ratio]:
    yield _faster("|A.v - B.v| < x: merge against nested", m["near-merge"], m["near-nested"])
    spark = m["near-spark"]
    what = "the same against Spark, made to accept it by a constant key"
    if "rows_per_second" in spark:
        yield _faster(what, m["near-merge"], spark)
    else:
        rate = f"{m['near-merge']['rows_per_second']:,.0f}/s"
        yield Ratio(what, rate, f"nothing in {spark['unfinished_after_seconds']} s", "")


def _kernel(m: Measured) -> Iterator[Ratio]:
    kernel = m["kernel"]
    yield Ratio(
        "kernel alone, one core: time against a sort of the same rows",
        f"{kernel['rows_per_second']:,.0f}/s",
        f"{kernel['sort_rows_per_second']:,.0f}/s",
        f"{kernel['times_the_sort']:.2f}",
    )


def _windowed(m: Measured) -> Iterator[Ratio]:
    for name, question in QUESTIONS.items():
        short, long = m.get(f"{name}-rows-{SHORT}s"), m.get(f"{name}-rows-{LONG}s")
        columnar = m.get(f"{name}-columnar-{SHORT}s")
        if short is not None:
            yield _rate(f"{name}, rows in and out, window of {SHORT} s", short, question.wanted)
        if columnar is not None:
            yield _rate(
                f"{name}, from log to log, window of {SHORT} s", columnar, 2 * question.wanted
            )
        if short is not None and long is not None:
            what = f"{name}: a window of {LONG} s against one of {SHORT} s: time of a batch"
            yield _at_most(what, long, short, 1.3)
        for window, ours in ((SHORT, short), (LONG, long)):
            theirs = m.get(f"{name}-duckdb-{window}s")
            if ours is not None and theirs is not None:
                what = f"{name}, {window} s: rate against DuckDB over all rows at once"
                yield _faster(what, ours, theirs)


def _executions(m: Measured) -> Iterator[Ratio]:
    best = m["two-stages-tpa"]
    for name in EXECUTIONS[1:]:
        what = f"a join under a GROUP BY on another key: time of {name.upper()} against TPA"
        yield _at_most(what, m[f"two-stages-{name}"], best, None)


def _rate(what: str, ours: dict[str, Any], wanted: float) -> Ratio:
    rate = ours["rows_per_second"]
    good = _verdict(rate >= wanted)
    return Ratio(what, f"{rate:,.0f}/s", "", "", f"≥ {wanted:,.0f}/s", good)


def _faster(what: str, ours: dict[str, Any], theirs: dict[str, Any]) -> Ratio:
    a, b = ours["rows_per_second"], theirs["rows_per_second"]
    return Ratio(what, f"{a:,.0f}/s", f"{b:,.0f}/s", f"{a / b:.1f}")


def _at_least(what: str, ours: dict[str, Any], theirs: dict[str, Any], wanted: float) -> Ratio:
    line = _faster(what, ours, theirs)
    good = ours["rows_per_second"] / theirs["rows_per_second"] >= wanted
    return Ratio(what, line.ours, line.theirs, line.ratio, f"≥ {wanted:g}", _verdict(good))


def _at_most(
    what: str, ours: dict[str, Any], theirs: dict[str, Any], wanted: float | None
) -> Ratio:
    a, b = ours["mean_ms"], theirs["mean_ms"]
    if wanted is None:
        return Ratio(what, _ms(a), _ms(b), f"{a / b:.2f}")
    good = a / b <= wanted
    return Ratio(what, _ms(a), _ms(b), f"{a / b:.2f}", f"≤ {wanted:g}", _verdict(good))


def _verdict(good: bool) -> str:
    return "met" if good else "missed"


def _ms(milliseconds: float) -> str:
    return f"{milliseconds:,.0f} ms"


def _bytes(size: float) -> str:
    return f"{size / 1e6:,.1f} MB"
