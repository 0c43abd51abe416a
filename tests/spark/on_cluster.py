"""The tests of this folder on a real cluster, with logs in an object store.

`NILOMETER_CLUSTER=3 pytest tests/spark --basetemp build/cluster` runs them on three workers, each
with a /tmp of its own, and lets databases that name no place for their logs have it in a store.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from nilometer.database.stored_parts import OpenParts, StoragePlace, StoredParts
from nilometer.spark.session import start_in_background
from nilometer.upkeep.places import is_database
from tests.s3_server import S3_ENVIRONMENT, s3_server
from tests.spark_cluster import executor_settings, spark_cluster

WORKERS: Final = int(os.environ.get("NILOMETER_CLUSTER", "0"))
SECONDS_ON_CLUSTER: Final = 600.0
"""How long a test may take there: every worker starts its own Java and Python."""
_CONFIG: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "700m",
    "spark.sql.shuffle.partitions": str(WORKERS),
    # Executors have the same host, but not the same disk.
    "spark.shuffle.readHostLocalDisk": "false",
    # Whatever is slower than others is run twice, and the slower of the two may write last.
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.multiplier": "1.1",
    **{f"spark.executorEnv.{name}": value for name, value in S3_ENVIRONMENT.items()},
}


@contextmanager
def session_on_cluster(config: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session on a cluster of the test's own."""
    build = Path.cwd() / "build"
    build.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=build) as folder,
        spark_cluster(Path(folder), WORKERS) as cluster,
        s3_server() as options,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        for name, value in S3_ENVIRONMENT.items():
            patch.setenv(name, value)
        _put_logs_into(f"s3://bucket/{{}}?{options}", patch)
        session = start_in_background(
            name="tests",
            cores=None,
            config={**_CONFIG, **executor_settings(), **config},
            said=lambda _: None,
            master=cluster.url,
        )()
        yield session
        session.stop()


def _put_logs_into(place: str, patch: pytest.MonkeyPatch) -> None:
    """Let databases that name no place for their logs have it in a store."""
    opened = StoredParts.open

    def in_store(stored: StoredParts, at: StoragePlace) -> OpenParts:
        if at.logs is None and (at.folder is None or not is_database(at.folder)):
            at = at._replace(logs=place.format(uuid4().hex))
        return opened(stored, at)

    patch.setattr(StoredParts, "open", in_store)
