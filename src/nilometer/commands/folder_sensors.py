"""The sensors of a database in a folder, seen from another process than the one that reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from nilometer.commands.show_sensors import SeenSensor, stream_line
from nilometer.database.home import STATUS_FILE
from nilometer.log.clock import now_micros
from nilometer.model.secrets import shown_address
from nilometer.sensors.catalog.catalog import SensorCatalog
from nilometer.sensors.declaration import Declaration
from nilometer.sensors.manager.status import read_status
from nilometer.upkeep.catalog_place import settle_catalog

_STALE: Final = 5_000_000


class FolderSensors:
    """The sensors of a database in a folder, from its catalog and its process's status file."""

    def __init__(self, folder: Path, catalog: str | None, name: str | None) -> None:
        self._folder = folder
        self._catalog = SensorCatalog.open(settle_catalog(folder, catalog))
        self._name = None if name is None else self._catalog.require_declaration(name).name

    def close(self) -> None:
        self._catalog.close()

    def sensors(self) -> list[SeenSensor]:
        status = self._status()
        known = {(one["stream"], one["number"]): one for one in (status or {}).get("sensors", [])}
        return [
            SeenSensor(declared.name, number, name, address, known.get((declared.name, number)))
            for declared in self._catalog.declarations()
            if self._name in (None, declared.name)
            for number, name, address in self._declared(declared)
        ]

    def summary(self) -> str:
        status = self._status()
        if status is None:
            return "no process has this database open: nothing is read"
        lines = [f"read by process {status['pid']}"]
        for one in status["streams"]:
            if self._name in (None, one["name"]) and one["sensors"]:
                lines.append(stream_line(one))
        return "\n".join(lines)

    def _declared(self, declared: Declaration) -> list[tuple[int, str, str]]:
        if not declared.is_sensor_table:
            return [(0, "", shown_address(declared.only_sensor.address))]
        return [
            (one.number, one.name, shown_address(one.address))
            for one in self._catalog.sensors(declared.name)
        ]

    def _status(self) -> dict[str, Any] | None:
        status = read_status(self._folder / STATUS_FILE)
        if status is None or now_micros() - status["time"] > _STALE:
            return None
        return status
