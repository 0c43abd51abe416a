"""Parameters reach Spark as what they are."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from typer.testing import CliRunner

import nilometer as nm
from nilometer.cli import app

VALUES: dict[str, Any] = {
    "yes": True,
    "whole": -5,
    "large": 2**62,
    "double": 0.1,
    "tiny": 5e-324,
    "infinite": -math.inf,
    "exact": Decimal("1.50"),
    "thousand": Decimal("1E+3"),
    "text": "'; DROP TABLE t; -- \\' ${x} \u2028 :whole",
    "empty": "",
    "bytes": b"\x00\xff'",
    "day": date(2026, 1, 31),
    "moment": datetime(2026, 1, 31, 12, 0, 0, 5, tzinfo=timezone(timedelta(hours=2))),
    "length": timedelta(days=-1, microseconds=5),
}


def test_values_come_out_of_spark_as_they_went_in(spark: SparkSession) -> None:
    db = nm.connect(spark)
    db.create_table("T", spark.range(1))
    columns = ", ".join(f"CONCAT(CAST(:{name} AS STRING), '') AS {name}_s" for name in VALUES)
    (row,) = db.sql(
        f"SELECT {', '.join(f':{name} AS {name}' for name in VALUES)}, :none AS none, "
        f":nan AS nan, {columns} FROM T",
        parameters=VALUES,
        none=None,
        nan=math.nan,
    ).collect()
    for name, value in VALUES.items():
        value_read = row[name]
        if name == "moment":
            assert value_read.replace(tzinfo=value_read.tzinfo or UTC) == value
        else:
            assert (bytes(value_read) if name == "bytes" else value_read) == value, name
            assert isinstance(value_read, bytearray | bytes if name == "bytes" else type(value)), (
                name
            )
    assert row.none is None
    assert math.isnan(row.nan)


def test_conditions_over_streams_and_the_command_line(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("ts,k,name\n2026-01-01,1,it's\n2026-01-02,2,b\n")
    arguments = ["sql", "--stream", f"A={file}:ts", "--format", "csv"]
    query = "SELECT k FROM A WHERE name = :name AND ts < :t AND :k <= k"
    values = ["--param", "name=it's", "--param", "t=TIMESTAMP '2026-01-02'", "--param", "k=1"]
    result = CliRunner().invoke(app, [*arguments, *values, query])
    assert result.exit_code == 0, result.exception
    assert result.stdout.splitlines()[1].startswith("1,")
    result = CliRunner().invoke(app, [*arguments, *values, "--param", "z=1", query])
    assert "the statement has no parameter :z" in str(result.exception)
