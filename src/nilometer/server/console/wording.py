"""Figures, durations and states as people read them."""

from __future__ import annotations

from typing import Final

from nilometer.alerts.rule import AlertState
from nilometer.database.query_status import QueryPhase
from nilometer.deliveries.status import DeliveryState
from nilometer.model.time import format_instant
from nilometer.sensors.manager.status import SensorState
from nilometer.server.console.drawing import Shape, shape
from nilometer.server.console.figures import span_text

_BYTES: Final = ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB"))

_EVER: Final = 100 * 366 * 86_400 * 1_000_000
"""A watermark this far behind has not started: it is at the beginning of time."""

PHASES: Final[dict[QueryPhase, str]] = {
    QueryPhase.RUNNING: "good",
    QueryPhase.STALLED: "warn",
    QueryPhase.RESTARTING: "warn",
    QueryPhase.WAITING: "busy",
    QueryPhase.STOPPED: "idle",
    QueryPhase.FAILED: "bad",
}
"""The kind of mark for each phase."""

SENSORS: Final[dict[str, str]] = {
    SensorState.CONNECTED: "good",
    SensorState.SILENT: "warn",
    SensorState.OPENING: "busy",
    SensorState.WAITING: "warn",
    SensorState.ENDED: "done",
    SensorState.FAILED: "bad",
    "idle": "idle",
}
"""The same for sensors; idle: nobody reads them at present."""

DELIVERIES: Final[dict[DeliveryState, str]] = {
    DeliveryState.RUNNING: "good",
    DeliveryState.RETRYING: "warn",
    DeliveryState.STOPPED: "idle",
    DeliveryState.FAILED: "bad",
}
"""The same for deliveries."""


ALERTS: Final[dict[AlertState, str]] = {
    AlertState.OK: "good",
    AlertState.PENDING: "busy",
    AlertState.FIRING: "bad",
    AlertState.NO_DATA: "warn",
}
"""The same for alerts."""


def rate_words(per_second: float) -> str:
    """Rows a second, with as many digits as are meaningful.

    >>> rate_words(0.0), rate_words(0.25), rate_words(12.34), rate_words(5120.0)
    ('0/s', '0.25/s', '12.3/s', '5 120/s')
    """
    if per_second < 0.005:
        return "0/s"
    digits = 2 if per_second < 1 else 1 if per_second < 100 else 0
    return f"{per_second:,.{digits}f}/s".replace(",", " ")


def bytes_words(size: int | None) -> str:
    """A size in a unit that fits.

    >>> bytes_words(1536), bytes_words(12), bytes_words(None)
    ('1.5 kB', '12 bytes', '—')
    """
    if size is None:
        return "—"
    for unit, name in _BYTES:
        if size >= unit:
            return f"{size / unit:,.1f} {name}".replace(",", " ")
    return f"{size} bytes"


def length_words(microseconds: int | None) -> str:
    """A duration, roughly, if it is known.

    >>> length_words(1_500_000), length_words(None)
    ('1.5 s', '—')
    """
    return "—" if microseconds is None else span_text(microseconds)


def known_lag(microseconds: int | None) -> int | None:
    """How far a watermark is behind, once it has started to move.

    >>> known_lag(5), known_lag(10**16)
    (5, None)
    """
    return None if microseconds is None or microseconds > _EVER else microseconds


def instant_words(microseconds: int | None) -> str:
    """An instant in UTC, to the second.

    >>> instant_words(0), instant_words(None)
    ('1970-01-01 00:00:00', '—')
    """
    return "—" if microseconds is None else format_instant(microseconds)[:19]


def state_mark(kind: str, x: float = 0, y: float = 0, size: float = 5) -> Shape:
    """A mark around a point that shows a state by shape as well as colour."""
    at: dict[str, str | float] = {"class": f"mark {kind}"}
    if kind in ("good", "busy", "idle"):
        return Shape("circle", at | {"cx": x, "cy": y, "r": size})
    corners = {
        "warn": ((0, -1.2), (1.2, 1), (-1.2, 1)),
        "bad": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
        "done": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    }[kind]
    points = " ".join(f"{x + size * a:g},{y + size * b:g}" for a, b in corners)
    return Shape("polygon", at | {"points": points})


def state_words(kind: str, word: str) -> Shape:
    """A state as a mark with its word."""
    place: dict[str, str | float] = {"width": 14, "height": 14, "viewBox": "-7 -7 14 14"}
    hidden = {"class": "nm-svg", "aria-hidden": "true"}
    mark = Shape("svg", place | hidden, (state_mark(kind),))
    return shape("span", mark, word, class_=f"nm-state {kind}")
