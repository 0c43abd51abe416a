"""The columns of a log as stored, and as readers see them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

import pyarrow as pa

SENSOR: Final = "_sensor"
TIME: Final = "_time"
DIFF: Final = "_diff"
TIMESTAMP: Final = pa.timestamp("us", tz="UTC")

Names: TypeAlias = tuple[tuple[str, str], ...]
"""Columns whose names in files differ, with those names."""
Fit: TypeAlias = Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True)
class SensorLayout:
    """How rows of a sensor table are assembled from what is stored once per sensor.

    Stored with every reading are SENSOR (int32, the version of the sensor's static values), TIME
    and the fields of the reading except its time; the static values are stored once per version.
    """

    static: pa.Schema
    """The static columns, in the order of their declaration."""
    place: int
    """The position among them before which the stream column comes."""
    column: str
    """The name of the stream column, a struct."""
    fields: pa.Schema
    """Its fields, in the order of their declaration."""
    time: str | None
    """The field that holds the time, if one does: its values are stored as TIME."""
    names: Names = ()
    """Static columns that have other names in files."""

    @property
    def versions(self) -> pa.Schema:
        """What is stored per sensor version: SENSOR and its static columns."""
        return pa.schema([pa.field(SENSOR, pa.int32()), *self.static])

    @property
    def versions_in_files(self) -> pa.Schema:
        """The same columns, under their names in files."""
        return in_files(self.versions, self.names)


@dataclass(frozen=True)
class LogLayout:
    """The columns of a log."""

    stored: pa.Schema
    """The columns as they are stored."""
    time: str | None
    """The stored column (timestamp[us, UTC]) with the time; None: rows have no time."""
    sensors: SensorLayout | None = None
    changes: bool = False
    """Whether the rows are changes of an answer, with a column DIFF."""
    names: Names = ()
    """Stored columns that have other names in segments.

    A column may be renamed, and another column may later take the old name. The name in
    segments always means the same column: a segment without it is older than the column.
    """

    @property
    def in_segments(self) -> pa.Schema:
        """The stored columns as new segments have them."""
        return in_files(self.stored, self.names)

    def may_follow(self, before: LogLayout) -> bool:
        """Whether a log of another layout can continue with this one."""
        if (self.time is None, self.changes) != (before.time is None, before.changes):
            return False
        if not _agree(self.in_segments, before.in_segments):
            return False
        own, other = self.sensors, before.sensors
        if own is None or other is None:
            return own is other and self._time_in_segments == before._time_in_segments
        return _agree(own.versions_in_files, other.versions_in_files)

    @property
    def _time_in_segments(self) -> str | None:
        return None if self.time is None else dict(self.names).get(self.time, self.time)

    @property
    def shown(self) -> pa.Schema:
        """The columns as readers see them."""
        if self.sensors is None:
            return self.stored
        fields = list(self.sensors.static)
        reading = pa.struct(list(self.sensors.fields))
        fields.insert(self.sensors.place, pa.field(self.sensors.column, reading))
        return pa.schema([*fields, pa.field(TIME, TIMESTAMP)])

    @cached_property
    def key(self) -> str:
        """A text that identifies the layout."""
        return json.dumps(self.to_json())

    def to_json(self) -> dict[str, Any]:
        content: dict[str, Any] = {
            "stored": pack_schema(self.stored),
            "time": self.time,
            "changes": self.changes,
            "names": list(self.names),
        }
        if (own := self.sensors) is not None:
            content["sensors"] = {
                "static": pack_schema(own.static),
                "place": own.place,
                "column": own.column,
                "fields": pack_schema(own.fields),
                "time": own.time,
                "names": list(own.names),
            }
        return content

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> LogLayout:
        own = content.get("sensors")
        sensors = own and SensorLayout(
            unpack_schema(own["static"]),
            own["place"],
            own["column"],
            unpack_schema(own["fields"]),
            own["time"],
            _names(own),
        )
        stored = unpack_schema(content["stored"])
        return cls(stored, content["time"], sensors, content["changes"], _names(content))


def in_files(columns: pa.Schema, names: Names) -> pa.Schema:
    """Columns under their names in files."""
    by_name = dict(names)
    return pa.schema([one.with_name(by_name.get(one.name, one.name)) for one in columns])


def fit_columns(stored: pa.Schema, columns: pa.Schema, names: Names) -> Fit | None:
    """A function that turns rows of a file into these columns; None: they already match.

    A column that the file lacks is NULL, and one that is not wanted is left out.
    """
    expected = in_files(columns, names)
    if stored.equals(expected):
        return None
    places = [stored.get_field_index(name) for name in expected.names]

    def fit(rows: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [
            pa.nulls(len(rows), one.type) if place < 0 else rows.column(place)
            for one, place in zip(columns, places, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=columns)

    return fit


def _agree(columns: pa.Schema, others: pa.Schema) -> bool:
    """Whether there are common columns, and all of them have the same types."""
    shared = set(columns.names) & set(others.names)
    return bool(shared) and all(columns.field(n).type == others.field(n).type for n in shared)


def _names(content: dict[str, Any]) -> Names:
    return tuple((column, name) for column, name in content.get("names", ()))


def pack_schema(schema: pa.Schema) -> str:
    """A schema as text, in Arrow's own format, to preserve types."""
    return base64.b64encode(schema.serialize()).decode()


def unpack_schema(text: str) -> pa.Schema:
    """The schema in such a text."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
