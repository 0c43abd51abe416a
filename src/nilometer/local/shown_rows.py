"""Rows of a log as its readers see them: with the static values of their sensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from nilometer.kernels.arrays import Bools
from nilometer.log.layout import SENSOR, LogLayout
from nilometer.log.static_rows import expand, read_static_rows

if TYPE_CHECKING:
    from nilometer.local.sensor_filter import SensorFilter


class ShownRows:
    """Turns stored rows into shown ones; of a sensor table, only those of the selected sensors.

    Sensors may be added while a query runs: the static values are read again when a row has a
    version that is not known yet.
    """

    def __init__(self, location: str, layout: LogLayout, where: str | None = None) -> None:
        self._location = location
        self._layout = layout
        self._filter = None if where is None else _read_filter(where, layout)
        self._static: pa.Table | None = None
        self._known = np.zeros(0, dtype=np.bool_)
        self._chosen = np.zeros(0, dtype=np.bool_)

    def show(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The shown columns of stored rows."""
        if self._layout.sensors is None:
            return rows
        versions = np.asarray(rows.column(SENSOR))
        if self._static is None or not self._all_known(versions):
            self._read_static_rows()
        if self._filter is not None:
            keep = self._chosen[versions]
            if not keep.all():
                rows = rows.take(pa.array(np.flatnonzero(keep)))
        return expand(self._layout, rows, self._static)

    def _all_known(self, versions: np.ndarray[tuple[int], np.dtype[np.int32]]) -> bool:
        if not len(versions):
            return True
        return int(versions.max()) < len(self._known) and bool(self._known[versions].all())

    def _read_static_rows(self) -> None:
        static = read_static_rows(self._location, self._layout.sensors)
        versions = np.asarray(static.column(SENSOR), dtype=np.int64)
        size = int(versions.max()) + 1 if len(versions) else 0
        self._static = static
        self._known = _flags(size, versions)
        if self._filter is not None:
            self._chosen = _flags(size, self._filter.versions(static))


def _read_filter(where: str, layout: LogLayout) -> SensorFilter:
    from nilometer.local.sensor_filter import read_sensor_filter  # noqa: PLC0415  loads all of SQL

    return read_sensor_filter(where, layout)


def _flags(size: int, places: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Bools:
    flags = np.zeros(size, dtype=np.bool_)
    flags[places] = True
    return flags
