"""Processes with a write-ahead of a log in an S3 store, killed at random moments."""

from __future__ import annotations

import random
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from nilometer.log.location import inside, storage_at
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.log.write_ahead import WriteAhead
from nilometer.log.writer import LogWriter
from tests.forks import FORKS
from tests.patience import LONG, wait_for
from tests.s3_server import S3_ENVIRONMENT, outage, s3_server
from tests.unit.log_samples import LAYOUT, numbers_in
from tests.unit.write_ahead_children import OPTIONS, ingest

KILLS = 3


def run_and_kill(
    log: str, folder: Path, chance: random.Random, options: str, rows: int
) -> list[Any]:
    """What a process reported before it was killed, while the store may be away.

    It has shipped some rows beyond those that were there.
    """
    here, there = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=ingest, args=(log, str(folder), chance.randrange(99), there))
    process.start()
    there.close()
    assert here.poll(LONG)
    wait_for(lambda: LogReader.open(log).end.row > rows, every=0.1)
    with outage(options) if chance.random() < 0.4 else nullcontext():
        time.sleep(chance.random() * 0.3)
        process.kill()
        process.join()
    assert process.exitcode == -9, "it ended by itself"
    reports = []
    while True:
        try:
            reports.append(here.recv())
        except EOFError:
            here.close()
            process.close()
            return reports


def test_a_process_is_killed_while_it_ships(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in S3_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    chance, folder, rows = random.Random(3), tmp_path / "a", 0
    with s3_server() as options:
        log = inside(f"s3://things/logs?{options}", "a")
        for _ in range(KILLS):
            reports = run_and_kill(log, folder, chance, options, rows)
            acknowledged = max((n for what, n in reports if what == "ack"), default=rows)
            tried = max((n for what, n in reports if what == "try"), default=rows)
            seen = numbers_in(LogReader.open(log).read(Position(0, 0)))
            assert seen == list(range(len(seen)))
            with LogWriter.open(log, LAYOUT, OPTIONS) as store:
                ahead = WriteAhead(folder, store, OPTIONS, lambda: 0)
                rows = ahead.end.row
                ahead.ship()
                ahead.close()
            assert rows in (acknowledged, tried)
            assert numbers_in(LogReader.open(log).read(Position(0, 0))) == list(range(rows))
        objects = [name for name, _ in storage_at(log).files() if name.endswith(".seg")]
        assert len(objects) < rows / 30
