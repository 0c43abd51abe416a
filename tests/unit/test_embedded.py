"""`nm.connect()`: the database in this process, as a user has it."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nilometer as nm
from nilometer.errors import InputError, NilometerError, OnlySparkError, SqlError
from nilometer.local import embedded
from tests.docstrings import run_examples

SALES = (
    "store,price,ts\nnorth,12,2026-01-31 12:00:00\nsouth,5,2026-01-31 12:20:00\n"
    "north,8,2026-01-31 12:40:00\n"
)
TOTAL = "SELECT store, SUM(price) AS total FROM Sales [RANGE 1 HOUR] GROUP BY store"


@pytest.fixture
def sales(tmp_path: Path) -> Path:
    path = tmp_path / "sales.csv"
    path.write_text(SALES)
    return path


def test_files_tables_and_data_frames_give_the_same_answers(sales: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(sales, parse_dates=["ts"])
    table = pa.Table.from_pandas(frame)
    pq.write_table(
        table.set_column(2, "ts", table["ts"].cast(pa.timestamp("us"))), tmp_path / "s.parquet"
    )
    answers = []
    for rows in (sales, str(sales), frame, table, tmp_path / "s.parquet"):
        with nm.connect() as db:
            db.create_stream("Sales", rows, time="TS")
            answers.append(db.sql(TOTAL))
    assert all(one.equals(answers[0]) for one in answers)
    assert answers[0].num_rows == 8
    assert answers[0].column_names == ["store", "total", "_time", "_diff"]
    assert answers[0]["_time"].to_pylist() == sorted(answers[0]["_time"].to_pylist())


def test_an_answer_at_an_instant_in_an_order(sales: Path) -> None:
    db = nm.connect()
    db.create_stream("Sales", sales, time="ts")
    at = datetime(2026, 1, 31, 13, 10, tzinfo=UTC)
    for moment in (at, "2026-01-31 13:10:00", "2026-01-31 14:10:00+01:00"):
        rows = db.sql(f"{TOTAL} ORDER BY total", at=moment).to_pylist()
        assert rows == [{"store": "south", "total": 5}, {"store": "north", "total": 8}]
    assert db.sql(f"{TOTAL} ORDER BY SUM(price) DESC LIMIT 1", at=at)["store"].to_pylist() == [
        "north"
    ]
    assert db.sql(TOTAL, at="end").num_rows == 0
    assert list(db.sql(f"{TOTAL} LIMIT 1", at=at).to_pandas()["store"]) == ["north"]


def test_order_and_limit_of_what_has_ended(sales: Path) -> None:
    db = nm.connect()
    db.create_stream("Sales", sales, time="ts")
    rows = db.sql("SELECT price FROM Sales ORDER BY price DESC")
    assert rows.column_names == ["price", "_time"]
    assert rows["price"].to_pylist() == [12, 8, 5]
    assert db.sql("SELECT price FROM Sales LIMIT 2")["price"].to_pylist() == [5, 8]
    assert db.sql("SELECT store FROM Sales ORDER BY -price LIMIT 1 OFFSET 1").to_pylist()[0][
        "store"
    ] == ("north")
    assert db.sql("SELECT price AS p FROM Sales ORDER BY _time DESC")["p"].to_pylist() == [8, 5, 12]
    with pytest.raises(SqlError) as error:
        db.sql(f"{TOTAL} ORDER BY total")
    assert error.value.message.startswith("ORDER BY needs a LIMIT")
    assert "--at" in (error.value.hint or "")
    with pytest.raises(InputError) as other:
        db.sql("SELECT price FROM Sales", at="end")
    assert other.value.message == "at is for answers that change"


def test_questions_to_tables_alone_have_plain_rows() -> None:
    db = nm.connect()
    db.create_table("T", pa.table({"k": [2, 1, 2, None], "s": ["b", "a", "c", "d"]}))
    db.create_table("U", pa.table({"k": [1, 2]}))
    assert db.sql("SELECT k, s FROM T ORDER BY k DESC, s DESC").to_pylist() == [
        {"k": 2, "s": "c"},
        {"k": 2, "s": "b"},
        {"k": 1, "s": "a"},
        {"k": None, "s": "d"},
    ]
    counted = db.sql("SELECT k, COUNT(*) AS n FROM T GROUP BY k ORDER BY n DESC, k NULLS LAST")
    assert counted.to_pydict() == {"k": [2, 1, None], "n": [2, 1, 1]}
    assert db.sql("SELECT T.s FROM T, U WHERE T.k = U.k")["s"].to_pylist() == ["a", "b", "c"]
    assert db.sql("SELECT DISTINCT k FROM T ORDER BY k LIMIT 2 OFFSET 1")["k"].to_pylist() == [1, 2]
    assert db.sql("SELECT k FROM T UNION ALL SELECT k FROM U ORDER BY 1")["k"].to_pylist() == [
        None,
        1,
        1,
        2,
        2,
        2,
    ]
    with pytest.raises(SqlError, match="static tables have no _time"):
        db.sql("SELECT k, _time FROM T")
    with pytest.raises(
        SqlError, match="ORDER BY must number a column of the SELECT list, from 1 to 1"
    ):
        db.sql("SELECT k FROM T ORDER BY 2")  # what has no time has no second column
    db.create_stream("S", pa.table({"ts": pa.array([0], pa.timestamp("us", "UTC"))}), time="ts")
    with pytest.raises(
        SqlError, match="ORDER BY must number a column of the SELECT list, from 1 to 1"
    ):
        db.sql("SELECT ts FROM S [RANGE 1 SECOND] ORDER BY 2 LIMIT 5")  # wrong, not unfinished
    with pytest.raises(SqlError, match="ORDER BY must name columns of the SELECT list here"):
        db.sql("SELECT DISTINCT k FROM T ORDER BY s")


def test_functions(sales: Path) -> None:
    db = nm.connect()
    db.create_stream("Sales", sales, time="ts")
    db.create_function("twice", lambda price: price * 2, "bigint")
    assert db.sql("SELECT twice(price) AS p FROM Sales ORDER BY 1")["p"].to_pylist() == [10, 16, 24]
    with pytest.raises(InputError, match="cannot return 'wool'"):
        db.create_function("woolly", lambda price: price, "wool")
    with pytest.raises(InputError, match="function upper already exists"):
        db.create_function("upper", lambda text: text)


def test_what_is_wrong_is_said(sales: Path, tmp_path: Path) -> None:
    db = nm.connect()
    db.create_stream("Sales", sales, time="ts")
    refusals: list[tuple[str, type[NilometerError], str]] = []
    for act, kind, message in [
        (lambda: db.create_stream("sales", sales, time="ts"), InputError, "stream or table"),
        (lambda: db.create_table("X", 7), InputError, "X has no rows"),
        (lambda: db.create_table("X", tmp_path / "no.csv"), InputError, "there is no file or"),
        (lambda: db.create_stream("X", sales, time="price"), NilometerError, "the time column"),
        (lambda: db.create_stream("X", sales, time="when"), NilometerError, "stream X has no"),
        (lambda: db.drop("Sails"), InputError, "there is no stream or table Sails"),
        (lambda: db.sql("SELECT soundex(string(price)) AS y FROM Sales"), OnlySparkError, "only"),
        (lambda: db.explain("SELECT price FROM Sales", form="png"), InputError, "unknown format"),
        (lambda: nm.connect(path="x"), InputError, "path is for a database on Spark"),
    ]:
        with pytest.raises(kind) as error:
            act()
        assert error.value.message.startswith(message), refusals
    assert db.explain("SELECT price FROM Sales").startswith("Selection from 1 stream")
    assert db.explain("SELECT price FROM Sales ORDER BY 1", form="dot").startswith("digraph")
    assert db.sql("EXPLAIN SELECT price FROM Sales")["plan"].to_pylist()[0].startswith("Selection")


def test_the_command_does_without_pandas(sales: Path) -> None:
    program = (
        "import sys\n"
        "from nilometer.cli import app\n"
        f"arguments = ['sql', {TOTAL!r}, '--stream', 'Sales={sales}:ts']\n"
        "app(arguments, standalone_mode=False)\n"
        "assert 'pandas' not in sys.modules\n"
        "import pandas\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_neither_the_library_nor_the_command_imports_spark(sales: Path) -> None:
    program = (
        "import sys, nilometer as nm\n"
        "db = nm.connect()\n"
        f"db.create_stream('Sales', {str(sales)!r}, time='ts')\n"
        f"assert db.sql({TOTAL!r}).num_rows == 8\n"
        "from nilometer.cli import app\n"
        f"arguments = ['sql', {TOTAL!r}, '--stream', 'Sales={sales}:ts', '--format', 'csv']\n"
        "app(arguments, standalone_mode=False)\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "assert not loaded & {'pyspark', 'py4j', 'sqlalchemy'}, loaded\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("store,total,_time,_diff\nnorth,12,2026-01-31T12:00:00Z,1\n")


def test_examples_run(sales: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those in docstrings."""
    monkeypatch.chdir(sales.parent)
    pq.write_table(pa.table({"k": [1]}), "stores.parquet")
    rows = pa.table({"k": [1], "ts": pa.array([0], pa.timestamp("us", "UTC"))})
    with nm.connect() as db:
        for name in "AB":
            db.create_stream(name, rows, time="ts")
        assert run_examples(embedded, {"db": db}) == 10
