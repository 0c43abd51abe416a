"""python -m benchmarks.log_append: rows per second into a log, beside an Arrow stream file."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from nilometer.log.layout import TIMESTAMP, LogLayout
from nilometer.log.options import Fsync, LogOptions
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.log.writer import LogWriter

ROWS: Final = 2_000_000
MOST_APPENDS: Final = 500
BATCHES: Final = (10_000, 1_000)
SCHEMA: Final = pa.schema([("ts", TIMESTAMP), ("k", pa.int64()), ("v", pa.float64())])
_REPEATS: Final = 3


def measure() -> dict[str, Any]:
    """Rows per second by batch size and policy, the best of three, with every result checked."""
    rates: dict[str, Any] = {}
    folder = Path(tempfile.mkdtemp(dir="build"))
    try:
        for size in BATCHES:
            batches = _batches(size)
            for policy in Fsync:
                name = f"append {size} {policy}"
                rates[name] = _best(batches, folder, _log_writer(policy), _read_log)
                stored = f"append {size} {policy}, uncompressed"
                writer = _log_writer(policy, None)
                rates[stored] = _best(batches, folder, writer, _read_log)
            rates[f"arrow stream {size} always"] = _best(
                batches, folder, _write_stream, _read_stream
            )
    finally:
        shutil.rmtree(folder)
    return {"rows_per_second": rates}


def _batches(size: int) -> list[pa.RecordBatch]:
    chance = np.random.default_rng(1)
    count = min(ROWS // size, MOST_APPENDS)
    times = 1_700_000_000_000_000 + np.cumsum(chance.integers(1, 2000, size * count))
    columns = [
        pa.array(times).view(TIMESTAMP),
        pa.array(chance.integers(0, 10_000, size * count)),
        pa.array(chance.normal(20, 5, size * count)),
    ]
    rows = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    return [rows.slice(first * size, size) for first in range(count)]


def _best(
    batches: list[pa.RecordBatch],
    folder: Path,
    write: Callable[[Path, list[pa.RecordBatch]], None],
    read: Callable[[Path], Iterable[pa.RecordBatch]],
) -> float:
    rows = sum(map(len, batches))
    seconds = []
    for _ in range(_REPEATS):
        place = folder / "measured"
        started = time.perf_counter()
        write(place, batches)
        seconds.append(time.perf_counter() - started)
        wanted = pa.Table.from_batches(batches)
        if not pa.Table.from_batches(read(place), SCHEMA).equals(wanted):
            raise AssertionError("what was written is not what was read")
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    return rows / min(seconds)


def _log_writer(
    policy: Fsync, compression: str | None = "zstd"
) -> Callable[[Path, list[pa.RecordBatch]], None]:
    def write(place: Path, batches: list[pa.RecordBatch]) -> None:
        options = LogOptions(fsync=policy, compression=compression)
        with LogWriter.open(place, LogLayout(SCHEMA, "ts"), options) as writer:
            for one in batches:
                writer.append(one)

    return write


def _read_log(place: Path) -> Iterable[pa.RecordBatch]:
    return [one.rows for one in LogReader.open(place).read(Position(0, 0))]


def _write_stream(place: Path, batches: list[pa.RecordBatch]) -> None:
    with place.open("wb") as file, pa.ipc.new_stream(file, SCHEMA) as writer:
        for one in batches:
            writer.write_batch(one)
            file.flush()
            os.fsync(file.fileno())


def _read_stream(place: Path) -> Iterable[pa.RecordBatch]:
    return list(pa.ipc.open_stream(place.read_bytes()))


def main() -> None:
    table = Table("24-byte rows: what, rows at a time, forced to the disk")
    table.add_column("rows/s", justify="right")
    for name, speed in measure()["rows_per_second"].items():
        table.add_row(name, f"{speed:,.0f}")
    Console(highlight=False).print(table)


if __name__ == "__main__":
    main()
