"""Arrow files in, envelopes of results out: the same results, each once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import nilometer as nm
from nilometer.errors import NilometerError
from nilometer.model.network import TimeNetwork
from nilometer.model.windows import read_windows
from nilometer.spark.arrow_sink import read_results
from nilometer.spark.columnar import join_arrow_files
from nilometer.spark.join_plan import JoinOptions
from tests import naive
from tests.spark.stream_process import LATENESS, STREAMS, WINDOWS
from tests.spark.test_kills import found, generate, lay_out


def test_columnar_join_is_naive_join_across_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    batches = generate(seed=7, batches=4, rows=80)
    options = JoinOptions(WINDOWS, on="k", time="ts", lateness=LATENESS)
    for first in (0, 2):
        lay_out(tmp_path, [stream[first : first + 2] for stream in batches], "columnar", first)
        folders = {name: tmp_path / name for name in STREAMS}
        join = join_arrow_files(spark, folders, options, files_per_batch=1)
        query = join.start(tmp_path / "out", tmp_path / "checkpoint", available_now=True)
        query.awaitTermination()
    network = TimeNetwork(STREAMS, read_windows(WINDOWS))
    expected = naive.window_join([[r for b in s for r in b] for s in batches], network)
    assert found("columnar", tmp_path, spark) == expected
    listed = [
        json.loads(file.read_text())["files"] for file in sorted((tmp_path / "out").glob("*.json"))
    ]
    assert len(listed) == 4
    names = {file["file"] for files in listed for file in files}
    assert names == {file.name for file in (tmp_path / "out").glob("*.arrow")}
    assert sum(file["rows"] for files in listed for file in files) == len(expected)


def test_metrics_of_a_columnar_join(spark: SparkSession, tmp_path: Path) -> None:
    lay_out(tmp_path, generate(seed=8, batches=2, rows=40), "columnar")
    options = JoinOptions(WINDOWS, on="k", time="ts", lateness=LATENESS)
    folders = {name: tmp_path / name for name in STREAMS}
    query = join_arrow_files(spark, folders, options).start(
        tmp_path / "out", tmp_path / "checkpoint", available_now=True
    )
    query.awaitTermination()
    [metrics] = nm.metrics(query)
    assert {name: stream.rows for name, stream in metrics.streams.items()} == dict.fromkeys(
        STREAMS, 80
    )
    assert metrics.results == sum(map(len, read_results(tmp_path / "out")))


def test_two_queries_cannot_share_a_folder(spark: SparkSession, tmp_path: Path) -> None:
    lay_out(tmp_path, generate(seed=8, batches=1, rows=40), "columnar")
    options = JoinOptions(WINDOWS, on="k", time="ts", lateness=LATENESS)
    folders = {name: tmp_path / name for name in STREAMS}
    for checkpoint in ("one", "two"):
        query = join_arrow_files(spark, folders, options).start(
            tmp_path / "out", tmp_path / checkpoint, available_now=True
        )
        if checkpoint == "one":
            query.awaitTermination()
    with pytest.raises(Exception, match="holds the results of another query"):
        query.awaitTermination()


def test_what_files_cannot_do(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "A").mkdir()
    with pytest.raises(NilometerError, match="there are no Arrow files in"):
        join_arrow_files(spark, {"A": tmp_path / "A"}, JoinOptions("1s"))
    lay_out(tmp_path / "x", generate(seed=8, batches=1, rows=4), "columnar")
    folders = {name: tmp_path / "x" / name for name in STREAMS}
    with pytest.raises(NilometerError, match="need a time column, and cannot be idle"):
        join_arrow_files(spark, folders, JoinOptions("1s", time="ts", idle="1s"))
