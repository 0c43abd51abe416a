"""What must work on every supported Spark and Python, in a minute or two.

It needs pytest and the installed package, no more: scripts/spark_versions.sh runs it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.spark.session import JAVA_OPTIONS

QUICK_TO_START = {"spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} -XX:TieredStopAtLevel=1"}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = nm.local_spark(memory="1g", cores=2, config=QUICK_TO_START)
    yield session
    session.stop()
