"""However much goes through a log, its writer's memory stays within the cap."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from nilometer.log.frame import Frame
from nilometer.log.memory_tail import MemoryTail
from nilometer.log.position import Position
from tests.unit.log_samples import rows_from

MEGABYTE = 1 << 20
BESIDE = 180 * MEGABYTE


def put_through(folder: Path, megabytes: int) -> None:
    command = [sys.executable, "-m", "tests.unit.log_load", str(folder), str(megabytes)]
    figures = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    assert figures["rows"] == figures["wanted"] >= megabytes * MEGABYTE // 24 - 10_000
    assert figures["resident"] < figures["memory"] + BESIDE


def test_200_megabytes_beside_a_paused_reader(tmp_path: Path) -> None:
    put_through(tmp_path / "log", 200)


@pytest.mark.soak
def test_a_gigabyte_beside_a_paused_reader(tmp_path: Path) -> None:
    put_through(tmp_path / "log", 1024)


def frame(first: int, rows: pa.RecordBatch) -> Frame:
    return Frame(rows, None, Position(0, first, 0, first), Position(0, first + 10, 0, first + 10))


def test_rows_cut_from_larger_ones_do_not_keep_these_alive() -> None:
    many = rows_from(0, 100_000)
    tail = MemoryTail(140_000, Position(0, 0))
    for first in range(0, 500, 10):
        tail.add(frame(first, many.slice(first, 10)), None)
    assert tail.size < 140_000
    frames = tail.after(tail.start, Position(0, 500, 0, 500), 1 << 30)
    assert frames is not None
    assert len(frames) >= 20
    assert sum(one.rows.get_total_buffer_size() for one in frames) < 40_000


def test_the_oldest_frames_go_first_and_what_is_gone_is_not_answered() -> None:
    tail = MemoryTail(20_000, Position(0, 0))
    for first in range(0, 100, 10):
        tail.add(frame(first, rows_from(first, 10)), None)
    assert Position(0, 0) < tail.start < Position(0, 100)
    assert tail.after(Position(0, 0), Position(0, 100), 1 << 30) is None
    frames = tail.after(tail.start, Position(0, 100, 0, 100), 1 << 30)
    assert frames is not None
    assert [one.start.row for one in frames] == list(range(tail.start.row, 100, 10))


def test_nothing_is_kept_where_no_memory_is_allowed() -> None:
    tail = MemoryTail(0, Position(0, 0))
    tail.add(frame(0, rows_from(0, 10)), None)
    assert (tail.size, tail.start) == (0, Position(0, 10, 0, 10))
