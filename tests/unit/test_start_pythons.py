"""Which Python the driver of a cluster starts, and which its executors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nilometer.spark.start_pythons import pythons_of_cluster

NAME = "nilometer-python"
HERE = "import nilometer, sys; print(sys.prefix)"


@pytest.fixture
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another Python, which comes first in PATH, as where no environment was activated."""
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\necho another Python\n")
    python.chmod(0o700)
    monkeypatch.setenv("PATH", f"{python.parent}:/usr/bin:/bin")
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    return python


def said(command: Path) -> str:
    return subprocess.check_output([command, "-c", HERE], text=True).strip()


def test_without_a_name_the_driver_uses_its_own(other: Path, tmp_path: Path) -> None:
    with pythons_of_cluster(tmp_path) as pythons:
        assert said(pythons.driver / NAME) == sys.prefix
        assert said(pythons.executors) == "another Python"


def test_its_own_name_is_the_same(
    other: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    with pythons_of_cluster(tmp_path) as pythons:
        assert said(pythons.driver / NAME) == said(pythons.executors) == sys.prefix


@pytest.mark.parametrize("name", ["python3", "bin/python3"])
def test_another_one_is_used_everywhere(
    other: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", name)
    monkeypatch.chdir(tmp_path)
    with pythons_of_cluster(tmp_path) as pythons:
        assert said(pythons.driver / NAME) == "another Python"
