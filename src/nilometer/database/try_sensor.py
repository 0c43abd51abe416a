"""Tries one sensor: reads it into a log that is thrown away, to see what it sends."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from nilometer.errors import InputError
from nilometer.log.clock import now_micros
from nilometer.log.dead_letters import dead_letter_log, read_dead_letters
from nilometer.log.reader import LogReader
from nilometer.log.registrations import register
from nilometer.model.names import count, nearest
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.catalog.execute import execute
from nilometer.sensors.catalog.outcome import placed
from nilometer.sensors.declaration import Declaration, Sensor
from nilometer.sensors.manager.manager import StreamManager
from nilometer.sensors.manager.settings import ManagerSettings
from nilometer.sensors.manager.status import SensorStatus
from nilometer.sql.ddl.nodes import CreateSensorTable, CreateStream, Insert
from nilometer.sql.statements import AnyStatement
from nilometer.upkeep.places import CATALOG_FILE

Row = dict[str, Any]
FindUnit = Callable[[str], Callable[..., Any]]
Trial = CreateStream | CreateSensorTable | Insert
_LOOK_EVERY: Final = 0.1
_READER: Final = "test"


@dataclass(frozen=True)
class TrialResult:
    """What a sensor sent within a short time."""

    stream: str
    sensor: str
    readings: tuple[Row, ...]
    """The first readings that can be stored."""
    came: int
    """How many of these arrived."""
    letters: tuple[Row, ...]
    """The first dead letters: `reason` and `payload`."""
    refused: int
    """How many dead letters there were."""
    errors: int
    last_error: str | None


def choose_sensor(
    declared: Declaration, sensors: Sequence[Sensor], sensor: str | None = None
) -> Sensor:
    """The sensor of this name or, without a name, the only one."""
    if not declared.is_sensor_table:
        return declared.only_sensor
    by_name = {one.name: one for one in sensors}
    if sensor is None:
        if len(by_name) == 1:
            return next(iter(by_name.values()))
        known = ", ".join(list(by_name)[:5]) + ("…" if len(by_name) > 5 else "")
        raise InputError(
            f"{declared.name} has {count(len(by_name), 'sensor')}",
            hint=f"name one of them: {known}" if by_name else "INSERT one first",
        )
    if sensor not in by_name:
        raise InputError(
            f"{declared.name} has no sensor {sensor}",
            hint=nearest(sensor, by_name) or f"SHOW SENSORS FROM {declared.name} lists them",
        )
    return by_name[sensor]


def required_trial(statements: Sequence[AnyStatement]) -> list[Trial]:
    """The statements that declare what to read; raises if there are others, or none."""
    trials = [one for one in statements if isinstance(one, Trial)]
    if not trials or len(trials) < len(statements):
        raise InputError(
            "only a new stream, or new sensors, can be tried",
            hint="give CREATE STREAM …, CREATE SENSOR TABLE … with INSERT INTO …, or INSERT INTO …",
        )
    return trials


@contextmanager
def declared_aside(
    statements: Sequence[Trial], known: Callable[[str], Declaration | None], find_unit: FindUnit
) -> Iterator[tuple[Declaration, Sensor]]:
    """What statements would declare, and its first new sensor; nothing is stored.

    They run on a catalog of their own, so they are refused as they would be when run for real.
    `known` finds what is declared already, into which rows can be inserted.
    """
    with (
        tempfile.TemporaryDirectory(prefix="nilometer-test-") as place,
        SensorCatalog.open(Path(place) / CATALOG_FILE) as catalog,
    ):
        name = ""
        for one in statements:
            name = one.table if isinstance(one, Insert) else one.name
            if isinstance(one, Insert):
                declared = known(name)
                if catalog.declaration(name) is None and declared is not None:
                    catalog.create(declared)
            elif (unit := one.stream.options.get("unit")) is not None:
                with placed(one.place):
                    find_unit(unit.strip())
            execute(catalog, one)
        new = catalog.require_declaration(name)
        sensors = catalog.sensors(new.name) if new.is_sensor_table else []
        yield new, choose_sensor(new, sensors[:1])


def read_aside(
    declared: Declaration,
    sensor: Sensor,
    find_unit: FindUnit,
    *,
    seconds: float,
    max_rows: int,
    enough: int | None = None,
    take: Callable[[Row], None] = lambda _: None,
) -> TrialResult:
    """Read a sensor for a while, or until `enough` readings arrived; `take` gets the first ones."""
    with tempfile.TemporaryDirectory(prefix="nilometer-test-") as folder:
        place = Path(folder)
        manager = StreamManager(
            lambda name: str(place / name),
            lambda _: [sensor],
            lambda *_: {sensor.number},
            find_unit=find_unit,
            settings=ManagerSettings(identity=f"nilometer-test-{uuid4().hex[:8]}"),
        )
        manager.start()
        try:
            manager.watch(declared)
            log = LogReader.open(place / declared.name)
            register(place / declared.name, _READER, log.start, {}, now=now_micros(), named=True)
            rows, came = _read(log, seconds, max_rows, enough, take)
            statuses = manager.status(declared.name)
        finally:
            manager.stop()
        letters = read_dead_letters(str(place / dead_letter_log(declared.name))).to_pylist()
    status: SensorStatus | None = statuses[0] if statuses else None
    return TrialResult(
        declared.name,
        sensor.name,
        tuple(rows),
        came,
        tuple(letters[:max_rows]),
        len(letters),
        0 if status is None else status.errors,
        None if status is None else status.last_error,
    )


def _read(
    log: LogReader, seconds: float, max_rows: int, enough: int | None, take: Callable[[Row], None]
) -> tuple[list[Row], int]:
    """The first readings, and how many arrived."""
    until, at, came = time.monotonic() + seconds, log.start, 0
    rows: list[Row] = []
    while time.monotonic() < until and (enough is None or came < enough):
        for frame in log.read(at, log.end):
            at = frame.end
            for row in frame.rows.to_pylist():
                row.pop("_sensor", None)
                came += 1
                if len(rows) < max_rows:
                    rows.append(row)
                    take(row)
        time.sleep(_LOOK_EVERY)
    return rows, came
