"""Spark reads numbers and texts as the same instants as we do, and nobody guesses a unit."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from typer.testing import CliRunner

import nilometer as nm
from nilometer.cli import app
from nilometer.errors import InputError, SchemaError
from nilometer.model.time_forms import EpochTimes, EpochUnit, TimeForm, WrittenTimes
from nilometer.spark.read_times import instants


def read_by_spark(frame: DataFrame, form: TimeForm) -> list[int | None]:
    read = instants(frame["v"], frame.schema["v"].dataType, form)
    return [row[0] for row in frame.select(F.unix_micros(read)).collect()]


def read_here(value: object, form: TimeForm) -> int | None:
    try:
        return form.read(value)
    except ValueError:
        return None


@pytest.mark.parametrize("unit", EpochUnit)
def test_numbers_are_the_same_instants_to_spark(spark: SparkSession, unit: EpochUnit) -> None:
    random, form = Random(7), EpochTimes(unit)
    scale = int(2e9 * 1_000_000 / unit.micros)
    whole = [random.randint(-scale, scale) for _ in range(200)]
    whole += [0, -1, -999, -1000, -1001, 2**62, -(2**62)]
    frame = spark.createDataFrame([(one,) for one in whole], "v BIGINT")
    assert read_by_spark(frame, form) == [read_here(one, form) for one in whole]
    texts = spark.createDataFrame([(str(one),) for one in whole] + [("soon",)], "v STRING")
    assert read_by_spark(texts, form) == [*(read_here(one, form) for one in whole), None]
    if unit is EpochUnit.SECONDS:
        floats = [random.randint(0, 2**31 * 1000) / 1000 for _ in range(200)] + [float("nan")]
        frame = spark.createDataFrame([(one,) for one in floats], "v DOUBLE")
        assert read_by_spark(frame, form) == [read_here(one, form) for one in floats]


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("dd-MMM-yyyy H:mm:ss", ["24-Feb-2014 9:30:00", "24-feb-2014 19:30:00", "2014-02-24", ""]),
        ("M/d/yyyy h:m:s a", ["4/2/2003 10:36:0 PM", "12/31/2003 12:00:00 AM", "4/2/2003"]),
        (
            "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
            ["2014-02-24T09:30:00.250+01:00", "2014-02-24T09:30:00.25Z"],
        ),
        ("dd.MM.yy", ["24.02.14", "31.02.14", "1.2.14"]),
    ],
)
def test_texts_are_the_same_instants_to_spark(
    spark: SparkSession, pattern: str, texts: list[str]
) -> None:
    form = WrittenTimes(pattern)
    frame = spark.createDataFrame([(one,) for one in texts], "v STRING")
    assert read_by_spark(frame, form) == [read_here(one, form) for one in texts]


def test_a_stream_of_numbers_needs_a_unit(spark: SparkSession) -> None:
    db = nm.connect(spark)
    frame = spark.createDataFrame([(None, 0), (1393263000, 1)], "ts INT, v INT")
    with pytest.raises(SchemaError) as refused:
        db.create_stream("A", frame, time="ts")
    assert refused.value.detail == (
        "it is INT: 1393263000 would be 2014-02-24 as seconds, 1970-01-17 as milliseconds"
    )
    assert 'epoch="s"' in str(refused.value.hint)
    with pytest.raises(InputError, match="cannot count days"):
        db.create_stream("A", frame, time="ts", epoch="days")
    with pytest.raises(SchemaError, match="holds times already"):
        db.create_stream("A", frame.selectExpr("DATE '2026-01-01' AS ts"), time="ts", epoch="s")
    db.create_stream("A", frame, time="ts", epoch="s")
    (row,) = db.sql("SELECT v, date_format(ts, 'yyyy-MM-dd HH:mm') AS at FROM A").collect()
    assert (row.v, row.at) == (1, "2014-02-24 17:30")


@pytest.mark.parametrize("as_folder", [False, True])
def test_files_of_numbers_and_odd_texts(
    spark: SparkSession, tmp_path: Path, as_folder: bool
) -> None:
    csv, jsonl, texts = tmp_path / "a.csv", tmp_path / "b.jsonl", tmp_path / "c.csv"
    csv.write_text("ts,v\n1393263000,1\n1393263000.5,2\n")
    jsonl.write_text('{"ts": 1393263000000, "v": 1}\n')
    texts.write_text("at,v\n24-Feb-2014 17:30:00,1\n")
    if as_folder:
        for file in (csv, jsonl, texts):
            content = file.read_text()
            file.unlink()
            file.mkdir()
            (file / file.name).write_text(content)
    follow = ["--catch-up"] if as_folder else []
    for source, expected in (
        (f"A={csv}:ts[epoch s]", ["2014-02-24 17:30:00", "2014-02-24 17:30:00.5"]),
        (f"A={jsonl}:ts[epoch ms]", ["2014-02-24 17:30:00"]),
        (f"A={texts}:at[format 'dd-MMM-yyyy H:mm:ss']", ["2014-02-24 17:30:00"]),
    ):
        column = "at" if source.startswith(f"A={texts}") else "ts"
        output = run("--stream", source, *follow, "--format", "csv", f"SELECT {column} FROM A")
        times = [line.split(",")[0] for line in output.splitlines()[1:] if line[:2] == "20"]
        assert [one.replace("T", " ").rstrip("Z") for one in times] == expected


def test_files_of_numbers_without_a_unit_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("ts,v\n1393263000,1\n")
    result = CliRunner().invoke(app, ["sql", "--stream", f"A={file}:ts", "SELECT v FROM A"])
    assert isinstance(result.exception, SchemaError)
    words = str(result.exception)
    assert "1393263000 would be 2014-02-24 as seconds, 1970-01-17 as milliseconds" in words
    assert "ts[epoch s]" in words


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT v FROM A", {"A": 3}),
        ("SELECT COUNT(*) AS n FROM A [RANGE 1 HOUR] WHERE v > 100", {"A": 3}),
        ("SELECT X.v FROM A X, A Y, B WINDOW = 1 HOUR WHERE X.v = Y.v", {"A": 3, "B": 0}),
        ("SELECT v FROM A UNION ALL SELECT v FROM B", {"A": 3, "B": 0}),
        ("SELECT A.v FROM A JOIN T ON A.v = T.v", {"A": 3}),
    ],
)
def test_rows_without_a_time_are_counted(
    spark: SparkSession, query: str, expected: dict[str, int]
) -> None:
    db = nm.connect(spark)
    times = [None, "2026-01-01 00:00:00", "1600-01-01 00:00:00", None, "2026-01-01 00:00:01"]
    rows = spark.createDataFrame([(one, v) for v, one in enumerate(times)], "at STRING, v INT")
    timed = rows.selectExpr("CAST(at AS TIMESTAMP) AS ts", "v")
    db.create_stream("A", timed, time="ts")
    db.create_stream("B", timed.where("v = 1"), time="ts")
    db.create_table("T", rows)
    answer = db.sql(query)
    answer.orderBy(answer.columns[0]).collect()
    assert nm.rows_without_time(answer) == expected


def test_what_spark_does_not_tell_is_counted(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nilometer.spark.left_out._WAIT", 0.2)
    db = nm.connect(spark)
    frame = spark.createDataFrame([(1, 1), (None, 2)], "ts INT, v INT")
    db.create_stream("A", frame, time="ts", epoch="s")
    assert nm.rows_without_time(db.sql("SELECT v FROM A")) == {"A": 1}
    items = db.sql("SELECT x FROM A, UNNEST(array(v, v)) AS u(x)")
    items.collect()
    assert nm.rows_without_time(items) == {"A": 1}, "rows are counted, not items"
    empty = db.sql("SELECT v FROM A [RANGE 1 S] WHERE v > 5 EMIT CHANGES")
    assert nm.snapshot(empty, at="2099-01-01 00:00:00").collect() == []
    assert nm.rows_without_time(empty) == {"A": 1}
    with pytest.raises(InputError, match="not a batch answer"):
        nm.rows_without_time(frame)


def test_the_command_line_says_how_many_rows_have_no_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    file = tmp_path / "a.csv"
    file.write_text("ts,v\n1393263000,1\n,2\n,3\n")
    arguments = ["sql", "--stream", f"A={file}:ts[epoch s]", "--format", "csv"]
    result = CliRunner().invoke(app, [*arguments, "SELECT v FROM A"])
    assert result.exit_code == 0
    assert "2 rows have no time and were left out" in result.stderr
    result = CliRunner().invoke(
        app, [*arguments, "--at", "end", "SELECT COUNT(*) AS n FROM A [RANGE 1 S]"]
    )
    assert "2 rows have no time and were left out" in result.stderr
    folder = tmp_path / "folder"
    folder.mkdir()
    file.rename(folder / "a.csv")
    source = ["sql", "--stream", f"A={folder}:ts[epoch s]", "--catch-up", "--format", "csv"]
    result = CliRunner().invoke(app, [*source, "SELECT v FROM A"])
    assert "rows without a time dropped: 2" in result.stderr


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["sql", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout
