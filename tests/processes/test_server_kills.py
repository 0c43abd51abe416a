"""A server that is killed while queries run and clients follow: every result once, none lost."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import nilometer as nm
from nilometer.local.database import LocalDatabase
from nilometer.log.reader import LogReader
from tests.patience import wait_for
from tests.server_at_work import ServerAtWork, server_at_work

QUERIES: Final = {
    "matches": "SELECT A.k, A.v AS va, B.v AS vb FROM A, B WINDOW(A, B) = 1 SECOND WHERE A.k = B.k",
    "sums": "SELECT k, SUM(v) AS total FROM A [RANGE 2 SECONDS] GROUP BY k",
    "only_a": "SELECT k FROM A [RANGE 1 SECOND] EXCEPT SELECT k FROM B [RANGE 1 SECOND]",
}


class OverError(Exception):
    """Ends a follower that would otherwise look for its server for ever."""


class Follower(threading.Thread):
    """Collects what one client gets, whatever happens to the server."""

    def __init__(self, url: str, token: str, query: str) -> None:
        super().__init__(daemon=True)
        self.rows: list[dict[str, Any]] = []
        self.reconnects = 0
        self.is_over = False
        self._client = nm.Client(url, token)
        self._query = query

    def run(self) -> None:
        follow = self._client.query(self._query).follow(
            start="start", on_reconnect=lambda *_: self._note()
        )
        with suppress(OverError):
            for row in follow:
                self.rows.append(row)
                if self.is_over:
                    return

    def _note(self) -> None:
        """Count a loss of the connection; in the end, stop trying."""
        self.reconnects += 1
        if self.is_over:
            raise OverError


def declare(server: ServerAtWork) -> None:
    for name in ("A", "B"):
        server.sql(
            f"CREATE STREAM {name} (k BIGINT, v BIGINT, HISTORY 1 DAY) FROM synthetic "
            f"WITH (rate = 40, values = 'k=uniform(0,60), v=counter(0,1)')"
        )
    for name, text in QUERIES.items():
        server.sql(f"CREATE QUERY {name} AS {text} FROM START")


def stored(folder: Path, name: str) -> pa.Table:
    """What the log of a stream or query holds."""
    reader = LogReader.open(folder / "logs" / name.lower())
    frames = [frame.rows for frame in reader.read(reader.start)]
    return pa.Table.from_batches(frames, reader.layout.stored)


def expected(folder: Path, query: str) -> Counter[tuple[Any, ...]]:
    """The changes, or rows, that a query makes of all that its streams hold."""
    db = LocalDatabase()
    for name in ("A", "B"):
        db.create_stream(name, stored(folder, name), time="_time")
    return counted(db.sql(QUERIES[query]).to_pylist())


def counted(rows: Iterable[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    """How often each row comes; of changes, how often in all."""
    counts: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        copies = row.get("_diff", 1)
        counts[tuple(value for name, value in row.items() if name != "_diff")] += copies
    return Counter({row: copies for row, copies in counts.items() if copies})


def before(rows: Counter[tuple[Any, ...]], watermark: datetime) -> Counter[tuple[Any, ...]]:
    """Those with times before the watermark; the time is the last value of a row."""
    return Counter({row: copies for row, copies in rows.items() if row[-1] < watermark})


def run_with_kills(folder: Path, kills: int, pause: tuple[float, float], seed: int) -> None:
    """Kill the server so many times; in the end compare what clients got with what is true."""
    chance = random.Random(seed)
    followers: dict[str, Follower] = {}
    port = 0
    for _ in range(kills):
        with server_at_work(folder, port=port) as server:
            if not followers:
                declare(server)
                port = server.port
                for name in QUERIES:
                    followers[name] = Follower(server.url, server.tokens["read"], name)
                    followers[name].start()
                wait_for(lambda: all(len(one.rows) > 50 for one in followers.values()), 120)
            time.sleep(chance.uniform(*pause))
            server.kill()
    rows = {name: stored(folder, name).num_rows for name in ("A", "B")}
    with server_at_work(folder, port=port) as server:
        check_counts(server, rows)
        sizes = {name: len(one.rows) for name, one in followers.items()}
        wait_for(lambda: all(len(one.rows) > sizes[name] for name, one in followers.items()), 120)
        for name in QUERIES:
            server.sql(f"STOP QUERY {name}")
        wait_for(
            lambda: all(len(f.rows) >= stored(folder, n).num_rows for n, f in followers.items()),
            every=0.1,
        )
        server.kill()
    for follower in followers.values():
        follower.is_over = True
    for name, follower in followers.items():
        assert follower.reconnects
        log = stored(folder, name)
        assert Counter(map(spelled, follower.rows)) == Counter(map(spelled, log.to_pylist())), name
        watermark = LogReader.open(folder / "logs" / name).watermark
        assert watermark is not None
        until = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=watermark)
        true = expected(folder, name)
        assert before(counted(follower.rows), until) == before(true, until), name
        assert len(before(true, until)) > 50


def check_counts(server: ServerAtWork, rows: dict[str, int]) -> None:
    """What was counted before the kill still counts, and the log tells of the start."""
    for name, stored_rows in rows.items():
        wait_for(lambda name=name, most=stored_rows: readings_of(server, name) >= most, every=0.1)
    assert "queries resumed: 3" in (server.folder / "server.log").read_text()


def readings_of(server: ServerAtWork, stream: str) -> int:
    sensors = server.sql("SHOW SENSORS")["rows"]
    return next(one["readings"] or 0 for one in sensors if one["stream"] == stream)


def spelled(row: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, value in row.items())


def test_a_client_has_every_result_once_though_the_server_is_killed(tmp_path: Path) -> None:
    run_with_kills(tmp_path, kills=1, pause=(0.5, 1.5), seed=1)


@pytest.mark.soak
@pytest.mark.limit(1800)
def test_a_client_has_every_result_once_after_many_kills(tmp_path: Path) -> None:
    run_with_kills(tmp_path, kills=15, pause=(0.0, 6.0), seed=2)
