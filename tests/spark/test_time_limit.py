"""What takes too long in Spark is ended, and it alone."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from nilometer.errors import TimeLimitError, TooLargeError
from nilometer.spark.failures import explain_failure, explained_failures
from nilometer.spark.time_limit import time_limited

ENDLESS = "SELECT count(*) FROM range(1000000000000) WHERE sin(id) > 2"


def test_a_statement_is_cancelled_in_time(spark: SparkSession) -> None:
    with pytest.raises(TimeLimitError, match="took too long") as caught:  # noqa: SIM117
        with explained_failures(), time_limited(spark.sparkContext, 1.0):
            spark.sql(ENDLESS).toArrow()
    assert "1 seconds" in str(caught.value.detail)
    assert set(spark.sparkContext.getJobTags()) == set()
    assert spark.range(5).count() == 5


def test_what_is_done_in_time_is_left_alone(spark: SparkSession) -> None:
    with time_limited(spark.sparkContext, 60.0):
        assert spark.range(5).count() == 5
    with pytest.raises(ZeroDivisionError), time_limited(spark.sparkContext, 60.0):
        _ = 1 / 0
    assert set(spark.sparkContext.getJobTags()) == set()


def test_an_answer_that_is_too_large_is_reported_as_such() -> None:
    message = (
        "Total size of serialized results is bigger than spark.driver.maxResultSize (128.0 MiB)"
    )
    assert isinstance(explain_failure(RuntimeError(message)), TooLargeError)
