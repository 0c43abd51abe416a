"""Converts readings of any shape to columns of the declared types, and those to rows of the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from nilometer.kernels.read_times import SECONDS, form_of
from nilometer.log.layout import TIMESTAMP
from nilometer.model.time_forms import TimeForm
from nilometer.sensors.declaration import Declaration
from nilometer.sensors.manager.fit_values import Refusals, fit_array, fit_values

NO_TIME: Final = np.iinfo(np.int64).min
"""Represents a missing time."""


@dataclass(frozen=True)
class Columns:
    """Typed columns of some readings, NULL where a value was refused, and their times."""

    arrays: list[pa.Array]
    times: NDArray[np.int64] | None
    """From the time column; None: no time column is declared."""
    refused: Refusals


class RowBuilder:
    """Knows the columns of a declaration."""

    def __init__(self, declaration: Declaration, default: TimeForm = SECONDS) -> None:
        """`default` says what numbers count in columns that do not say it themselves."""
        self._fields = list(declaration.readings)
        self._forms = [form_of(one) or default for one in self._fields]
        self._names = [one.name for one in self._fields]
        self._lower = {name.lower(): at for at, name in enumerate(self._names)}
        self._stored = declaration.layout.stored
        self._is_table = declaration.is_sensor_table
        self._time = None if declaration.time is None else self._names.index(declaration.time)
        self._end = None if declaration.end is None else self._names.index(declaration.end)

    def from_values(self, values: Sequence[Any]) -> Columns:
        """Columns of readings: mappings, sequences, or single values."""
        refused: Refusals = {}
        cells = []
        for at, value in enumerate(values):
            row, reason = self._spread(value)
            cells.append(row)
            if reason is not None:
                refused[at] = reason
        arrays = []
        columns = zip(*cells, strict=True)
        for field, form, column in zip(self._fields, self._forms, columns, strict=True):
            array, misfits = fit_values(column, field.type, form)
            arrays.append(array)
            self._note(field.name, misfits, refused)
        return self._columns(arrays, refused)

    def from_batch(self, batch: pa.RecordBatch) -> Columns:
        """Columns of a record batch; missing ones are NULL, others are ignored."""
        refused: Refusals = {}
        places = {name.lower(): at for at, name in enumerate(batch.schema.names)}
        arrays = []
        for field, form in zip(self._fields, self._forms, strict=True):
            at = places.get(field.name.lower())
            column = pa.nulls(len(batch), field.type) if at is None else batch.column(at)
            array, misfits = fit_array(column, field.type, form)
            arrays.append(array)
            self._note(field.name, misfits, refused)
        return self._columns(arrays, refused)

    def _columns(self, arrays: list[pa.Array], refused: Refusals) -> Columns:
        """The columns, without rows that end before they begin."""
        times = self._times(arrays)
        if self._end is not None and times is not None:
            ends = self._instants(arrays[self._end])
            for at in np.flatnonzero((ends < times) & (times != NO_TIME)).tolist():
                without = ends[at] == NO_TIME
                refused.setdefault(at, "has no end" if without else "ends before it begins")
        return Columns(arrays, times, refused)

    def stored(
        self,
        columns: Columns,
        times: NDArray[np.int64],
        versions: NDArray[np.int32],
        taken: NDArray[np.bool_],
    ) -> pa.RecordBatch:
        """Rows of the log; a version for each row; the versions of a stream are not stored."""
        at_time = pa.array(times, pa.int64()).cast(TIMESTAMP)
        arrays = list(columns.arrays)
        if self._is_table:
            if self._time is not None:
                del arrays[self._time]
            arrays = [pa.array(versions, pa.int32()), at_time, *arrays]
        elif self._time is not None:
            arrays[self._time] = at_time
        else:
            arrays.append(at_time)
        rows = pa.RecordBatch.from_arrays(arrays, schema=self._stored)
        return rows if taken.all() else rows.filter(pa.array(taken))

    def _spread(self, value: Any) -> tuple[Sequence[Any], str | None]:
        """A reading's values in the order of the columns, or why they cannot be used."""
        width = len(self._names)
        if isinstance(value, Mapping):
            cells = [value.get(name) for name in self._names]
            if any(one is None for one in cells):
                return self._spread_loosely(value)
            return cells, None
        if isinstance(value, list | tuple):
            if len(value) != width:
                return (None,) * width, f"{len(value)} values for {width} columns"
            return value, None
        if width != 1:
            return (None,) * width, f"a single value for {width} columns"
        return (value,), None

    def _spread_loosely(self, value: Mapping[Any, Any]) -> tuple[Sequence[Any], str | None]:
        """Match names in any case; missing columns are NULL."""
        cells: list[Any] = [None] * len(self._names)
        is_known = False
        for name, one in value.items():
            at = self._lower.get(str(name).lower())
            # A name in the declared case takes precedence over others.
            if at is not None and (name == self._names[at] or self._names[at] not in value):
                cells[at], is_known = one, True
        return cells, None if is_known else "has none of the columns"

    def _times(self, arrays: list[pa.Array]) -> NDArray[np.int64] | None:
        if self._time is None:
            return None
        return self._instants(arrays[self._time])

    @staticmethod
    def _instants(column: pa.Array) -> NDArray[np.int64]:
        filled = pc.fill_null(column.cast(pa.int64()), NO_TIME)
        instants: NDArray[np.int64] = filled.to_numpy(zero_copy_only=False)
        return instants

    @staticmethod
    def _note(column: str, misfits: Refusals, refused: Refusals) -> None:
        for at, reason in misfits.items():
            refused.setdefault(at, f"{column}: {reason}")
