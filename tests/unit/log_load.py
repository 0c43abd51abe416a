"""python -m tests.unit.log_load FOLDER MEGABYTES: a load beside a paused reader; prints figures."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import numpy as np
import psutil
import pyarrow as pa

from nilometer.log.layout import TIMESTAMP
from nilometer.log.options import Fsync, LogOptions
from nilometer.log.position import Position
from nilometer.log.writer import LogWriter
from tests.unit.log_samples import LAYOUT, SCHEMA

EACH = 10_000
MEGABYTE = 1 << 20


def main(folder: str, megabytes: int) -> None:
    process, chance = psutil.Process(), np.random.default_rng(1)
    batches = megabytes * MEGABYTE // (24 * EACH)
    largest, memory = 0, 64 * MEGABYTE
    options = LogOptions(fsync=Fsync.NEVER, memory=memory)
    with LogWriter.open(folder, LAYOUT, options) as writer:
        seen = 0
        paused = _checked(writer, batches)
        for number in range(batches):
            writer.append(_rows(number, chance))
            if number == 0:
                seen = next(paused)
            largest = max(largest, process.memory_info().rss)
        for rows in paused:
            seen = rows
            largest = max(largest, process.memory_info().rss)
        figures = {"rows": seen, "wanted": batches * EACH, "resident": largest, "memory": memory}
    sys.stdout.write(json.dumps(figures))


def _rows(number: int, chance: np.random.Generator) -> pa.RecordBatch:
    numbers = pa.array(np.arange(number * EACH, (number + 1) * EACH))
    columns = [numbers.view(TIMESTAMP), numbers, pa.array(chance.random(EACH))]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _checked(writer: LogWriter, batches: int) -> Iterator[int]:
    """How many rows have been read after each frame; they must be numbered from 0 on."""
    seen, place = 0, Position(0, 0)
    while seen < batches * EACH:
        for frame in writer.read(place):
            numbers = frame.rows.column("k").to_numpy()
            if not np.array_equal(numbers, np.arange(seen, seen + len(numbers))):
                raise SystemExit(f"rows are missing or out of order after {seen}")
            seen, place = seen + len(numbers), frame.end
            yield seen


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
