"""`nilometer sql` over files where the answer changes."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.spark.test_cli_sql import put, refusal, run

SALES = (
    "store,price,ts\n"
    "north,4,2026-01-01 12:00:00\nsouth,5,2026-01-01 12:00:10\nnorth,12,2026-01-01 12:00:20\n"
    "north,4,2026-01-01 12:00:40\n,7,2026-01-01 12:01:30\n"
)
COUNT = "SELECT store, COUNT(*) AS n, SUM(price) AS total FROM S [RANGE 30 SECONDS] GROUP BY store"
CHANGES = """\
store,n,total,_time,_diff
north,1,4,2026-01-01T12:00:00Z,1
south,1,5,2026-01-01T12:00:10Z,1
north,1,4,2026-01-01T12:00:20Z,-1
north,2,16,2026-01-01T12:00:20Z,1
north,2,16,2026-01-01T12:00:30.000001Z,-1
north,1,12,2026-01-01T12:00:30.000001Z,1
north,1,12,2026-01-01T12:00:40Z,-1
north,2,16,2026-01-01T12:00:40Z,1
south,1,5,2026-01-01T12:00:40.000001Z,-1
north,2,16,2026-01-01T12:00:50.000001Z,-1
north,1,4,2026-01-01T12:00:50.000001Z,1
north,1,4,2026-01-01T12:01:10.000001Z,-1
,1,7,2026-01-01T12:01:30Z,1
,1,7,2026-01-01T12:02:00.000001Z,-1
"""


@pytest.fixture
def data(spark: SparkSession, tmp_path: Path) -> Path:
    """Sales as a file, and in a folder."""
    (tmp_path / "sales.csv").write_text(SALES)
    (tmp_path / "sales").mkdir()
    put(tmp_path / "sales", "1.csv", SALES)
    return tmp_path


def once(data: Path) -> list[str]:
    return ["--stream", f"S={data}/sales.csv:ts"]


def following(data: Path) -> list[str]:
    return ["--stream", f"S={data}/sales:ts", "--catch-up"]


def test_changes_come_in_the_order_of_time_whatever_the_execution(data: Path) -> None:
    for execution in ("auto", "nta"):
        result = run("sql", COUNT, *once(data), "--format", "csv", "--execution", execution)
        assert result.exception is None
        assert result.stdout == CHANGES


def test_a_table_of_changes_has_signs_and_counts_them(data: Path) -> None:
    result = run("sql", COUNT, *once(data), "--limit", 3)
    lines = result.stdout.splitlines()
    assert [line.split()[-1] for line in lines[2:5]] == ["+1", "+1", "-1"]
    assert lines[-1] == "3 of 14 changes: 11 more, which --limit 14 shows"


def test_answers_at_an_instant_in_every_format(data: Path) -> None:
    at = ("--at", "2026-01-01 12:00:25")
    table = run("sql", COUNT, *once(data), *at).stdout.splitlines()
    assert [line.split() for line in table[2:4]] == [["north", "2", "16"], ["south", "1", "5"]]
    assert table[-1] == "2 rows"
    lines = run("sql", COUNT, *once(data), *at, "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line)["store"] for line in lines] == ["north", "south"]
    top = "SELECT store, price FROM S [RANGE 1 MINUTE] ORDER BY price DESC LIMIT 2"
    command = ["sql", top, *once(data), *at, "--format", "parquet", "-o", data / "top"]
    assert run(*command).exception is None
    rows = pq.read_table(data / "top").to_pylist()
    assert rows == [{"store": "north", "price": 12}, {"store": "south", "price": 5}]


def test_in_the_end_windows_of_time_are_empty_and_those_of_rows_are_not(data: Path) -> None:
    empty = run("sql", COUNT, *once(data), "--at", "end").stdout
    assert empty.endswith("0 rows: at the end all time windows are empty\n")
    last = "SELECT store FROM S [ROWS 2] EMIT CHANGES"
    assert run("sql", last, *once(data), "--at", "end", "--format", "csv").stdout == (
        "store\n\nnorth\n"
    )


def test_union_all_of_what_is_only_added(data: Path) -> None:
    both = "SELECT price FROM S WHERE price > 5 UNION ALL SELECT price FROM S WHERE price > 9"
    result = run("sql", both, *once(data), "--format", "csv")
    prices = [line.split(",")[0] for line in result.stdout.splitlines()[1:]]
    assert sorted(prices) == ["12", "12", "7"]


def test_plans_of_answers_that_change(data: Path) -> None:
    text = run("explain", COUNT, *once(data)).stdout
    assert text.startswith("The answer changes")
    assert "Groups by S.store" in text
    assert run("explain", COUNT, *once(data), "--format", "dot").stdout.startswith("digraph")


def test_changes_are_followed_in_the_order_of_time(data: Path) -> None:
    out = data / "out.csv"
    command = ["sql", COUNT, *following(data), "--format", "csv", "-o", out]
    result = run(*command, "--checkpoint", data / "checkpoint")
    assert "rows in: 5, rows out: 12, late rows dropped: 0" in result.stderr, result.exception
    assert out.read_text() == "".join(CHANGES.splitlines(keepends=True)[:13])
    put(data / "sales", "2.csv", "store,price,ts\nnorth,1,2026-01-01 13:00:00\n")
    assert run(*command, "--checkpoint", data / "checkpoint").exception is None
    assert out.read_text() == CHANGES


def test_the_answer_is_shown_anew_when_it_has_changed(data: Path) -> None:
    every = "SELECT store, COUNT(*) AS n FROM S [RANGE 1 HOUR] GROUP BY store"
    result = run("sql", every, *following(data), "--answer")
    lines = result.stdout.rstrip().splitlines()
    assert [line.split() for line in lines[-3:-1]] == [["north", "3"], ["south", "1"]]
    assert lines[-1] == "2 rows at 2026-01-01 12:00:40"


def test_rows_that_go_from_stage_to_stage_are_not_counted_as_read(data: Path) -> None:
    stores = (
        "SELECT A.store, COUNT(*) AS n FROM S A, S B WINDOW = 1 HOUR "
        "WHERE A.price = B.price GROUP BY A.store"
    )
    result = run("sql", stores, *following(data), "--format", "jsonl")
    assert "rows in: 10, " in result.stderr, result.exception
    last = json.loads(result.stdout.splitlines()[-1])
    assert (last["store"], last["n"], last["_diff"]) == ("north", 5, 1)


def test_what_does_not_go_together(data: Path) -> None:
    joined = "SELECT S.store FROM S"
    for arguments, message in [
        ([joined, *once(data), "--at", "end"], "--at is for answers that change"),
        ([joined, *following(data), "--answer"], "--answer is for answers that change"),
        ([COUNT, *following(data), "--at", "end"], "--at is for files that are read once"),
        ([COUNT, *once(data), "--answer"], "--answer is only for continuous queries"),
        (
            [COUNT, *following(data), "--answer", "--format", "csv"],
            "--answer is shown as a table, not as csv",
        ),
    ]:
        assert refusal(run("sql", *arguments)).message.startswith(message)
