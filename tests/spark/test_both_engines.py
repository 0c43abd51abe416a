"""`nilometer sql` on both engines: the same text in every format, to the last letter."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.spark.test_cli_sql import refusal, run

KINDS = ("north", "south", "", 'so "quoted", it is', "é\tü", "NULL")


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two streams, as CSV and as JSON lines, and a table; the same in every run."""
    made = tmp_path_factory.mktemp("both")
    chosen = random.Random(7)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    lines = ["k,store,v,small,flag,day,ts"]
    for number in range(120):
        ts = start + timedelta(milliseconds=chosen.randrange(90_000))
        store = chosen.choice(KINDS).replace('"', '""')
        v = chosen.choice(["", "0.1", "-2.5", "12345678.5", "1e-7", "3.0", "100.25"])
        flag = chosen.choice(["true", "False", ""])
        day = chosen.choice(["2026-01-01", "", "2025-12-31"])
        small = chosen.choice(["", "1", "-7", "12"])
        lines.append(f'{number % 9},"{store}",{v},{small},{flag},{day},{ts:%Y-%m-%d %H:%M:%S.%f}')
    (made / "a.csv").write_text("\n".join(lines) + "\n")
    rows = []
    for number in range(80):
        ts = start + timedelta(milliseconds=chosen.randrange(90_000))
        rows.append(
            f'{{"k": {number % 7}, "w": {number / 8}, "l": [{number}, null], "ts": "{ts}"}}'
        )
    (made / "b.jsonl").write_text("\n".join(rows))
    (made / "t.csv").write_text("k,name\n1,one\n2,two\n2,zwei\n3,\n")
    return made


def both(folder: Path, *arguments: str) -> str:
    """What both engines write, which is the same."""
    sources = [
        *("--stream", f"A={folder}/a.csv:ts", "--stream", f"B={folder}/b.jsonl:ts"),
        *("--table", f"T={folder}/t.csv"),
    ]
    here, there = (
        run("sql", *arguments, *sources, "--engine", engine) for engine in ("local", "spark")
    )
    assert here.exception is None, here.exception
    assert there.exception is None, there.exception
    assert here.stdout == there.stdout
    return here.stdout


STATEMENTS = [
    "SELECT * FROM A",
    "SELECT k, w, l, ts FROM B WHERE w > 2",
    "SELECT A.k, v, w, name FROM A, B, T WINDOW(A, B) = 2 SECONDS WHERE A.k = B.k AND A.k = T.k",
    "SELECT k, v / 3 AS third, v * small AS x, CASE WHEN flag THEN day END AS d FROM A",
    "SELECT store, v FROM A ORDER BY v DESC, store",
    "SELECT store, v FROM A ORDER BY length(store) NULLS LAST, v LIMIT 7 OFFSET 2",
    "SELECT k FROM A LIMIT 5",
    "SELECT store, COUNT(*) AS n, SUM(v) AS s, AVG(v) AS a FROM A [RANGE 5 SECONDS] GROUP BY store",
    "SELECT MAX(w) AS m, MIN(k) AS l FROM B [RANGE 10 SECONDS] EMIT CHANGES EVERY 20 SECONDS",
    "SELECT DISTINCT flag, day FROM A [RANGE 3 SECONDS]",
    "SELECT k, w FROM B [RANGE 20 SECONDS] ORDER BY w DESC LIMIT 3",
    "SELECT k FROM A [RANGE 5 SECONDS] EXCEPT SELECT k FROM B [RANGE 5 SECONDS]",
    "SELECT k, name FROM T",
    "SELECT k, COUNT(*) AS n FROM T GROUP BY k ORDER BY COUNT(*) DESC, k",
    "SELECT A.k, w FROM A [RANGE 2 SECONDS] LEFT JOIN B [RANGE 2 SECONDS] ON A.k = B.k",
    "SELECT day - DATE '2026-01-02' AS a, ts - day AS b, day + small AS c, ts + INTERVAL '1' MONTH "
    "AS d, coalesce(day, ts) AS e, small * INTERVAL '1' HOUR AS f FROM A",
]


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    "statement",
    [
        pytest.param(one, marks=[pytest.mark.soak] if place % 2 else [])
        for place, one in enumerate(STATEMENTS)
    ],
)
def test_statements_as_csv(folder: Path, statement: str) -> None:
    text = both(folder, statement, "--format", "csv")
    assert text.count("\n") > 3


