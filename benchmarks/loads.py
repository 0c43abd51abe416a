"""Loads: generated streams on disk, as a Parquet file per stream and micro-batch, and as logs."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nilometer.log.layout import LogLayout
from nilometer.log.options import Fsync, LogOptions
from nilometer.log.writer import LogWriter
from nilometer.model.time import FOREVER

NAMES: Final = "ABCDEF"
SCHEMA: Final = "ts TIMESTAMP, k BIGINT, v DOUBLE"
DATA: Final = Path("build", "bench-data")

_START: Final = 1_700_000_000_000_000
_ROWS_PER_FRAME: Final = 25_000


@dataclass(frozen=True)
class Load:
    """Streams whose rows arrive in order at random instants, with random keys.

    With keys = rate * window (in seconds) a join of all streams under a uniform window gives
    about one result per input row, for any number of streams.
    """

    streams: int = 3
    window: int = 10
    keys: int = 10_000
    rate: int = 1000
    rows_per_batch: int = 300_000
    batches: int = 20

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(NAMES[: self.streams])

    @property
    def rows(self) -> int:
        return self.rows_per_file * self.streams * self.batches

    @property
    def rows_per_file(self) -> int:
        return self.rows_per_batch // self.streams

    def first(self, batches: int) -> Load:
        """The same streams, truncated after some micro-batches."""
        return replace(self, batches=batches)

    def folder(self, name: str, kind: str) -> Path:
        """The folder of a stream, as files ("parquet") or as a "log"; created if necessary."""
        parts = (self.streams, self.keys, self.rate, self.rows_per_batch, self.batches)
        folder = DATA / "-".join(map(str, parts)) / kind
        if not folder.exists():
            self._make(folder, kind)
        return folder.absolute() / name

    def _make(self, folder: Path, kind: str) -> None:
        aside = folder.with_suffix(".part")
        shutil.rmtree(aside, ignore_errors=True)
        write = _write_files if kind == "parquet" else _write_log
        for number, name in enumerate(self.names):
            (aside / name).mkdir(parents=True)
            write(aside / name, self._tables(number))
        aside.rename(folder)

    def _tables(self, stream: int) -> list[pa.Table]:
        random = np.random.default_rng([2003, stream])
        rows = self.rows_per_file * self.batches
        times = _START + np.cumsum(random.exponential(1e6 / self.rate, rows)).astype(np.int64)
        columns = {
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
            "k": pa.array(random.integers(0, self.keys, rows)),
            "v": pa.array(random.random(rows)),
        }
        whole = pa.table(columns)
        edges = range(0, rows + 1, self.rows_per_file)
        return [whole.slice(first, last - first) for first, last in pairwise(edges)]


def _write_files(folder: Path, tables: list[pa.Table]) -> None:
    for number, table in enumerate(tables):
        file = folder / f"{number:05d}.parquet"
        pq.write_table(table, file)
        os.utime(file, (1_600_000_000 + number,) * 2)  # Spark reads the oldest first


def _write_log(folder: Path, tables: list[pa.Table]) -> None:
    """Append some thousands of rows at a time, each time with the watermark that they reach."""
    options = LogOptions(fsync=Fsync.NEVER, history=FOREVER)
    with LogWriter.open(folder, LogLayout(tables[0].schema, "ts"), options) as log:
        for table in tables:
            for rows in table.to_batches(max_chunksize=_ROWS_PER_FRAME):
                log.append(rows, watermark=rows.column("ts")[-1].value)
