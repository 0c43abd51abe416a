"""The static values of sensors, stored beside the log before the first reading that needs them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from nilometer.log.layout import SENSOR
from nilometer.log.static_rows import add_static_rows, read_static_rows
from nilometer.sensors.declaration import Declaration, Sensor


class StaticVersions:
    """Tracks which versions the log has."""

    def __init__(self, location: str, declaration: Declaration) -> None:
        self._location = location
        self._static = declaration.static
        self._known: set[int] = set()
        if self._static is not None:
            self._known.update(read_static_rows(location).column(SENSOR).to_pylist())
        self._wanted: dict[int, Sensor] = {}

    def want(self, sensors: Iterable[Sensor]) -> None:
        """Expect readings of these sensors; safe while `store` runs in another thread."""
        if self._static is not None:
            new = {one.version: one for one in sensors if one.version not in self._known}
            self._wanted = {**self._wanted, **new}

    def store(self) -> None:
        """Store all versions that are wanted and not stored yet, at once."""
        missing = [one for one in self._wanted.values() if one.version not in self._known]
        if self._static is None or not missing:
            return
        versions = pa.array([one.version for one in missing], pa.int32())
        columns = [
            pa.array([one.values.get(field.name) for one in missing], field.type)
            for field in self._static
        ]
        schema = pa.schema([pa.field(SENSOR, pa.int32()), *self._static])
        add_static_rows(self._location, pa.table([versions, *columns], schema=schema))
        self._known.update(one.version for one in missing)
