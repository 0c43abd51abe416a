"""What pods of executors run, with the environment that Spark gives them on Kubernetes.

The driver belongs to a standalone master without workers: it takes any executor that comes.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nilometer.spark.java import java_home, require_java
from tests.patience import LONG, wait_for
from tests.spark_cluster import answers, environment, free_port, spark_cluster

SCRIPT = Path(__file__).parents[2] / "deploy" / "executor.sh"
DRIVER = """
import sys
from nilometer.spark.session import _start_session
config = {"spark.driver.host": "127.0.0.1", "spark.driver.port": sys.argv[2]}
spark = _start_session("test", None, None, config, None, sys.argv[1])
print(spark.sparkContext.parallelize(range(100), 4).map(lambda n: n % 7).sum())
spark.stop()
"""


@pytest.mark.soak
def test_an_executor_registers_with_the_driver_and_runs_its_tasks(tmp_path: Path) -> None:
    port = free_port()
    with spark_cluster(tmp_path, workers=0) as cluster, java_home(require_java(), tmp_path):
        command = [sys.executable, "-c", DRIVER, cluster.url, str(port)]
        with subprocess.Popen(
            command, env=environment(), stdout=subprocess.PIPE, text=True
        ) as driver:
            wait_for(lambda: answers(port), alive=lambda: driver.poll() is None)
            executor = start_executor(port, tmp_path / "executor.log")
            try:
                said, _ = driver.communicate(timeout=LONG)
            finally:
                driver.kill()
                executor.kill()
                executor.wait()
    assert said.strip() == str(sum(n % 7 for n in range(100)))


def start_executor(port: int, log: Path) -> subprocess.Popen[bytes]:
    given = {
        "SPARK_DRIVER_URL": f"spark://CoarseGrainedScheduler@127.0.0.1:{port}",
        "SPARK_EXECUTOR_ID": "1",
        "SPARK_EXECUTOR_CORES": "2",
        "SPARK_EXECUTOR_MEMORY": "512m",
        "SPARK_APPLICATION_ID": "spark-1",
        "SPARK_EXECUTOR_POD_IP": "127.0.0.1",
        "SPARK_EXECUTOR_POD_NAME": "executor-1",
        "SPARK_RESOURCE_PROFILE_ID": "0",
        "SPARK_JAVA_OPT_0": f"-Dspark.driver.port={port}",
        "SPARK_JAVA_OPT_1": "-Dnilometer.words=two words",
        "SPARK_JAVA_OPT_10": "-XX:+UseParallelGC",
    }
    with log.open("wb") as output:
        return subprocess.Popen(
            [SCRIPT, "executor"],
            cwd=log.parent,
            env={**environment(), **given},
            stdout=output,
            stderr=output,
        )
