"""Answers that change: sliding GROUP BY, DISTINCT and EXCEPT, beside DuckDB over all rows."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

import nilometer as nm
from benchmarks.loads import Load
from benchmarks.log_queries import open_logs, start_statement
from benchmarks.queries import read, session
from benchmarks.watch import Run, traffic_by_nilometer, watch
from nilometer.log.reader import LogReader

ONE: Final = Load(streams=1, keys=1000, rate=1000, batches=26)
TWO: Final = Load(streams=2, keys=1000, rate=500, batches=26)
WARM_UP: Final = 16
"""After twelve micro-batches the longest window is full, and rows start to leave it."""
SHORT: Final = 10
LONG: Final = 3600
CHECKED: Final = 50
"""The number of keys whose changes DuckDB counts as well."""


@dataclass(frozen=True)
class Question:
    """A query, with {w} for the length of its windows in seconds."""

    sql: str
    load: Load
    wanted: int
    """The target in input rows per second on two cores, rows in and rows out."""
    values: str = ""
    """For a GROUP BY: the same aggregates in DuckDB's SQL."""


JOINED: Final = Question(
    "SELECT CAST(A.v * 1000 AS BIGINT) AS k, COUNT(*) AS n "
    "FROM A [RANGE {w} SECONDS], B [RANGE {w} SECONDS] WHERE A.k = B.k "
    "GROUP BY CAST(A.v * 1000 AS BIGINT)",
    Load(streams=2, keys=5000, rate=500, batches=20),
    0,
)
"""A join on one key under a GROUP BY on another: about one result per row, two stages."""
EXECUTIONS: Final = ("tpa", "nta", "ita")
QUESTIONS: Final = {
    "sums": Question(
        "SELECT k, SUM(v) AS s, COUNT(*) AS n, AVG(v) AS a FROM A [RANGE {w} SECONDS] GROUP BY k",
        ONE,
        100_000,
        "sum(v), count(v), avg(v)",
    ),
    "extremes": Question(
        "SELECT k, MIN(v) AS low, MAX(v) AS high FROM A [RANGE {w} SECONDS] GROUP BY k",
        ONE,
        80_000,
        "min(v), max(v)",
    ),
    "median": Question(
        "SELECT k, MEDIAN(v) AS middle FROM A [RANGE {w} SECONDS] GROUP BY k",
        ONE,
        40_000,
        "median(v)",
    ),
    "distinct": Question("SELECT DISTINCT k FROM A [RANGE {w} SECONDS]", ONE, 150_000),
    "except": Question(
        "SELECT k FROM A [RANGE {w} SECONDS] EXCEPT "
        "SELECT k FROM B [RANGE {w} SECONDS] WHERE v < 0.05",
        TWO,
        150_000,
    ),
}


def rows(name: str, window: int) -> dict[str, Any]:
    """A query over rows that Spark reads, with results returned to Spark."""
    return _rows(QUESTIONS[name], window, "auto", WARM_UP)


def _rows(question: Question, window: int, execution: str, warm_up: int) -> dict[str, Any]:
    spark = session()
    seen: list[StreamingQuery] = []

    def start(checkpoint: Path) -> StreamingQuery:
        db = nm.connect(spark, execution=execution)
        for stream, frame in read(spark, question.load).items():
            db.create_stream(stream, frame, time="ts")
        answer = _counted(db.sql(question.sql.format(w=window)))
        writer = answer.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
        seen.append(writer.trigger(availableNow=True).start())
        return seen[0]

    run = watch(start, warm_up)
    checked = sum(
        int(report["observedMetrics"]["counted"]["checked"])
        for report in seen[0].recentProgress
        if "counted" in report["observedMetrics"]
    )
    return _checked(question, window, run, checked)


def two_stages(execution: str) -> dict[str, Any]:
    """A join under a GROUP BY on another key."""
    return _rows(JOINED, SHORT, execution, warm_up=8)


def columnar(name: str, window: int) -> dict[str, Any]:
    """The same from logs to a log."""
    question = QUESTIONS[name]
    logs = open_logs(session(), question.load, question.load.rows_per_file)
    checked = 0

    def start(checkpoint: Path) -> StreamingQuery:
        started = start_statement(logs, question.sql.format(w=window), checkpoint)
        started.awaitTermination()
        results = LogReader.open(checkpoint.with_name("results"))
        nonlocal checked
        for frame in results.read(results.start):
            checked += pc.sum(pc.less(frame.rows.column(0), CHECKED)).as_py() or 0
        return started

    return _checked(question, window, watch(start, WARM_UP, traffic_by_nilometer), checked)


def reference(name: str, window: int) -> dict[str, Any]:
    """The aggregates at every arrival, over all rows at once, by DuckDB on as many cores."""
    question = QUESTIONS[name]
    load = question.load
    files = load.folder("A", "parquet") / "*.parquet"
    values = " + ".join(f"coalesce({one} OVER recent, 0)" for one in question.values.split(", "))
    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    started = time.perf_counter()
    connection.sql(
        f"SELECT sum(x) FROM (SELECT {values} AS x FROM '{files}' WINDOW recent AS "
        f"(PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL {window} SECONDS PRECEDING "
        "AND CURRENT ROW))"
    ).fetchall()
    seconds = time.perf_counter() - started
    return {"rows_per_second": load.rows / seconds, "results": load.rows}


