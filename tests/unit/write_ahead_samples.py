"""Write-aheads for tests, of a log with running numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from nilometer.log.options import Durability, LogOptions
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.log.write_ahead import WriteAhead
from nilometer.log.writer import LogWriter
from tests.unit.fallible_store import FallibleStore
from tests.unit.log_samples import LAYOUT, numbers_in, rows_from

LOG = "ahead://things/log"
HOUR = 3_600_000_000
OPTIONS = LogOptions(durability=Durability.DISK, ship_size=4000, ship_every=HOUR, memory=4000)
KEYS = 1000


@contextmanager
def opened(folder: Path, options: LogOptions = OPTIONS) -> Iterator[WriteAhead]:
    with ExitStack() as closing:
        log = closing.enter_context(LogWriter.open(LOG, LAYOUT, replace(options, memory=0)))
        ahead = WriteAhead(folder, log, options, lambda: 1_000_000)
        closing.callback(ahead.close)
        yield ahead


def add(ahead: WriteAhead, first: int, count: int, *, keyed: bool = True) -> None:
    """Append rows, each with a delivery key if they are keyed."""
    keys = [b"%d" % one for one in range(first, first + count)]
    if keyed:
        ahead.append(rows_from(first, count), watermark=first, keys=keys, row_keys=keys)
    else:
        ahead.append(rows_from(first, count), watermark=first)


def stored() -> list[int]:
    return numbers_in(LogReader.open(LOG).read(Position(0, 0)))


@contextmanager
def machine(store: FallibleStore, folder: Path) -> Iterator[WriteAhead]:
    """A write-ahead that is killed in the end: nothing is shipped."""
    with opened(folder) as ahead:
        yield ahead
        store.is_away = True
    store.is_away = False
