"""The declarations of the demo's cameras: two over HTTP, two over MQTT if there is a broker."""

from __future__ import annotations

from typing import Final

from nilometer.demo.cameras.at_work import TOPIC
from nilometer.demo.cameras.world import LONGEST_DELAY

HALL: Final = "Hall"
YARD: Final = "Yard"


def declarations(port: int, broker: int | None) -> list[str]:
    """The statements that declare the cameras."""
    by_http = "http WITH (interval = '200ms')"
    by_mqtt = by_http if broker is None else "mqtt WITH (qos = 1)"
    return [
        _table(HALL, by_http),
        _insert(HALL, [(number, f"http://127.0.0.1:{port}/{number}") for number in (1, 2)]),
        _table(YARD, by_mqtt),
        _insert(YARD, [(number, _yard_address(number, port, broker)) for number in (3, 4)]),
    ]


def _yard_address(number: int, port: int, broker: int | None) -> str:
    if broker is None:
        return f"http://127.0.0.1:{port}/{number}"
    return f"mqtt://127.0.0.1:{broker}/{TOPIC.format(number)}"


def _table(name: str, way: str) -> str:
    return (
        f"CREATE SENSOR TABLE {name} (camera INT, seen STREAM(obj_id BIGINT, ts TIMESTAMP, "
        f"TIME ts,\n    LATENESS {LONGEST_DELAY / 1_000_000} SECONDS) FROM {way})"
    )


def _insert(name: str, rows: list[tuple[int, str]]) -> str:
    return f"INSERT INTO {name} VALUES " + ", ".join(f"({n}, '{address}')" for n, address in rows)
