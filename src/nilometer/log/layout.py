"""What lies in a log, and what its rows look like to those who read it."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

SENSOR: Final = "_sensor"
TIME: Final = "_time"
DIFF: Final = "_diff"
TIMESTAMP: Final = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class SensorLayout:
    """How rows of a sensor table are put together from what is stored once per sensor.

    Stored with every reading are SENSOR (int32, the version of the sensor's static values), TIME
    and the fields of the reading but its time; the static values are stored once per version.
    """

    static: pa.Schema
    """The static columns, in the order in which they were declared."""
    place: int
    """Before which of them the stream column stands."""
    column: str
    """The name of the stream column, a struct."""
    fields: pa.Schema
    """Its fields, in the order in which they were declared."""
    time: str | None
    """The field that holds the time, if one does: its values are stored as TIME."""


@dataclass(frozen=True)
class LogLayout:
    """The columns of a log."""

    stored: pa.Schema
    """The columns as they are stored."""
    time: str | None
    """The stored column (timestamp[us, UTC]) that holds the time; None: rows have no time."""
    sensors: SensorLayout | None = None
    changes: bool = False
    """Whether the rows are changes of an answer, with a column DIFF."""

    @property
    def shown(self) -> pa.Schema:
        """The columns as readers see them."""
        if self.sensors is None:
            return self.stored
        fields = list(self.sensors.static)
        reading = pa.struct(list(self.sensors.fields))
        fields.insert(self.sensors.place, pa.field(self.sensors.column, reading))
        return pa.schema([*fields, pa.field(TIME, TIMESTAMP)])

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "stored": _text(self.stored),
            "time": self.time,
            "changes": self.changes,
        }
        if (own := self.sensors) is not None:
            found["sensors"] = {
                "static": _text(own.static),
                "place": own.place,
                "column": own.column,
                "fields": _text(own.fields),
                "time": own.time,
            }
        return found

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> LogLayout:
        own = found.get("sensors")
        sensors = own and SensorLayout(
            _schema(own["static"]), own["place"], own["column"], _schema(own["fields"]), own["time"]
        )
        return cls(_schema(found["stored"]), found["time"], sensors, found["changes"])


def _text(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize()).decode()


def _schema(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
