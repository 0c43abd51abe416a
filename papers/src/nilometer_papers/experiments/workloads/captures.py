"""Real captures as streams, where available: rooms of a lab, and networks."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from nilometer_papers.algorithms.stream_tuple import StreamTuple
from nilometer_papers.experiments.experiment import SkippedError
from nilometer_papers.experiments.workloads.exponential import SECOND

VARIABLE: Final = "NILOMETER_DATA"
"""The environment variable with the folder of the captures."""

ROOMS: Final = ("Dining Room", "Living Room", "Conference Room")

_HOSTS: Final = "192.168.202"
_SERVERS: Final = ("192.168.27", "192.168.21", "192.168.25")
_PLACE: Final = Path("../shared/data")
_LAB: Final = ("mavlab_2003_march.csv", "mavlab_2003_april.csv")
_PACKETS: Final = "maccdc2012_00016.csv"

Event = tuple[int, str, int]
"""Time, key, stream."""


def captures_folder() -> Path:
    """The folder of the captures; without one, the experiment is skipped."""
    value = os.environ.get(VARIABLE)
    folder = Path(value) if value else _PLACE
    missing = [name for name in (*_LAB, _PACKETS) if not (folder / name).is_file()]
    if not missing:
        return folder
    if value:
        raise SkippedError(f"{VARIABLE} names a folder without {', '.join(missing)}")
    raise SkippedError(f"the captures are not here (name their folder in {VARIABLE})")


def room_events(folder: Path, rooms: int) -> list[StreamTuple]:
    """Sensors that went on, one stream per room; the key is the day, so nights separate them."""
    event = partial(_sensor_event, rooms=ROOMS[:rooms])
    return _number(sorted(one for name in _LAB for one in _events(folder / name, event)))


def packets(folder: Path) -> list[StreamTuple]:
    """Packets from a network's hosts to servers of others, and back; keyed by host and server."""
    return _number(sorted(_events(folder / _PACKETS, _packet_event)))


def _sensor_event(row: Mapping[str, str], rooms: Sequence[str]) -> Event | None:
    if row["Value"] != "ON" or row["Location"] not in rooms:
        return None
    written = f"{row['Date']} {row['Time AM/PM']}"
    moment = datetime.strptime(written, "%m/%d/%Y %I:%M:%S %p").replace(tzinfo=UTC)
    return int(moment.timestamp()) * SECOND, row["Date"], rooms.index(row["Location"])


def _packet_event(row: Mapping[str, str]) -> Event | None:
    source, target, time = row["Source"], row["Destination"], round(float(row["Time"]) * SECOND)
    if _network(source) == _HOSTS and _network(target) in _SERVERS:
        return time, f"{source} {target}", 0
    if _network(source) in _SERVERS and _network(target) == _HOSTS:
        return time, f"{target} {source}", 1
    return None


def _network(address: str) -> str:
    return address.rpartition(".")[0]


def _number(events: Sequence[Event]) -> list[StreamTuple]:
    """The events as tuples, numbered stream by stream."""
    come: dict[int, int] = {}
    tuples = []
    for time, key, stream in events:
        tuples.append(StreamTuple(time, key, stream, come.get(stream, 0)))
        come[stream] = come.get(stream, 0) + 1
    return tuples


def _events(path: Path, event: Callable[[Mapping[str, str]], Event | None]) -> list[Event]:
    """The events in those rows that have one; a damaged file counts as missing."""
    try:
        with path.open(newline="", encoding="utf-8", errors="replace") as file:
            events = [made for row in csv.DictReader(file, restval="") if (made := event(row))]
    except (csv.Error, LookupError, ValueError, ArithmeticError) as error:
        raise SkippedError(f"{path.name} is damaged ({type(error).__name__}: {error})") from None
    if not events:
        raise SkippedError(f"{path.name} has no events")
    return events
