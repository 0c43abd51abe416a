"""python -m benchmarks.log_packing: bytes per reading before and after packing, and its cost."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from nilometer.log.layout import SENSOR, TIME, TIMESTAMP, LogLayout
from nilometer.log.options import MEGABYTE, Fsync, LogOptions
from nilometer.log.reader import LogReader
from nilometer.log.writer import LogWriter
from nilometer.model.time import FOREVER

READINGS: Final = 20_000
APPEND_SECONDS: Final = 10.0
_OPTIONS: Final = LogOptions(fsync=Fsync.NEVER, memory=0, segment=2 * MEGABYTE, history=FOREVER)
_BEGIN: Final = 1_700_000_000_000_000


def measure() -> dict[str, Any]:
    """Bytes per reading by kind of stream, with every log checked; appends per second."""
    folder = Path(tempfile.mkdtemp(dir="build"))
    try:
        sizes = {
            name: _sizes(folder / str(number), make, at_once, keyed)
            for number, (name, make, at_once, keyed) in enumerate(_kinds())
        }
        return {"bytes_per_reading": sizes, "appends_per_second": _speeds(folder)}
    finally:
        shutil.rmtree(folder)


def _kinds() -> Iterator[tuple[str, Callable[[int], pa.RecordBatch], int, bool]]:
    yield "temperature, one at a time", _numbers(1), 1, False
    yield "temperature, one at a time, with delivery keys", _numbers(1), 1, True
    yield "temperature, 20 at a time", _numbers(1), 20, False
    yield "temperature, 1000 at a time", _numbers(1), 1000, False
    yield "ten numbers, one at a time", _numbers(10), 1, False
    yield "text of 40 letters, one at a time", _texts, 1, False


def _numbers(width: int) -> Callable[[int], pa.RecordBatch]:
    def make(count: int) -> pa.RecordBatch:
        chance = np.random.default_rng(1)
        walks = [
            pa.array(np.round(20 + np.cumsum(chance.normal(0, 0.05, count)), 2))
            for _ in range(width)
        ]
        return _readings(count, {f"v{n}": one for n, one in enumerate(walks)})

    return make


def _texts(count: int) -> pa.RecordBatch:
    chance = np.random.default_rng(1)
    words = chance.choice(["valve", "pump", "open", "closed", "alarm", "ok"], (count, 7))
    return _readings(count, {"said": pa.array([" ".join(one)[:40] for one in words])})


def _readings(count: int, columns: dict[str, pa.Array]) -> pa.RecordBatch:
    chance = np.random.default_rng(2)
    times = _BEGIN + np.cumsum(chance.integers(500, 2000, count))
    return pa.RecordBatch.from_pydict(
        {
            SENSOR: pa.array(chance.integers(0, 50, count), pa.int32()),
            TIME: pa.array(times).view(TIMESTAMP),
            **columns,
        }
    )


def _sizes(
    place: Path, make: Callable[[int], pa.RecordBatch], at_once: int, keyed: bool
) -> tuple[float, float]:
    rows = make(READINGS)
    with LogWriter.open(place, LogLayout(rows.schema, TIME), _OPTIONS) as writer:
        for first in range(0, READINGS, at_once):
            keys = [os.urandom(12) for _ in range(at_once)] if keyed else ()
            part = rows.slice(first, at_once)
            writer.append(part, watermark=part.column(TIME)[0].value - 1_000_000, keys=keys)
        writer._seal()
        before = writer.stored_bytes
        while writer.pack():
            pass
        after = writer.stored_bytes
    log = LogReader.open(place)
    if not pa.Table.from_batches(one.rows for one in log.read(log.start)).equals(
        pa.Table.from_batches([rows])
    ):
        raise AssertionError("what was packed is not what was written")
    return before / READINGS, after / READINGS


def _speeds(folder: Path) -> dict[str, float]:
    """Appends of one reading each, alone and while another large log is packed."""
    rows = _numbers(1)(1)
    options = replace(_OPTIONS, segment=MEGABYTE)
    with LogWriter.open(folder / "other", LogLayout(rows.schema, TIME), options) as other:
        for _ in range(4 * READINGS):
            other.append(rows)
        alone = _speed(folder / "alone", rows)
        done = threading.Event()
        packing = threading.Thread(target=_pack, args=(other, done))
        packing.start()
        beside = _speed(folder / "beside", rows)
        done.set()
        packing.join()
    return {"alone": alone, "beside packing": beside}


def _pack(writer: LogWriter, done: threading.Event) -> None:
    """Pack as the background thread does: five milliseconds of work, fifteen of rest."""
    since = time.perf_counter()

    def breathe() -> None:
        nonlocal since
        took = time.perf_counter() - since
        if took >= 0.005 and not done.is_set():
            time.sleep(3 * took)
            since = time.perf_counter()

    while not done.is_set() and writer._packer.pack(breathe):
        pass


def _speed(place: Path, rows: pa.RecordBatch) -> float:
    with LogWriter.open(place, LogLayout(rows.schema, TIME), _OPTIONS) as writer:
        count, started = 0, time.perf_counter()
        while time.perf_counter() - started < APPEND_SECONDS:
            writer.append(rows)
            count += 1
        return count / (time.perf_counter() - started)


def main() -> None:
    figures = measure()
    table = Table("readings")
    for name in ("bytes each", "packed", "ratio"):
        table.add_column(name, justify="right")
    for name, (before, after) in figures["bytes_per_reading"].items():
        table.add_row(name, f"{before:.0f}", f"{after:.1f}", f"{before / after:.0f}")
    console = Console(highlight=False)
    console.print(table)
    for name, speed in figures["appends_per_second"].items():
        console.print(f"appends per second, {name}: {speed:,.0f}")


if __name__ == "__main__":
    main()
