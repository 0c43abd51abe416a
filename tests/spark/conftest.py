"""One Spark session for all tests, started when the first test needs it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.spark.session import JAVA_OPTIONS

QUICK_TO_START = {
    "spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} -XX:TieredStopAtLevel=1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""So many small queries would do little but wait for compilers; tests/processes have them."""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = nm.local_spark(memory="2g", config=QUICK_TO_START)
    yield session
    session.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/spark" in str(item.path):
            item.add_marker(pytest.mark.spark)
