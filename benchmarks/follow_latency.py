"""The latency from a micro-batch to a client that follows its query.

Run separately: python -m benchmarks.follow_latency [SECONDS]. A server with Spark and a window join
over synthetic sensors runs in its own process. Beside it, one thread checks the head of the result
log, which each micro-batch publishes when it is done, every two milliseconds; another follows with
the Python client. The report has the distribution of the time between the two, and of the whole way
from a sensor's reading to the client. Target: less than 1.5 times the interval between
micro-batches (half a second).
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from bisect import bisect_left
from pathlib import Path
from typing import Any, Final

import numpy as np

import nilometer as nm
from nilometer.log.reader import LogReader
from nilometer.server.results.offset import Offset
from tests.server_at_work import server_at_work

SECONDS: Final = 60
INTERVAL: Final = 0.5
QUERY: Final = "SELECT A.k, A.v AS va, B.v AS vb FROM A, B WINDOW(A, B) = 1 SECOND WHERE A.k = B.k"


class Published:
    """When each row of a log was published, as seen from outside."""

    def __init__(self, location: Path) -> None:
        self._reader = LogReader.open(location)
        self.rows: list[int] = []
        self.times: list[float] = []
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._going = True

    def __enter__(self) -> Published:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._going = False
        self._thread.join()

    def when(self, row: int) -> float | None:
        """When the log first had that many rows."""
        at = bisect_left(self.rows, row)
        return self.times[at] if at < len(self.rows) else None

    def _watch(self) -> None:
        while self._going:
            row = self._reader.end.row
            if not self.rows or row > self.rows[-1]:
                self.rows.append(row)
                self.times.append(time.time())
            time.sleep(0.002)


def run(seconds: int = SECONDS) -> dict[str, Any]:
    """Follow for a number of seconds; returns the distributions."""
    with (
        tempfile.TemporaryDirectory(prefix="nilometer-latency-") as folder,
        server_at_work(Path(folder)) as server,
        nm.Client(server.url, server.tokens["admin"]) as client,
    ):
        for name in ("A", "B"):
            client.execute(
                f"CREATE STREAM {name} (k BIGINT, v DOUBLE) FROM synthetic "
                "WITH (rate = 200, values = 'k=uniform(0,100), v=normal(20,5)')"
            )
        client.execute(f"CREATE QUERY matches AS {QUERY}")
        query = client.query("matches")
        while not query.status()["result_rows"]:
            time.sleep(0.2)
        time.sleep(10)  # until the JVM has warmed up
        with Published(server.folder / "logs" / "matches") as published:
            chunks = _follow(query, seconds)
        return _report(published, chunks)


def _follow(query: Any, seconds: int) -> list[tuple[float, int, float]]:
    """For every chunk: when it arrived, the rows of the log up to its end, its latest time."""
    chunks = []
    end = time.time() + seconds
    following = query.follow(batches=True)
    for batch in following:
        now = time.time()
        if batch.num_rows:
            newest = max(one.timestamp() for one in batch.column("_time").to_pylist())
            chunks.append((now, Offset.read(following.offset).position.row, newest))
        if now > end:
            return chunks
    return chunks


def _report(published: Published, chunks: list[tuple[float, int, float]]) -> dict[str, Any]:
    first = published.rows[0]
    known = [
        (now - at, now - newest)
        for now, row, newest in chunks
        if row > first and (at := published.when(row)) is not None
    ]
    after, whole = np.array(known).T
    return {
        "chunks": len(known),
        "after the batch, ms": _spread(after),
        "in intervals (wanted < 1.5)": round(float(after.max()) / INTERVAL, 2),
        "from reading to client, ms": _spread(whole),
    }


def _spread(seconds: np.ndarray[Any, Any]) -> dict[str, float]:
    at = {"p50": 50, "p90": 90, "p99": 99, "max": 100}
    return {name: round(float(np.percentile(seconds, p)) * 1000, 1) for name, p in at.items()}


def main() -> None:
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    for name, value in run(seconds).items():
        print(f"{name:28}  {value}")


if __name__ == "__main__":
    main()
