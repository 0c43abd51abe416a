"""How long `nilometer sql` takes to answer, from the start of the command, on either engine.

Run separately: python -m benchmarks.cold_start [--spark]. Every command is its own process, as for
a user. The minimum of several runs is reported, since other work on the machine only adds to it;
every answer is checked against DuckDB before its time is reported. Target: the first answer over a
CSV of a megabyte within one second, a three-way join of a million rows within three.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

RUNS: Final = 5
SMALL: Final = 30_000
"""Rows of a CSV of about a megabyte."""
LARGE: Final = 1_000_000
"""Rows of three streams in total."""
START: Final = 1_767_225_600_000_000


@dataclass(frozen=True)
class Question:
    """A statement over files, and the DuckDB query for its number of rows."""

    name: str
    statement: str
    streams: tuple[str, ...]
    truth: str


def make_small(folder: Path) -> None:
    """A stream as CSV."""
    drawn = np.random.default_rng(1)
    keys, values = drawn.integers(0, 1000, SMALL), drawn.random(SMALL).round(4)
    times = np.cumsum(drawn.integers(1, 1_000_000, SMALL)) + START
    stamps = pa.array(times, pa.timestamp("us")).cast(pa.string()).to_pylist()
    rows = zip(keys, values, stamps, strict=True)
    lines = "\n".join(f"{key},{value},{stamp}" for key, value, stamp in rows)
    (folder / "small.csv").write_text(f"k,v,ts\n{lines}\n")


def make_large(folder: Path) -> None:
    """Three streams as Parquet, with about one result per row."""
    drawn = np.random.default_rng(2)
    size = LARGE // 3
    for number in range(3):
        times = np.sort(drawn.integers(0, size * 300, size)) + START
        table = pa.table(
            {
                "k": drawn.integers(0, 20_000, size),
                "v": drawn.random(size),
                "ts": pa.array(times, pa.timestamp("us", "UTC")),
            }
        )
        pq.write_table(table, folder / f"s{number}.parquet")


def questions(folder: Path) -> list[Question]:
    small = f"read_csv('{folder}/small.csv')"
    three = [f"read_parquet('{folder}/s{number}.parquet')" for number in range(3)]
    apart = "abs(epoch_us({}.ts) - epoch_us({}.ts)) <= 5000000"
    near = " AND ".join(apart.format(*pair) for pair in ("AB", "BC", "AC"))
    return [
        Question(
            "selection, CSV of a megabyte",
            "SELECT k, v FROM A WHERE v > 0.5",
            (f"A={folder}/small.csv:ts",),
            f"SELECT count(*) FROM {small} WHERE v > 0.5",
        ),
        Question(
            "COUNT and AVG over ten minutes, CSV of a megabyte",
            "SELECT COUNT(*) AS n, AVG(v) AS mean FROM A [RANGE 10 MINUTES]",
            (f"A={folder}/small.csv:ts",),
            f"""
            SELECT 1 + 2 * count(DISTINCT instant) FROM (
                SELECT epoch_us(ts) AS instant FROM {small}
                UNION ALL SELECT epoch_us(ts) + 600000001 FROM {small})
            """,
        ),
        Question(
            "join of three, a million rows",
            "SELECT A.k, A.v, B.v AS w, C.v AS x FROM A, B, C WINDOW = 5 SECONDS "
            "WHERE A.k = B.k AND B.k = C.k",
            tuple(f"{name}={folder}/s{i}.parquet:ts" for i, name in enumerate("ABC")),
            f"""
            SELECT count(*) FROM {three[0]} A, {three[1]} B, {three[2]} C
            WHERE A.k = B.k AND B.k = C.k AND {near}
            """,
        ),
    ]


def command(question: Question, engine: str) -> list[str]:
    streams = [part for stream in question.streams for part in ("--stream", stream)]
    limit = ("--engine", engine, "--format", "csv")
    return [sys.executable, "-m", "nilometer", "sql", question.statement, *streams, *limit]


@dataclass(frozen=True)
class Took:
    """Seconds of wall-clock time and of processor time."""

    clock: float
    work: float

    def __str__(self) -> str:
        return f"{self.clock:.2f} s ({self.work:.2f} s of work)"


def least(arguments: Sequence[str], runs: int) -> tuple[Took, str]:
    """The minimum of several runs, and the output."""
    clock, work, text = [], [], ""
    for _ in range(runs):
        began, worked = time.perf_counter(), children()
        done = subprocess.run(arguments, capture_output=True, text=True, check=True)
        clock.append(time.perf_counter() - began)
        work.append(children() - worked)
        text = done.stdout
    return Took(min(clock), min(work)), text


def children() -> float:
    """The processor time of child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    engines = ("local", "spark") if "--spark" in sys.argv else ("local",)
    bare, _ = least([sys.executable, "-c", "import nilometer"], RUNS)
    print(f"import nilometer, a whole process: {bare}")
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        make_small(folder)
        make_large(folder)
        for question in questions(folder):
            ((expected,),) = duckdb.sql(question.truth).fetchall()
            for engine in engines:
                took, text = least(command(question, engine), RUNS if engine == "local" else 1)
                rows = text.count("\n") - 1
                assert rows == expected, (question.name, engine, rows, expected)
                print(f"{question.name}, {engine}: {took}, {rows:,} rows")


if __name__ == "__main__":
    main()
