"""What a version of Spark lacks, and other versions, are refused in a sentence."""

from __future__ import annotations

from types import SimpleNamespace

import pyspark
import pytest
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.errors import InputError, SessionError


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("3.5.7", "Spark 3.5.7 is too old"),
        ("4.4.0-SNAPSHOT", "Spark 4.4.0-SNAPSHOT is newer than this Nilometer supports"),
    ],
)
def test_other_versions(version: str, message: str) -> None:
    with pytest.raises(SessionError, match=message) as refused:
        nm.connect(SimpleNamespace(version=version))  # type: ignore[arg-type]
    assert refused.value.detail == "Spark 4.0 to 4.3 are supported"


def test_functions_in_python(spark: SparkSession) -> None:
    db = nm.connect(spark)
    rows = spark.range(3).selectExpr("id", "timestamp_seconds(id) AS ts")
    db.create_stream("S", rows, time="ts")
    if pyspark.__version__.startswith("4.0."):
        with pytest.raises(InputError, match="functions in Python need Spark 4.1 or later"):
            db.create_function("twice", lambda x: 2 * x, returns="bigint")
    else:
        db.create_function("twice", lambda x: 2 * x, returns="bigint")
        answer = db.sql("SELECT twice(S.id) AS t FROM S").collect()
        assert sorted(row.t for row in answer) == [0, 2, 4]
