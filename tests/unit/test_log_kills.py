"""A writer and a reader killed at random moments: nothing is lost, and nothing comes twice."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.log.writer import LogWriter
from tests.forks import FORKS
from tests.patience import LONG
from tests.unit.log_children import OPTIONS, committed, follow, ingest
from tests.unit.log_samples import LAYOUT, numbers_in, rows_from


def run_and_kill(
    work: Callable[..., None], log: Path, chance: random.Random
) -> list[tuple[Any, ...]]:
    """What a process reported before it was killed, some moment after its first report."""
    here, there = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=work, args=(str(log), chance.randrange(1 << 30), there))
    process.start()
    there.close()
    assert here.poll(LONG)
    time.sleep(chance.random() * 0.15)
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


def ingest_and_kill(log: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    rows = 0
    for _ in range(kills):
        reports = run_and_kill(ingest, log, chance)
        acknowledged = max((n for what, n in reports if what == "ack"), default=rows)
        tried = max((n for what, n in reports if what == "try"), default=rows)
        with LogWriter.open(log, LAYOUT, OPTIONS) as writer:
            rows = writer.end.row
            assert rows in (acknowledged, tried)
            assert numbers_in(writer.read(Position(0, 0))) == list(range(rows))
        assert numbers_in(LogReader.open(log).read(Position(0, 0))) == list(range(rows))
    assert rows > 0


def read_and_kill(log: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    with LogWriter.open(log, LAYOUT, OPTIONS) as writer:
        rows = 0
        for _ in range(kills):
            for _ in range(60):
                count = chance.randint(1, 90)
                rows = writer.append(rows_from(rows, count)).row
            before = committed(str(log)).row
            reports = run_and_kill(follow, log, chance)
            assert reports[0] == ("begin", before, before)
            follows = (b[1] == a[2] for a, b in pairwise(reports) if b[0] == "read")
            assert all(follows)
            said = max(end for what, _, end in reports if what != "read")
            read = max(end for _, _, end in reports)
            assert committed(str(log)).row in (said, read)
            writer.trim()
        last = committed(str(log))
        assert 0 < last.row <= rows
        assert numbers_in(LogReader.open(log).read(last)) == list(range(last.row, rows))


def test_a_killed_writer_loses_nothing_acknowledged(tmp_path: Path) -> None:
    ingest_and_kill(tmp_path / "log", 10, 1)


def test_a_killed_reader_goes_on_at_its_commit(tmp_path: Path) -> None:
    read_and_kill(tmp_path / "log", 10, 2)


@pytest.mark.soak
@pytest.mark.parametrize("seed", [3, 4])
def test_fifty_kills_of_a_writer(tmp_path: Path, seed: int) -> None:
    ingest_and_kill(tmp_path / "log", 50, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", [5, 6])
def test_fifty_kills_of_a_reader(tmp_path: Path, seed: int) -> None:
    read_and_kill(tmp_path / "log", 50, seed)
