"""What worker processes hold in memory is what their queries need, however long they run."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from nilometer.log.frame import Frame
from nilometer.log.memory_tail import MemoryTail
from nilometer.log.position import Position
from tests.unit.test_engine import STREAMS, World

QUERIES = (
    "SELECT k, COUNT(*) AS n, AVG(v) AS m FROM A [RANGE 20 MILLISECONDS] GROUP BY k EMIT CHANGES",
    "SELECT A.k, A.v, B.v AS w FROM A, B WINDOW = 10 MILLISECONDS WHERE A.k = B.k",
)


@pytest.mark.parametrize("sql", QUERIES)
def test_workers_that_take_turns_keep_no_chunks_that_are_gone(tmp_path: Path, sql: str) -> None:
    chance, now = random.Random(1), 0
    with closing(World(tmp_path)) as world:
        world.start("q", sql, {name: Position(0, 0) for name in STREAMS})
        largest = 0
        for number in range(120):
            for _ in range(4):
                now = world.add_rows(chance, now)
            worker = chance.randrange(2)
            for bucket in (0, 1):
                world.run(bucket, worker)
            world.publisher.step()
            for host in world.workers[worker].values():
                held, kept = host._held.find("q"), host._kept.get("q")
                if held is not None and kept is not None:
                    assert set(held.run.subplan.chunks._chunks) <= set(kept.chunks)
                    if number < 30:
                        largest = max(largest, len(kept.chunks))
                    else:
                        assert len(held.run.subplan.chunks._chunks) <= 2 * largest


def test_small_frames_in_memory_count_for_what_they_take() -> None:
    tail = MemoryTail(1 << 20, Position(0, 0))
    for number in range(5000):
        rows = pa.RecordBatch.from_pydict({"a": [number], "b": [1.0], "c": ["x"]})
        at, after = Position(0, number * 100, 0, number), Position(0, number * 100 + 100, 0, number)
        tail.add(Frame(rows, number, at, after), number)
    assert len(tail._kept) < 300  # which is about a megabyte with all that belongs to them
