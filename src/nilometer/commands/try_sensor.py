"""`nilometer sensors test`: one sensor read by itself, into a log that is thrown away."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Final
from uuid import uuid4

from rich.console import Console

from nilometer.database.home import CATALOG_FILE
from nilometer.database.units import Units
from nilometer.errors import InputError
from nilometer.log.clock import now_micros
from nilometer.log.dead_letters import dead_letter_log, read_dead_letters
from nilometer.log.reader import LogReader
from nilometer.log.registrations import register
from nilometer.model.names import count, nearest
from nilometer.model.secrets import shown_address
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.declaration import Declaration, Sensor
from nilometer.sensors.manager.manager import StreamManager
from nilometer.sensors.manager.settings import ManagerSettings
from nilometer.sensors.manager.status import SensorStatus

_LOOK_EVERY: Final = 0.1
_READER: Final = "test"


def try_sensor(
    folder: Path,
    catalog: str | None,
    name: str,
    sensor: str | None,
    seconds: float,
    most: int,
    console: Console,
) -> bool:
    """Show what a sensor sends; whether a reading came that can be stored."""
    with SensorCatalog.open(catalog or folder / CATALOG_FILE) as stored:
        declared = stored.require_declaration(name)
        chosen = _choose(declared, stored, sensor)
    with tempfile.TemporaryDirectory(prefix="nilometer-test-") as place:
        return _try(declared, chosen, Path(place), seconds, most, console)


def _choose(declared: Declaration, catalog: SensorCatalog, sensor: str | None) -> Sensor:
    if not declared.is_sensor_table:
        return declared.only_sensor
    found = {one.name: one for one in catalog.sensors(declared.name)}
    if sensor is None:
        if len(found) == 1:
            return next(iter(found.values()))
        known = ", ".join(list(found)[:5]) + ("…" if len(found) > 5 else "")
        raise InputError(
            f"{declared.name} has {count(len(found), 'sensor')}",
            hint=f"name one of them: {known}" if found else "INSERT one first",
        )
    if sensor not in found:
        raise InputError(
            f"{declared.name} has no sensor {sensor}",
            hint=nearest(sensor, found) or f"nilometer sensors list {declared.name} shows them",
        )
    return found[sensor]


def _try(
    declared: Declaration,
    sensor: Sensor,
    place: Path,
    seconds: float,
    most: int,
    console: Console,
) -> bool:
    manager = StreamManager(
        lambda name: str(place / name),
        lambda _: [sensor],
        lambda *_: {sensor.number},
        find_unit=Units().find,
        settings=ManagerSettings(identity=f"nilometer-test-{uuid4().hex[:8]}"),
    )
    manager.start()
    try:
        manager.watch(declared)
        log = LogReader.open(place / declared.name)
        register(place / declared.name, _READER, log.start, {}, now=now_micros(), named=True)
        console.print(f"reading {shown_address(sensor.address) or declared.name} for {seconds:g} s")
        shown = _show_readings(log, seconds, most, console)
        statuses = manager.status(declared.name)
    finally:
        manager.stop()
    _show_letters(str(place / dead_letter_log(declared.name)), most, console)
    return _sum_up(statuses[0] if statuses else None, shown, console)


def _show_readings(log: LogReader, seconds: float, most: int, console: Console) -> int:
    """Show the first readings as they come; how many came."""
    until, at, shown = time.monotonic() + seconds, log.start, 0
    while time.monotonic() < until:
        for frame in log.read(at, log.end):
            at = frame.end
            for row in frame.rows.to_pylist():
                row.pop("_sensor", None)
                if shown < most:
                    console.print(json.dumps(row, default=str, ensure_ascii=False), soft_wrap=True)
                shown += 1
        time.sleep(_LOOK_EVERY)
    return shown


def _show_letters(location: str, most: int, console: Console) -> None:
    """Show what could not be stored, and why."""
    letters = read_dead_letters(location).to_pylist()
    for row in letters[:most]:
        console.print(f"refused: {row['reason']}: {row['payload'][:200]}", soft_wrap=True)
    if letters:
        console.print(f"{count(len(letters), 'reading')} refused")


def _sum_up(status: SensorStatus | None, readings: int, console: Console) -> bool:
    if status is not None and status.errors:
        errors = count(status.errors, "error")
        console.print(f"{errors}, the last: {status.last_error}", soft_wrap=True)
    console.print(f"{count(readings, 'reading')} came")
    return readings > 0
