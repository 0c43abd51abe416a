"""The process of all cameras."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Final

from nilometer.demo.sensor_process import SensorProcess, sensors_at_work

_MODULE: Final = "nilometer.demo.cameras.at_work"


def cameras_at_work(
    rate: int, seconds: int, by_http: str, broker: int | None, by_mqtt: str
) -> AbstractContextManager[SensorProcess]:
    """Start cameras that are ready to begin."""
    arguments = [str(rate), str(seconds), by_http]
    arguments += [] if broker is None else [str(broker), by_mqtt]
    return sensors_at_work(_MODULE, arguments)
