"""The dashboard that the demo opens: the results of its three queries at a glance."""

from __future__ import annotations

from typing import Any, Final

from nilometer.demo.cameras.questions import BUSY, ON_THE_WAY, TRACKS

NAME: Final = "corridor"
ADDRESS: Final = f"/console/dashboards/{NAME}?range=5m"
_SECONDS: Final = (
    f"SELECT _time, (epoch_us(Camera4) - epoch_us(Camera1)) / 1e6 AS seconds\n"
    f"FROM {TRACKS} WHERE _time >= :start AND _time <= :end"
)


def dashboard() -> dict[str, Any]:
    """The dashboard as JSON."""
    panels: list[dict[str, Any]] = [
        {
            "title": "Sightings in the hall, in 5 s",
            "kind": "stat",
            "query": BUSY,
            "y": ["sightings"],
            "series": "camera",
            "width": 4,
        },
        {
            "title": "Sightings in the hall, in 5 s, over time",
            "kind": "line",
            "query": BUSY,
            "y": ["sightings"],
            "series": "camera",
            "width": 8,
        },
        {
            "title": "On the way to the next camera",
            "kind": "bar",
            "query": ON_THE_WAY,
            "x": "camera",
            "y": ["objects"],
            "width": 4,
        },
        {
            "title": "On the way, over time",
            "kind": "heat map",
            "query": ON_THE_WAY,
            "y": ["objects"],
            "series": "camera",
            "unit": "objects",
            "width": 8,
        },
        {
            "title": "Objects that passed all four cameras",
            "kind": "bar",
            "query": TRACKS,
            "combine": "count",
            "unit": "tracks",
        },
        {
            "title": "From the first camera to the last",
            "kind": "line",
            "select": _SECONDS,
            "y": ["seconds"],
            "combine": "avg",
            "unit": "s",
        },
    ]
    return {"title": "The corridor", "panels": panels}
