"""One Spark session for all tests, started when the first test needs it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import nilometer as nm
from tests.spark.on_cluster import SECONDS_ON_CLUSTER, WORKERS, session_on_cluster

NOT_COMPILED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""So many small queries would do little but wait for compilers; tests/processes have them."""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    if WORKERS:
        with session_on_cluster(NOT_COMPILED) as session:
            yield session
        return
    session = nm.local_spark(memory="2g", config=NOT_COMPILED)
    yield session
    session.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/spark" in str(item.path):
            item.add_marker(pytest.mark.spark)
            if WORKERS and item.get_closest_marker("limit") is None:
                item.add_marker(pytest.mark.limit(SECONDS_ON_CLUSTER))
