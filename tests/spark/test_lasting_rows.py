"""TIME (start, end) on Spark: in batch and streamed, by files, and over logs."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import nilometer as nm
from nilometer.cli import app
from nilometer.errors import InputError, SchemaError
from tests.patience import LONG, wait_for

EVENTS = "room,on,off\nhall,0,10\nroof,2,4\nhall,5,12\nhall,7,6\nroof,8,\nroof,20,20\n"
CHANGES = [
    ("hall", 0, 1, 1),
    ("roof", 2, 1, 1),
    ("roof", 4, 1, -1),
    ("hall", 5, 1, -1),
    ("hall", 5, 2, 1),
    ("hall", 10, 2, -1),
    ("hall", 10, 1, 1),
    ("hall", 12, 1, -1),
]
QUERY = "SELECT room, COUNT(*) AS n FROM A WHERE upper(room) <> 'X' GROUP BY room"


def changes_of(text: str) -> list[tuple[str, int, int, int]]:
    lines = [line.split(",") for line in text.splitlines()[1:] if line.count(",") == 3]
    return sorted(
        (room, int(time[17:19]) + 60 * int(time[14:16]), int(n), int(diff))
        for room, n, time, diff in lines
    )


@pytest.mark.parametrize("follow", [False, True])
def test_files_of_rows_that_last(spark: SparkSession, tmp_path: Path, follow: bool) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "1.csv").write_text(EVENTS)
    arguments = ["sql", "--stream", f"A={folder}:on..off[epoch s]", "--format", "csv", QUERY]
    result = CliRunner().invoke(app, [*arguments, *(["--catch-up"] if follow else [])])
    assert result.exit_code == 0, result.exception
    assert changes_of(result.stdout) == sorted(CHANGES)
    notice = "rows without a time dropped: 2" if follow else "2 rows have no time and were left out"
    assert notice in result.stderr


def test_dataframes_of_rows_that_last(spark: SparkSession) -> None:
    db = nm.connect(spark)
    rows = spark.createDataFrame([("a", 0, 10), ("b", 5, 7), ("c", 6, 9)], "k STRING, b INT, e INT")
    for wrong in (("b", "b"), ("b", "x"), ("x", "e")):
        with pytest.raises((InputError, SchemaError)):
            db.create_stream("A", rows, time=wrong, epoch="s")
    db.create_stream("A", rows, time=("b", "e"), epoch="s")
    joined = db.sql("SELECT X.k, Y.k AS other FROM A X, A Y WHERE X.k < Y.k EMIT CHANGES")
    snapshot_rows = nm.snapshot(joined, at="1970-01-01 00:00:06").collect()
    assert sorted(map(tuple, snapshot_rows)) == [("a", "b"), ("a", "c"), ("b", "c")]
    snapshot_rows = nm.snapshot(joined, at="1970-01-01 00:00:07").collect()
    assert sorted(map(tuple, snapshot_rows)) == [("a", "c")]


def test_logs_of_rows_that_last(spark: SparkSession, tmp_path: Path) -> None:
    lines = "".join(
        f"{room},{1e9 + int(on)},{1e9 + int(off)}\n"
        for room, on, off in (
            ("hall", 0, 10),
            ("roof", 2, 4),
            ("hall", 5, 12),
            ("hall", 7, 6),
            ("end", 60, 61),
        )
    )
    file = tmp_path / "events.csv"
    file.write_text("room,on,off\n" + lines)
    with nm.connect(spark, path=tmp_path / "plant") as db:
        db.execute(
            "CREATE STREAM A (room STRING, `on` TIMESTAMP FROM EPOCH SECONDS, off TIMESTAMP FROM "
            f"EPOCH SECONDS, TIME (`on`, off)) FROM file WITH (address = '{file}')"
        )
        db.execute(f"CREATE QUERY q AS {QUERY} FROM START")
        wait_for(lambda: db.history("q").count() >= len(CHANGES), LONG)
        changes = sorted(
            (row.room, row._time.second + 60 * row._time.minute, row.n, row._diff)
            for row in db.history("q").where("room <> 'end'").collect()
        )
        first = min(time for _, time, _, _ in changes)
        assert [(room, time - first, n, diff) for room, time, n, diff in changes] == sorted(CHANGES)
        letters = db.execute("SHOW DEAD LETTERS FROM A").rows
        assert letters is not None
        assert [one["reason"] for one in letters.to_pylist()] == ["ends before it begins"]
