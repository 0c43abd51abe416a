"""The examples of the README and of the tour run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import nilometer as nm
from nilometer.spark.metrics import progress_metrics
from tests.patience import wait_for


def test_the_readme_examples_run(
    spark: SparkSession,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    root = Path(__file__).parents[2]
    text = "".join(root.joinpath(page).read_text() for page in ("README.md", "docs/tour.md"))
    [tracks, small, changes, sensors, mining] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {"wait_for_tracks": wait_for_tracks}
    waiting = "query.awaitTermination(20)"
    assert waiting in tracks
    exec(tracks.replace(waiting, "wait_for_tracks(query)"), names)
    check_what_is_shown(text, names["db"], names["tracks"])
    query = names["query"]
    query.stop()
    capsys.readouterr()
    exec(small, names)
    assert capsys.readouterr().out.split()[-5:-2] == ["1", "north", "12"]
    exec(changes, names)
    shown = re.findall(r"```\n(\+-----.*?)```", text, re.DOTALL)[0]
    assert capsys.readouterr().out.split() == shown.split()
    exec(mining, names)
    shown = re.findall(r"```\n(\+----\+.*?)```", text, re.DOTALL)[0]
    assert capsys.readouterr().out.split() == shown.split()
    waiting = 'plant.queries["warm"].awaitTermination(20)'
    assert waiting in sensors
    exec(sensors.replace(waiting, "wait_for_results(plant)"), {**names, **globals()})
    shown = capsys.readouterr().out
    assert re.search(r"\|\s+1\|\s+connected\|\s+[1-9]", shown)
    assert re.search(r"\|\s+2\|\s*not needed\|\s+NULL\|", shown)
    assert re.search(r"\|SensorID\|count\|\n.*\n\|\s+1\|\s+[1-9]", shown)
    assert query.exception() is None
    [metrics] = nm.metrics(query)
    assert set(metrics.streams) == {"A", "B", "C"}
    assert sum(progress_results(report) for report in query.recentProgress) > 0


def wait_for_tracks(query: StreamingQuery) -> None:
    wait_for(lambda: sum(map(progress_results, query.recentProgress)) > 0)


def wait_for_results(db: nm.Database) -> None:
    wait_for(lambda: db.history("warm").count() > 0)


def check_what_is_shown(text: str, db: nm.Database, statement: str) -> None:
    """EXPLAIN and the error look as the tour shows them."""
    shown = re.findall(r"```\n(Window join.*?)  …\n```", text, re.DOTALL)[0]
    assert db.explain(statement).startswith(shown)
    error = re.findall(r"```\n(B has no column.*?)```", text, re.DOTALL)[0]
    lines = [line.removeprefix("    ") for line in statement.strip().splitlines()]
    with pytest.raises(nm.NilometerError) as caught:
        db.sql("\n".join(lines).replace("B.obj_id AND B.obj_id = C.obj_id", "B.objid"))
    assert str(caught.value) == error.rstrip()


def progress_results(report: Any) -> int:
    return sum(join.results for join in progress_metrics(report))
