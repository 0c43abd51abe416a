"""What the Python of a cluster's machines lacks, in one sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from nilometer.errors import SessionError
from nilometer.spark.failures import explain_failure
from nilometer.spark.workers import (
    _LOOK,
    _LOOK_WITHOUT_PYTHON,
    WorkerPython,
    describe_lacks,
    read_look,
    require_workers,
)

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
MISSING = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "pyarrow":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
"""
LOST = (
    "Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: "
    "Lost task 0.3 in stage 1.0 (TID 14) (worker-2 executor 0): "
)


def look(python: str) -> tuple[str, WorkerPython]:
    command = ["sh", "-c", _LOOK_WITHOUT_PYTHON, python, _LOOK]
    return read_look(subprocess.check_output(command, input="0\n", text=True).rstrip("\n"))


def interpreter(folder: Path, script: str) -> str:
    program = folder / "nilometer-python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    return str(program)


def lacks(*machines: tuple[str, WorkerPython]) -> str:
    error = describe_lacks(machines)
    assert error is not None
    assert error.hint is not None
    assert f"install there Python {HERE}" in error.hint
    return error.message


def test_a_machine_that_has_everything_is_not_reported() -> None:
    assert describe_lacks([look(sys.executable)]) is None


def test_a_machine_without_pyarrow(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(MISSING)
    script = f'PYTHONPATH={tmp_path} exec {sys.executable} "$@"'
    host, python = look(interpreter(tmp_path, script))
    assert lacks((host, python)) == f"{host} has no pyarrow for {sys.executable}"


def test_a_machine_without_python(tmp_path: Path) -> None:
    host, python = look(interpreter(tmp_path, 'exec no-such-python "$@"'))
    assert lacks((host, python)) == f"{host} has no Python {HERE} by the name that the server knows"


def test_several_machines_are_reported_together() -> None:
    assert lacks(
        ("w2", WorkerPython("3.1")),
        ("w1", WorkerPython("3.1")),
        ("w1", WorkerPython("3.1")),
        ("w3", WorkerPython(missing=("pyarrow", "numpy"), interpreter="/usr/bin/python3")),
        ("w4", WorkerPython()),
    ) == (
        f"w1, w2 have Python 3.1, but the server has {HERE}; "
        "w3 has no pyarrow and no numpy for /usr/bin/python3"
    )


class Cluster:
    """A session on a cluster whose executors have this interpreter."""

    def __init__(self, python: str) -> None:
        self.pythonExec = python
        self.defaultParallelism = 2
        self._tasks = 0

    def get(self, *_: str) -> str:
        return "spark://h:7077"

    def parallelize(self, items: list[int], _: int) -> Cluster:
        self._tasks = len(items)
        return self

    def pipe(self, command: list[str]) -> Cluster:
        self._command = command
        return self

    def collect(self) -> list[str]:
        run = subprocess.check_output(self._command, input="0\n", text=True)
        return run.splitlines() * self._tasks

    conf = sparkContext = _jsc = property(lambda self: self)  # noqa: N815  Spark's names


def test_executors_are_looked_at(tmp_path: Path) -> None:
    fine: Any = Cluster(sys.executable)
    require_workers(fine)
    without: Any = Cluster(interpreter(tmp_path, "exit 127"))
    with pytest.raises(SessionError, match="has no Python"):
        require_workers(without)


@pytest.mark.parametrize(
    ("raised", "sentence"),
    [
        (
            "ModuleNotFoundError: No module named 'pyarrow'",
            "worker-2 has no pyarrow for its Python",
        ),
        (
            "PySparkImportError: [PACKAGE_NOT_INSTALLED] PyArrow >= 18.0.0 must be installed; "
            "however, it was not found.",
            "worker-2 has no pyarrow for its Python",
        ),
        (
            "RuntimeError: pandas is not installed in the worker's Python /usr/bin/python3: "
            "install the same packages there as on the driver",
            "worker-2 has no pandas for /usr/bin/python3",
        ),
        (
            "PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different "
            "version: 3.1 than that in driver: 3.11, PySpark cannot run with different minor "
            "versions.",
            f"worker-2 has Python 3.1, but the server has {HERE}",
        ),
        (
            "Error from python worker:\n  ./nilometer-python: 2: exec: python3: not found\n",
            f"worker-2 has no Python {HERE} by the name that the server knows",
        ),
    ],
)
def test_the_first_failure_of_a_later_executor_says_the_same(raised: str, sentence: str) -> None:
    assert explain_failure(PySparkException(message=LOST + raised)).message == sentence
    unnamed = explain_failure(PySparkException(message=raised))
    assert unnamed.message == sentence.replace("worker-2", "an executor")
    assert unnamed.detail == "which one stands in the log of Spark, where a task was lost"


def test_other_modules_are_not_the_workers_fault() -> None:
    raised = "ModuleNotFoundError: No module named 'plant'"
    assert explain_failure(PySparkException(message=LOST + raised)).message == (
        "Spark could not do this"
    )
