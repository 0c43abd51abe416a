"""Processes that write or read a log until they are killed, saying what they do as they go."""

from __future__ import annotations

import random
from multiprocessing.connection import Connection

from nilometer.log.options import LogOptions
from nilometer.log.parts import write_part
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.log.registrations import commit, register
from nilometer.log.writer import LogWriter
from tests.unit.log_samples import LAYOUT, numbers_in, rows_from

OPTIONS = LogOptions(segment=20_000, memory=50_000)


def ingest(log: str, seed: int, reports: Connection) -> None:
    """Append rows with running numbers; before each append ("try", rows), after it ("ack", rows).

    Some appends are parts, whose batch number is the row number they begin at.
    """
    chance = random.Random(seed)
    with LogWriter.open(log, LAYOUT, OPTIONS) as writer:
        first = writer.end.row
        while True:
            count = chance.randint(1, 300)
            reports.send(("try", first + count))
            if chance.random() < 0.3:
                part = write_part(f"{log}.part", [rows_from(first, count // 2)])
                rest = write_part(
                    f"{log}.rest", [rows_from(first + count // 2, count - count // 2)]
                )
                parts = [one for one in (part, rest) if one is not None]
                assert writer.append_parts(parts, watermark=first, key=("q", first))
            else:
                writer.append(rows_from(first, count), watermark=first, keys=[b"%d" % first])
            first += count
            reports.send(("ack", first))


def follow(log: str, seed: int, reports: Connection) -> None:
    """Read on from the committed position; report what was read, commit, report the commit."""
    chance = random.Random(seed)
    reader = LogReader.open(log)
    place = register(log, "follower", reader.start, {}, now=0, named=True).position
    reports.send(("begin", place.row, place.row))
    while True:
        end = reader.limit(place, chance.randint(1, 200))
        if end == place:
            continue
        assert numbers_in(reader.read(place, end)) == list(range(place.row, end.row))
        reports.send(("read", place.row, end.row))
        commit(log, "follower", end, now=1)
        reports.send(("commit", place.row, end.row))
        place = end


def committed(log: str) -> Position:
    """How far `follow` has come."""
    reader = LogReader.open(log)
    return register(log, "follower", reader.start, {}, now=0, named=True).position