def _counted(changes: DataFrame) -> DataFrame:
    return changes.observe(
        "counted",
        F.count(F.lit(1)).alias("rows"),
        F.count(F.expr(f"CASE WHEN k < {CHECKED} THEN 1 END")).alias("checked"),
    )


def _checked(question: Question, window: int, run: Run, checked: int) -> dict[str, Any]:
    expected = count_changes(question, window)
    if checked != expected:
        raise SystemExit(f"wrong: {checked:,} changes of checked keys, DuckDB says {expected:,}")
    return {**run.to_json(), "checked": expected}


def count_changes(question: Question, window: int) -> int:
    """Changes strictly before the last watermark, for the keys that are checked."""
    instants = _instants_of_groups if question.values else _instants_of_sets
    if question is JOINED:
        instants = _instants_of_joined
    [(changes,)] = duckdb.sql(instants(question, window * 1_000_000)).fetchall()
    return int(changes or 0)


def _read(load: Load, name: str) -> str:
    files = load.folder(name, "parquet") / "*.parquet"
    return f"(SELECT epoch_us(ts) AS t, k, v FROM '{files}' WHERE k < {CHECKED})"


def _watermark(load: Load) -> str:
    latest = [
        f"(SELECT epoch_us(max(ts)) FROM '{load.folder(name, 'parquet') / '*.parquet'}')"
        for name in load.names
    ]
    return f"least({', '.join(latest)})"


def _instants_of_groups(question: Question, window: int) -> str:
    """One row each of the old and the new answer at every instant at which they differ."""
    source = _read(question.load, "A")
    names = [f"x{i}" for i in range(len(question.values.split(", ")))]
    values = ", ".join(
        f"{one} OVER recent AS {name}"
        for one, name in zip(question.values.split(", "), names, strict=True)
    )
    before = ", ".join(f"lag({name}) OVER later AS before_{name}" for name in names)
    differ = " OR ".join(f"{name} IS DISTINCT FROM before_{name}" for name in names)
    return f"""
        WITH events AS (SELECT k, t, v FROM {source}
                        UNION ALL SELECT k, t + {window} + 1, NULL FROM {source}),
        states AS (SELECT DISTINCT k, t, count(v) OVER recent AS rows, {values} FROM events
                   WINDOW recent AS (PARTITION BY k ORDER BY t
                                     RANGE BETWEEN {window} PRECEDING AND CURRENT ROW)),
        steps AS (SELECT *, coalesce(lag(rows) OVER later, 0) AS before_rows, {before} FROM states
                  WINDOW later AS (PARTITION BY k ORDER BY t))
        SELECT sum((rows > 0)::INT + (before_rows > 0)::INT) FROM steps
        WHERE t < {_watermark(question.load)}
          AND ({differ} OR (rows > 0) <> (before_rows > 0))"""


def _instants_of_joined(question: Question, window: int) -> str:
    """The same for counts of pairs, each of which is valid while both of its rows are."""
    load = question.load
    a, b = (
        f"(SELECT epoch_us(ts) AS t, epoch_us(ts) // {window} AS piece, k, v "
        f"FROM '{load.folder(name, 'parquet') / '*.parquet'}')"
        for name in "AB"
    )
    return f"""
        WITH pairs AS (SELECT CAST(floor(a.v * 1000) AS BIGINT) AS g, greatest(a.t, b.t) AS first,
                              least(a.t, b.t) + {window} + 1 AS last
                       FROM {a} a, (SELECT *, piece + step AS near
                                    FROM {b}, (VALUES (-1), (0), (1)) AS steps(step)) b
                       WHERE a.k = b.k AND a.piece = b.near AND abs(a.t - b.t) <= {window}
                         AND a.v * 1000 < {CHECKED}),
        events AS (SELECT g, first AS t, 1 AS diff FROM pairs
                   UNION ALL SELECT g, last, -1 FROM pairs),
        net AS (SELECT g, t, sum(diff) AS diff FROM events GROUP BY g, t),
        steps AS (SELECT t, diff, sum(diff) OVER (PARTITION BY g ORDER BY t) AS n FROM net)
        SELECT sum((n > 0)::INT + (n - diff > 0)::INT) FROM steps
        WHERE diff <> 0 AND t < {_watermark(load)}"""


def _instants_of_sets(question: Question, window: int) -> str:
    """A change at every instant at which a key enters or leaves the answer."""
    load = question.load
    sides = [("A", 0, "true")] + ([("B", 1, "v < 0.05")] if load.streams == 2 else [])
    events = " UNION ALL ".join(
        f"SELECT {side} AS side, k, t + {step} AS t, {diff} AS diff "
        f"FROM {_read(load, name)} WHERE {test}"
        for name, side, test in sides
        for step, diff in ((0, 1), (window + 1, -1))
    )
    return f"""
        WITH events AS ({events}),
        net AS (SELECT k, t, sum(diff) FILTER (side = 0) AS a, sum(diff) FILTER (side = 1) AS b
                FROM events GROUP BY k, t),
        counts AS (SELECT k, t, sum(coalesce(a, 0)) OVER later AS a, sum(coalesce(b, 0)) OVER later
                   AS b FROM net WINDOW later AS (PARTITION BY k ORDER BY t)),
        answer AS (SELECT k, t, a > 0 AND b = 0 AS there FROM counts),
        steps AS (SELECT t, there, coalesce(lag(there) OVER (PARTITION BY k ORDER BY t), false)
                  AS before FROM answer)
        SELECT count(*) FROM steps WHERE there <> before AND t < {_watermark(load)}"""
