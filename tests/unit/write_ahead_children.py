"""A process with a write-ahead, which is killed."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

from nilometer.log.options import Durability, LogOptions
from nilometer.log.write_ahead import WriteAhead
from nilometer.log.writer import LogWriter
from nilometer.model.time import FOREVER
from tests.unit.log_samples import LAYOUT
from tests.unit.write_ahead_samples import add

OPTIONS = LogOptions(
    durability=Durability.DISK,
    ship_size=30_000,
    ship_every=100_000,
    memory=4000,
    segment=10_000,
    history=FOREVER,
)


def ingest(log: str, folder: str, seed: int, pipe: Connection) -> None:
    """Append numbered rows until it is killed; says before and after which there are."""
    chance = random.Random(seed)
    with LogWriter.open(log, LAYOUT, replace(OPTIONS, memory=0)) as store:
        ahead = WriteAhead(Path(folder), store, OPTIONS, lambda: 0)
        while True:
            rows, count = ahead.end.row, chance.randint(1, 60)
            pipe.send(("try", rows + count))
            add(ahead, rows, count)
            pipe.send(("ack", rows + count))
            ahead.trim()
            time.sleep(0.003)
