"""Real captures as streams, where they are: rooms of a lab, and networks."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from nilometer.algorithms.stream_tuple import StreamTuple
from nilometer.experiments.experiment import SkippedError
from nilometer.experiments.workloads.exponential import SECOND

VARIABLE: Final = "NILOMETER_DATA"
"""The environment variable that names the folder of the captures."""

ROOMS: Final = ("Dining Room", "Living Room", "Conference Room")

_HOSTS: Final = "192.168.202"
_SERVERS: Final = ("192.168.27", "192.168.21", "192.168.25")
_PLACES: Final = (Path("../shared/data"),)
_LAB: Final = ("mavlab_2003_march.csv", "mavlab_2003_april.csv")
_PACKETS: Final = "maccdc2012_00016.csv"

Event = tuple[int, str, int]
"""Time, key, stream."""


def captures_folder() -> Path:
    """Where the captures are; where they are not, the experiment is skipped."""
    given = os.environ.get(VARIABLE)
    for folder in (Path(given),) if given else _PLACES:
        if all((folder / name).is_file() for name in (*_LAB, _PACKETS)):
            return folder
    raise SkippedError(f"the captures are not here (name their folder in {VARIABLE})")


def room_events(folder: Path, rooms: int) -> list[StreamTuple]:
    """Sensors that went on, a stream per room; the key is the day, so nights part them."""
    return _number(sorted(e for name in _LAB for e in _lab_events(folder / name, ROOMS[:rooms])))


def packets(folder: Path) -> list[StreamTuple]:
    """Packets from hosts of a network to servers of others, and back; the key is who talks."""
    return _number(sorted(_packet_events(folder / _PACKETS)))


def _lab_events(path: Path, rooms: Sequence[str]) -> Iterator[Event]:
    for row in _read(path):
        if row["Value"] == "ON" and row["Location"] in rooms:
            written = f"{row['Date']} {row['Time AM/PM']}"
            moment = datetime.strptime(written, "%m/%d/%Y %I:%M:%S %p").replace(tzinfo=UTC)
            yield int(moment.timestamp()) * SECOND, row["Date"], rooms.index(row["Location"])


def _packet_events(path: Path) -> Iterator[Event]:
    for row in _read(path):
        source, target, time = row["Source"], row["Destination"], round(float(row["Time"]) * SECOND)
        if _network(source) == _HOSTS and _network(target) in _SERVERS:
            yield time, f"{source} {target}", 0
        elif _network(source) in _SERVERS and _network(target) == _HOSTS:
            yield time, f"{target} {source}", 1


def _network(address: str) -> str:
    return address.rpartition(".")[0]


def _number(events: Sequence[Event]) -> list[StreamTuple]:
    """The events as tuples, counted stream by stream."""
    come: dict[int, int] = {}
    tuples = []
    for time, key, stream in events:
        tuples.append(StreamTuple(time, key, stream, come.get(stream, 0)))
        come[stream] = come.get(stream, 0) + 1
    return tuples


def _read(path: Path) -> Iterator[dict[str, str]]:
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        yield from csv.DictReader(file)
