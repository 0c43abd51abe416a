"""Alerts on what the engine computes: a query over a stream, and the stream itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import nilometer as nm
from tests.delivery_receivers import Receiver, receiver
from tests.patience import wait_for

pytestmark = pytest.mark.spark


def test_a_query_and_a_stream_are_watched_and_reported(spark: SparkSession, tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text("")
    with receiver() as hook, nm.connect(spark, path=tmp_path / "db") as db:
        source = f"file WITH (address = '{data}', speed = 'max', follow = true)"
        db.execute(f"CREATE STREAM S (room INT, v DOUBLE) FROM {source}")
        db.execute("CREATE QUERY mean AS SELECT room, AVG(v) AS v FROM S [ROWS 2] GROUP BY room")
        to = f"DELIVER TO webhook WITH (url = '{hook.url}', secret = 's')"
        db.execute(f"CREATE ALERT high ON mean WHEN v > 50 CLEAR WHEN v < 40 PER (room) {to}")
        db.execute("CREATE ALERT low ON S WHEN v < 0")
        add(data, (1, 60), (2, 10))
        wait_for(lambda: states(hook) == ["firing"])
        add(data, (1, 30))  # the mean of 60 and 30 is between the conditions
        add(data, (1, 30))
        wait_for(lambda: states(hook) == ["firing", "ok"])
        add(data, (2, -1))
        wait_for(lambda: [one.state for one in db.alert_history("low")] == ["firing"])
        assert db.select("SELECT state FROM high ORDER BY time").column("state").to_pylist() == [
            "firing",
            "ok",
        ]


def add(file: Path, *rows: tuple[int, float]) -> None:
    with file.open("a") as opened:
        opened.write("".join(f'{{"room": {room}, "v": {v}}}\n' for room, v in rows))


def states(hook: Receiver) -> list[str]:
    return [row["state"] for post in list(hook.posts) for row in post.content["rows"]]
