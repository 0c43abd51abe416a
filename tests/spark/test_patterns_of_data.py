"""Patterns that come with the data, in Spark: those that may take for ever cannot be computed."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.errors import SqlError


def test_a_pattern_of_the_data_that_repeats_a_group_is_not_tried(
    spark: SparkSession, tmp_path: Path
) -> None:
    with nm.connect(spark, path=tmp_path / "plant") as db:
        db.execute("CREATE TABLE T (s STRING, p STRING)")
        text = "a" * 60
        db.execute(f"INSERT INTO T VALUES ('{text}!', 'a+!$'), ('b', '^a'), ('c', NULL)")
        asked = "SELECT s RLIKE p AS found FROM T"
        found = [row.found for row in db.sql(asked).collect()]
        assert sorted(found, key=str) == [False, None, True]
        db.execute(f"INSERT INTO T VALUES ('{text}!', '^(a|a|aa)+$')")
        with pytest.raises(PySparkException, match="a pattern from the data that repeats a group"):
            db.sql(asked).collect()
        optional = "a?" * 28 + "a" * 28
        for pattern in (f"concat('{optional}', p)", f"concat('{'a{0,9}' * 9}', p)"):
            with pytest.raises(PySparkException, match="or has many choices"):
                db.sql(f"SELECT s RLIKE {pattern} AS found FROM T").collect()
        with pytest.raises(SqlError, match="could take years to match"):
            db.sql("SELECT s RLIKE '^(a|a|aa)+$' AS found FROM T")
        with pytest.raises(SqlError, match="values from one row"):
            db.sql("SELECT repeat(s, 2000000000) AS r FROM T")
