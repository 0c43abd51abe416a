"""The sensors of a database that a running server has open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from nilometer.client import Client
from nilometer.commands.show_sensors import SeenSensor, stream_line
from nilometer.model.time import read_instant
from nilometer.sql.expressions.scalars import quote_name


@dataclass(frozen=True)
class ServerSensors:
    """What a server reports about its sensors, of one stream or of all."""

    client: Client
    url: str
    name: str | None = None

    def close(self) -> None:
        self.client.close()

    def sensors(self) -> list[SeenSensor]:
        chosen = "" if self.name is None else f" FROM {quote_name(self.name)}"
        rows = self.client.execute(f"SHOW SENSORS{chosen}")
        return [_sensor(number, one) for number, one in enumerate(rows)]

    def summary(self) -> str:
        lines = [f"read by the server at {self.url}"]
        for one in self.client.streams():
            wanted = self.name is None or one["name"].lower() == self.name.lower()
            if wanted and one["sensors"]:
                lines.append(stream_line({**one, "watermark": _micros(one["watermark"])}))
        return "\n".join(lines)


def _sensor(number: int, one: Mapping[str, Any]) -> SeenSensor:
    name = "" if one["sensor"] == one["stream"] else str(one["sensor"])
    return SeenSensor(one["stream"], number, name, one["address"] or "", _doing(one))


def _doing(one: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The state of a sensor that some reader needs."""
    if one["readings"] is None:
        return None
    last = one["last_time"]
    return {
        **one,
        "last_value": one["last_reading"],
        "last_time": None if last is None else read_instant(last.astimezone(UTC)),
    }


def _micros(instant: str | None) -> int | None:
    return None if instant is None else read_instant(datetime.fromisoformat(instant))
