"""What the server's log reports about sensors and their streams."""

from __future__ import annotations

import logging
from typing import Any, Final

from nilometer.model.events import event
from nilometer.model.names import count
from nilometer.model.time import format_duration
from nilometer.sensors.manager.sensor_record import SensorRecord

TELL_EVERY: Final = 60.0
"""Events that could accompany every reading are reported once in this many seconds."""
_SECOND: Final = 1_000_000
_LOG: Final = logging.getLogger("nilometer.sensors")


def tell_lost(sensor: SensorRecord) -> bool:
    """Report that a sensor cannot be reached, or no longer; True: it was reported."""
    extra = event("sensor_lost", sensor.stream, **_details(sensor), reason=sensor.last_error)
    words = "sensor %s of %s is lost and will be retried: %s"
    _LOG.warning(words, sensor.name, sensor.stream, sensor.last_error, extra=extra)
    return True


def tell_regained(sensor: SensorRecord) -> bool:
    """Report that a lost sensor is back; False: it is no longer lost."""
    extra = event("sensor_regained", sensor.stream, **_details(sensor))
    _LOG.info("sensor %s of %s is back", sensor.name, sensor.stream, extra=extra)
    return False


def tell_closed(sensor: SensorRecord) -> None:
    """Report that a sensor was closed for good."""
    extra = event("sensor_closed", sensor.stream, **_details(sensor), reason=sensor.last_error)
    words = "sensor %s of %s was closed: %s"
    _LOG.error(words, sensor.name, sensor.stream, sensor.last_error, extra=extra)


def tell_silent(sensor: SensorRecord, now: int) -> None:
    """Report that a sensor has been quiet for longer than expected."""
    silence = now - (sensor.silent_since or now)
    extra = event("sensor_silent", sensor.stream, **_details(sensor), seconds=silence / 1e6)
    what = "sent nothing" if sensor.gaps.heard is None else "been silent"
    expected = "" if sensor.expected is None else f", expected every {_span(sensor.expected)}"
    words = "sensor %s of %s has %s for %s%s"
    _LOG.warning(words, sensor.name, sensor.stream, what, _span(silence), expected, extra=extra)


def tell_speaks(sensor: SensorRecord) -> None:
    """Report that a silent sensor sends again."""
    extra = event("sensor_speaks", sensor.stream, **_details(sensor))
    _LOG.info("sensor %s of %s is sending again", sensor.name, sensor.stream, extra=extra)


def tell_more_silent(stream: str, more: int) -> None:
    """Report how many more sensors fell silent, without their names."""
    extra = event("sensor_silent", stream, stream=stream, count=more)
    _LOG.warning("and %d other sensors of %s are silent", more, stream, extra=extra)


def tell_backlog(stream: str, rows: int) -> None:
    """Report that readings kept by the other side were stored with their time of arrival."""
    extra = event("backlog", stream, stream=stream, count=rows)
    words = (
        "%s received about %s that had been kept while nobody listened, and that have the time of "
        "their arrival: declare a column with the time at which they were taken"
    )
    _LOG.warning(words, stream, count(rows, "reading"), extra=extra)


def tell_dead_letters(stream: str, letters: int, reason: str) -> None:
    """Report that readings could not be stored."""
    extra = event("dead_letters", stream=stream, count=letters, reason=reason)
    words = "%s got %s that could not be stored, the last because %s"
    _LOG.warning(words, stream, count(letters, "reading"), reason, extra=extra)


def tell_trouble(stream: str, reason: str) -> None:
    """Report that readings cannot be appended at present."""
    extra = event("append_failed", stream, stream=stream, reason=reason)
    _LOG.error("the log of %s cannot be written: %s", stream, reason, extra=extra)


def tell_dropped(stream: str, rows: int) -> None:
    """Report that readings were dropped for lack of room."""
    extra = event("readings_dropped", stream, stream=stream, count=rows)
    _LOG.warning(
        "%s of %s were dropped because the log had no room",
        count(rows, "reading"),
        stream,
        extra=extra,
    )


def tell_appending(stream: str) -> None:
    """Report that readings can be appended again."""
    extra = event("append_works", stream, stream=stream)
    _LOG.info("the log of %s can be written again", stream, extra=extra)


def _span(micros: int) -> str:
    """A duration as text, to the second where it is long."""
    return format_duration(micros if micros < _SECOND else micros // _SECOND * _SECOND)


def _details(sensor: SensorRecord) -> dict[str, Any]:
    return {"stream": sensor.stream, "sensor": sensor.name, "errors": sensor.errors}