@pytest.mark.parametrize("form", ["table", "jsonl"])
def test_other_formats(folder: Path, form: str) -> None:
    for statement in (STATEMENTS[0], STATEMENTS[7], STATEMENTS[12]):
        assert both(folder, statement, "--format", form)


@pytest.mark.parametrize("at", ["2026-01-01 00:00:31.5", "end"])
def test_answers_at_an_instant(folder: Path, at: str) -> None:
    for statement in (
        STATEMENTS[9],
        "SELECT store, COUNT(*) AS n FROM A [RANGE 9 SECONDS] GROUP BY store ORDER BY n, store",
        "SELECT k FROM B [RANGE 9 SECONDS] LIMIT 3",
    ):
        both(folder, statement, "--at", at)


def test_parquet_has_the_same_columns_and_rows(folder: Path, tmp_path: Path) -> None:
    tables = []
    for engine in ("local", "spark"):
        run(
            *("sql", STATEMENTS[0], "--stream", f"A={folder}/a.csv:ts", "--engine", engine),
            *("--format", "parquet", "-o", tmp_path / engine),
        )
        tables.append(pq.read_table(tmp_path / engine))
    assert tables[0].schema.names == tables[1].schema.names
    assert tables[0].schema.types == tables[1].schema.types
    assert tables[0].to_pylist() == tables[1].to_pylist()


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT nope FROM A",
        "SELECT k FROM A, B WHERE A.k = B.k",
        "SELECT COUNT(*) FROM A",
        "SELECT COUNT(*) AS n FROM A [RANGE 1 SECOND] ORDER BY n",
        "SELECT k FROM A WHERE store + 1",
        "SELECT k, FROM A",
        "SELECT DISTINCT k FROM T ORDER BY name",
    ],
)
def test_refusals_are_the_same(folder: Path, statement: str) -> None:
    sources = ["--stream", f"A={folder}/a.csv:ts", "--stream", f"B={folder}/b.jsonl:ts"]
    sources += ["--table", f"T={folder}/t.csv"]
    errors = {
        engine: str(refusal(run("sql", statement, *sources, "--engine", engine)))
        for engine in ("auto", "spark")
    }
    assert errors["auto"] == errors["spark"]


def test_following_gives_the_same_rows(folder: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "a" / "1.csv").write_bytes((folder / "a.csv").read_bytes())
    (tmp_path / "b" / "1.jsonl").write_bytes((folder / "b.jsonl").read_bytes())
    for statement in (STATEMENTS[2], STATEMENTS[7]):
        outputs = []
        for engine in ("local", "spark"):
            done = run(
                *("sql", statement, "--stream", f"A={tmp_path}/a:ts", "--engine", engine),
                *("--stream", f"B={tmp_path}/b:ts", "--table", f"T={folder}/t.csv"),
                *("--catch-up", "--format", "csv", "--lateness", "A=20s"),
            )
            assert done.exception is None, done.exception
            summary = done.stderr.partition(", seconds")[0]
            outputs.append((sorted(done.stdout.splitlines()), summary))
        assert outputs[0] == outputs[1]


def test_explain_says_which_engine_and_why(folder: Path) -> None:
    source = ("--stream", f"A={folder}/a.csv:ts")
    small = run("explain", "SELECT k FROM A", *source).stdout
    assert small.endswith("Engine: local, in this process\n")
    asked = run("explain", "SELECT k FROM A", *source, "--engine", "spark").stdout
    assert asked.endswith("Engine: Spark, as asked for\n")
    large = run("sql", "EXPLAIN SELECT k FROM A", *source, "--local-limit", 0).stdout
    assert (
        "Engine: Spark, because the files have 0 MB, more than the 0 MB of --local-limit" in large
    )
    formatted = "SELECT soundex(store) AS y FROM A"
    assert "Engine: Spark, because only Spark can evaluate this: SOUNDEX" in (
        run("explain", formatted, *source).stdout
    )
    error = refusal(run("sql", formatted, *source, "--engine", "local"))
    assert error.hint == "leave --engine local out to use Spark"
