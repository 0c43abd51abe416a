"""`nilometer sql` and `nilometer explain` over files, from the command line to the rows."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from nilometer.cli import app
from nilometer.errors import NilometerError
from tests.patience import LONG, wait_for

A_CSV = "k,v,ts\n1,2.5,2026-01-01 00:00:00\n2,,2026-01-01 00:00:01.5\n3,9,2026-01-01 01:00:00\n"
B_JSON = (
    '{"k": 1, "name": "x", "ts": "2026-01-01T00:00:02Z"}\n'
    '{"k": 2, "name": "y, \\"z\\"", "ts": "2026-01-01T00:00:03Z"}\n'
)
JOIN = "SELECT A.k, v, A.ts, B.ts, name FROM A, B WINDOW = 2 SECONDS WHERE A.k = B.k"
CSV_ROWS = [
    ["1", "2.5", "2026-01-01T00:00:00Z", "2026-01-01T00:00:02Z", "x", "2026-01-01T00:00:02Z"],
    ["2", "", "2026-01-01T00:00:01.5Z", "2026-01-01T00:00:03Z", 'y, "z"', "2026-01-01T00:00:03Z"],
]


@pytest.fixture
def data(spark: SparkSession, tmp_path: Path) -> Path:
    """Camera A as CSV, B as JSON lines in a folder, compressed."""
    (tmp_path / "a.csv").write_text(A_CSV)
    (tmp_path / "b").mkdir()
    with gzip.open(tmp_path / "b" / "1.jsonl.gz", "wt") as file:
        file.write(B_JSON)
    return tmp_path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)))


def over(data: Path) -> list[str]:
    return ["--stream", f"A={data}/a.csv:ts", "--stream", f"B={data}/b:ts"]


def rows(text: str) -> list[list[str]]:
    """The rows of a CSV text, sorted, without the header."""
    return sorted(list(csv.reader(io.StringIO(text)))[1:])


def refusal(result: Result) -> NilometerError:
    assert isinstance(result.exception, NilometerError), result.output
    return result.exception


def test_a_join_of_two_files_as_csv(data: Path) -> None:
    result = run("sql", JOIN, *over(data), "--format", "csv", "--buckets", 1)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == "k,v,ts,ts,name,_time"
    assert rows(result.stdout) == CSV_ROWS


def test_several_statements_as_tables(data: Path) -> None:
    queries = data / "queries.sql"
    queries.write_text(f"SELECT A.k, v FROM A;\nEXPLAIN {JOIN};")
    result = run("sql", "-f", queries, *over(data), "--limit", 2)
    assert result.exit_code == 0
    table, plan = result.stdout.split("\n\n", 1)
    assert table.split("\n")[0].split() == ["k", "v", "_time"]
    assert table.endswith("2 of 3 rows: 1 more, which --limit 3 shows")
    assert "A.k = B.k" in plan


def test_json_lines_and_parquet_keep_types_and_refuse_two_columns_of_one_name(
    data: Path,
) -> None:
    for form in ("jsonl", "parquet"):
        result = run("sql", JOIN, *over(data), "--format", form, "-o", data / "out")
        assert (
            refusal(result).message
            == f"two columns are named ts, and {form} identifies columns by name"
        )
    query = (
        "SELECT A.k, v, B.ts AS t, array(A.ts) AS l FROM A, B WINDOW = 2 SECONDS WHERE A.k = B.k"
    )
    run("sql", query, *over(data), "--format", "jsonl", "-o", data / "out.jsonl")
    lines = [json.loads(line) for line in (data / "out.jsonl").read_text().splitlines()]
    assert sorted(lines, key=lambda line: line["k"])[1] == {
        "k": 2,
        "v": None,
        "t": "2026-01-01T00:00:03.000000Z",
        "l": ["2026-01-01T00:00:01.500000Z"],
        "_time": "2026-01-01T00:00:03.000000Z",
    }
    run("sql", query, *over(data), "--format", "parquet", "-o", data / "out.parquet")
    rows = pq.read_table(data / "out.parquet", columns=["k", "v", "t"]).sort_by("k").to_pylist()
    assert rows[0] == {"k": 1, "v": 2.5, "t": datetime(2026, 1, 1, 0, 0, 2, tzinfo=UTC)}
    again = run("sql", query, *over(data), "--format", "parquet", "-o", data / "out.parquet")
    assert "already exists" in refusal(again).message


def test_parquet_without_a_zone_is_utc_and_tables_join(data: Path) -> None:
    times = pa.array([datetime(2026, 1, 1, 12)], pa.timestamp("us"))
    pq.write_table(pa.table({"k": [1], "ts": times}), data / "c.parquet")
    (data / "names.csv").write_text("k,label\n1,one\n2,two\n")
    result = run(
        "sql",
        "SELECT C.k, C.ts, label FROM C, Names WHERE C.k = Names.k",
        *("--stream", f"C={data}/c.parquet:TS", "--table", f"Names={data}/names.csv"),
        *("--format", "csv"),
    )
    assert result.exception is None
    assert rows(result.stdout) == [["1", "2026-01-01T12:00:00Z", "one", "2026-01-01T12:00:00Z"]]


def test_explain_as_text_and_as_a_graph(data: Path) -> None:
    text = run("explain", JOIN, *over(data))
    assert text.exit_code == 0
    assert "A.k = B.k" in text.stdout
    graph = run("explain", JOIN, *over(data), "--format", "dot")
    assert graph.stdout.startswith("digraph")


@pytest.mark.parametrize(
    ("broken", "message", "detail"),
    [
        ("k,ts\n1,soon\n", "column ts of X holds no time: soon", None),
        ("k,ts\n1,2026-01-01,3\n", "cannot read the file {path}", "Malformed CSV record: "),
        ("", "the file {path} for X is empty", None),
    ],
)
def test_files_that_cannot_be_read(
    data: Path, broken: str, message: str, detail: str | None
) -> None:
    path = data / "x.csv"
    path.write_text(broken)
    error = refusal(run("sql", "SELECT X.k FROM X", "--stream", f"X={path}:ts"))
    assert error.message == message.format(path=path)
    assert (error.detail or "").startswith(detail or "")
    assert "Traceback" not in str(error)


def test_errors_in_a_worker_and_in_a_later_statement(data: Path) -> None:
    wrong = "SELECT A.k FROM A, B WINDOW = 2 SECONDS WHERE A.k = B.k AND 1 / (A.k - B.k) > 0"
    error = str(refusal(run("sql", wrong, *over(data))))
    assert "Traceback" not in error
    assert "zero" in error
    error = str(refusal(run("sql", "SELECT A.k FROM A;\nSELECT A.nope FROM A", *over(data))))
    assert "line 2, column" in error


def test_what_does_not_go_together(data: Path) -> None:
    for arguments, message in [
        ([f"{JOIN}; {JOIN}", "--format", "csv"], "the answers to 2 statements cannot go to one"),
        ([JOIN, "--lateness", "2s"], "--lateness is only for continuous queries"),
        ([JOIN, "--catch-up"], f"there is no folder {data}/a.csv for A"),
        ([JOIN, "--stream", f"C={data}/a.csv"], "C needs a time column"),
    ]:
        assert refusal(run("sql", *arguments, *over(data))).message.startswith(message)


def put(folder: Path, name: str, text: str) -> None:
    """Let a file appear at once."""
    (folder / f".{name}").write_text(text)
    (folder / f".{name}").rename(folder / name)


def test_catching_up_twice_adds_the_new_rows_once(data: Path) -> None:
    (data / "a").mkdir()
    put(data / "a", "1.csv", A_CSV)
    command = [
        *("sql", JOIN, "--stream", f"A={data}/a:ts", "--stream", f"B={data}/b:ts"),
        *("--catch-up", "--lateness", "A=1s", "--checkpoint", data / "checkpoint"),
        *("--format", "csv", "-o", data / "out.csv"),
    ]
    first = run(*command)
    assert "rows in: 5, rows out: 2, late rows dropped: 0" in first.stderr, first.exception
    assert rows((data / "out.csv").read_text()) == CSV_ROWS
    put(data / "a", "2.csv", "k,v,ts\n1,1,2026-01-01 00:00:01\n4,4,2026-01-01 00:59:59\n")
    second = run(*command)
    assert "rows in: 2, rows out: 0, late rows dropped: 1" in second.stderr, second.exception
    assert rows((data / "out.csv").read_text()) == CSV_ROWS


def test_a_bad_cell_in_a_file_that_comes_later_ends_the_query(data: Path) -> None:
    (data / "a").mkdir()
    put(data / "a", "1.csv", A_CSV)
    command = [
        *("sql", "SELECT A.k FROM A", "--stream", f"A={data}/a:ts", "--catch-up"),
        *("--checkpoint", data / "checkpoint"),
    ]
    assert run(*command).exception is None
    put(data / "a", "2.csv", "k,v,ts\n1,1,whenever\n")
    assert refusal(run(*command)).message == "column ts of A holds no time: whenever"


def test_follow_picks_up_files_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    put(tmp_path / "a", "1.csv", A_CSV)
    put(tmp_path / "b", "1.jsonl", B_JSON)
    command = [
        *(sys.executable, "-m", "nilometer", "sql", "--follow", "--format", "csv", JOIN),
        *("--stream", f"A={tmp_path}/a:ts", "--stream", f"B={tmp_path}/b:ts"),
        *("-o", str(tmp_path / "out.csv")),
    ]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        wait_for_lines(process, tmp_path / "out.csv", 3)
        put(tmp_path / "b", "2.jsonl", '{"k": 3, "name": "w", "ts": "2026-01-01T01:00:00Z"}\n')
        wait_for_lines(process, tmp_path / "out.csv", 4)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes
        out, err = process.communicate(timeout=LONG)
    finally:
        process.kill()
    assert (process.returncode, out) == (0, "")
    assert err.startswith("rows in: 6, rows out: 3, late rows dropped: 0, ")
    assert err.count("\n") == 1
    last = ["3", "9.0", *["2026-01-01T01:00:00Z"] * 2, "w", "2026-01-01T01:00:00Z"]
    assert rows((tmp_path / "out.csv").read_text()) == [*CSV_ROWS, last]


def wait_for_lines(process: subprocess.Popen[str], path: Path, lines: int) -> None:
    wait_for(
        lambda: path.exists() and path.read_text().count("\n") == lines,
        said=lambda: "" if process.poll() is None else process.communicate(),
        alive=lambda: process.poll() is None,
    )


def test_a_database_in_a_folder(spark: SparkSession, tmp_path: Path) -> None:
    kept = ["--db", tmp_path / "plant"]
    made = run("sql", "CREATE TABLE T (a INT); INSERT INTO T VALUES (1), (2)", *kept)
    assert made.stdout.split("\n") == ["created table T", "", "inserted 2 rows into T", ""]
    chosen = run("sql", "SELECT a FROM T WHERE a > 1", *kept, "--format", "csv")
    assert [row[0] for row in rows(chosen.stdout)] == ["2"]
    stream = "CREATE STREAM S (v DOUBLE) FROM synthetic WITH (rate = 5)"
    assert run("sql", stream, *kept).stdout == "created stream S\n"
    stored = run("sql", "SELECT COUNT(*) AS n FROM S", *kept, "--format", "csv")
    assert [row[0] for row in rows(stored.stdout)] == ["0"]
    assert refusal(run("sql", "SELECT v FROM S [RANGE 1 SECOND] EMIT CHANGES", *kept)).message == (
        "this query runs for as long as its sensors do"
    )
    assert "S contacts" not in run("explain", "SELECT v FROM S WHERE v > 0", *kept).stdout
    output = run("sql", "CREATE QUERY q AS SELECT v FROM S WHERE v > 0", *kept).stdout
    assert output.startswith("query q created and started\nit stops with this command")
    shown = run("sql", "SHOW QUERIES", *kept, "--format", "csv").stdout
    assert rows(shown)[0][:2] == ["q", "to be resumed"]
    for option in ("--catalog", "--logs"):
        text = refusal(run("sql", "SELECT a FROM T", option, "x")).message
        assert text == f"{option} is for a database"


def test_columns_of_odd_names(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text('at.ts,a.b,my col,größe,"No.","x""y",select\n2026-01-01,1,2,3,4,5,6\n')
    source = ["sql", "--stream", f"A={file}:at.ts", "--format", "csv"]
    names = '`a.b`, A.`my col`, upper(`größe`), `No.` + 1, `x"y`, `select`'
    for query in (
        f"SELECT {names} FROM A WHERE `a.b` > 0",
        f"SELECT {names}, COUNT(*) FROM A [RANGE 1 S] GROUP BY {names}",
    ):
        result = run(*source, query)
        assert result.exit_code == 0, (query, result.exception)
        assert rows(result.stdout)[0][:6] == ["1", "2", "3", "5", "5", "6"]
