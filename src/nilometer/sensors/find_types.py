"""Stream types by name: those that come with Nilometer, and those of installed packages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nilometer.model.installed import KnownClasses
from nilometer.sensors.stream_type import ENTRY_POINTS
from nilometer.sensors.types.options import read_options

_BUILT_IN: Final = {
    "file": "nilometer.sensors.types.file:FileStream",
    "http": "nilometer.sensors.types.http:HttpStream",
    "kafka": "nilometer.sensors.types.kafka:KafkaStream",
    "mqtt": "nilometer.sensors.types.mqtt:MqttStream",
    "python": "nilometer.sensors.types.python:PythonStream",
    "synthetic": "nilometer.sensors.types.synthetic:SyntheticStream",
    "tcp": "nilometer.sensors.types.tcp:TcpStream",
}


def known_types() -> KnownClasses:
    """All stream types."""
    return KnownClasses(
        "stream type",
        ENTRY_POINTS,
        _BUILT_IN,
        {"kafka": ("kafka", "confluent_kafka")},
        ("init_stream", "read_stream", "close_stream", "can_wait"),
        "init_stream, read_stream and close_stream",
    )


def stream_class(name: str) -> type:
    """The class of a stream type."""
    return known_types().find(name)


def check_options(name: str, options: Mapping[str, str]) -> dict[str, Any]:
    """The values of a type's options; a type that declares none accepts any."""
    declared = getattr(stream_class(name), "options", None)
    if declared is None:
        return dict(options)
    return read_options(name, declared, options)


def check_reachable(name: str, address: str) -> None:
    """Refuse addresses that a type may not contact; most types may contact any."""
    check = getattr(stream_class(name), "check_address", None)
    if check is not None:
        check(address)
