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
        asked = "SELECT s RLIKE p AS hit FROM T"
        values = [row.hit for row in db.sql(asked).collect()]
        assert sorted(values, key=str) == [False, None, True]
        db.execute(f"INSERT INTO T VALUES ('{text}!', '^(a|a|aa)+$')")
        with pytest.raises(PySparkException, match="a pattern from the data that repeats a group"):
            db.sql(asked).collect()
        optional = "a?" * 28 + "a" * 28
        for pattern in (f"concat('{optional}', p)", f"concat('{'a{0,9}' * 9}', p)"):
            with pytest.raises(PySparkException, match="too long for a|repeats a group"):
                db.sql(f"SELECT s RLIKE {pattern} AS hit FROM T").collect()
        with pytest.raises(SqlError, match="could take years to match"):
            db.sql("SELECT s RLIKE '^(a|a|aa)+$' AS hit FROM T")
        with pytest.raises(SqlError, match="values from one row"):
            db.sql("SELECT repeat(s, 2000000000) AS r FROM T")


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(?x)(a|a|aa) +$", "repeats a group"),
        ("(a|a|aa)\\\\Q\\\\E+$", "repeats a group"),
        ("(a*)\\\\1b", "repeats a group"),
        ("(?<=a{0,99})b", "repeats a group"),
        ("a*a*a*b", "too long for a pattern from the data"),
        ("%a%a%a%b", "too long for a pattern from the data"),
    ],
)
def test_a_pattern_of_the_data_has_a_bound(
    spark: SparkSession, tmp_path: Path, pattern: str, said: str
) -> None:
    with nm.connect(spark, path=tmp_path / "plant") as db:
        db.execute("CREATE TABLE T (s STRING, p STRING)")
        db.execute(f"INSERT INTO T VALUES ('{'a' * 3000}', '{pattern}')")
        word = "LIKE" if "%" in pattern else "RLIKE"
        with pytest.raises(PySparkException, match=said):
            db.sql(f"SELECT s {word} p AS hit FROM T").collect()
        db.execute("DELETE FROM T")
        db.execute(f"INSERT INTO T VALUES ('{'a' * 3000}b', '%a%b'), ('ab', '{pattern}')")
        if said.startswith("too long"):
            rows = db.sql(f"SELECT s {word} p AS hit FROM T WHERE s = 'ab'").collect()
            assert len(rows) == 1


def test_a_text_that_is_too_long_for_a_pattern_cannot_be_computed(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The functions that search, each beside the text for which they may."""
    calls = {
        "s RLIKE 'a*a*b'": False,
        "s LIKE '%a%a%a%b'": False,
        "regexp_extract(s, 'a*a*(b)', 1)": "",
        "regexp_extract_all(s, 'a*a*(b)', 1)": [],
        "regexp_replace(s, 'a*a*b', '')": "a" * 300,
        "regexp_count(s, 'a*a*b')": 0,
        "regexp_instr(s, 'a*a*b')": 0,
        "regexp_substr(s, 'a*a*b')": None,
        "split(s, 'a*a*b')": ["a" * 300],
        "str_to_map(s, ',', 'a*a*b')": {"a" * 300: None},
        "levenshtein(s, s || s)": 300,
        "exists(split(s, ','), x -> x RLIKE 'a*a*b')": False,
    }
    with nm.connect(spark, path=tmp_path / "plant") as db:
        db.execute("CREATE TABLE T (s STRING)")
        db.execute(f"INSERT INTO T VALUES ('{'a' * 300}')")
        columns = ", ".join(f"{call} AS c{at}" for at, call in enumerate(calls))
        (row,) = db.sql(f"SELECT {columns} FROM T").collect()
        assert list(row) == list(calls.values())
        db.execute("DELETE FROM T")
        db.execute(f"INSERT INTO T VALUES ('{'a' * 40_000}')")
        for call in calls:
            with pytest.raises(PySparkException, match=r"characters|too long"):
                db.sql(f"SELECT {call} AS c FROM T").collect()
