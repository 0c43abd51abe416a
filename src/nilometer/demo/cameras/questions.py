"""The queries of the demo: a path join, a sliding GROUP BY, and an EXCEPT."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from nilometer.demo.cameras.declare import HALL, YARD
from nilometer.demo.cameras.world import CAMERAS, SECOND

TRACKS: Final = "tracks"
BUSY: Final = "busy"
ON_THE_WAY: Final = "on_the_way"

LONGEST_LEG: Final = 3 * SECOND
BUSY_WINDOW: Final = 5 * SECOND
WINDOW: Final = 4 * SECOND
"""Longer than any object takes to reach the next camera."""
EVERY: Final = SECOND


def questions() -> dict[str, str]:
    """All queries, by name."""
    return {TRACKS: tracks(), BUSY: busy(), ON_THE_WAY: on_the_way()}


def tracks() -> str:
    """Objects that pass all four cameras in order, at most three seconds for each leg."""
    seconds = LONGEST_LEG // SECOND
    legs = list(pairwise(CAMERAS))
    places = ", ".join(
        f"{table} {name}" for table, name in zip((HALL, HALL, YARD, YARD), CAMERAS, strict=True)
    )
    times = ", ".join(f"{name}._time AS {name}" for name in CAMERAS)
    windows = "\n   AND ".join(f"DWINDOW({a}, {b}) = {seconds} SECONDS" for a, b in legs)
    chosen = " AND ".join(f"{name}.camera = {i}" for i, name in enumerate(CAMERAS, 1))
    keys = "\n   AND ".join(f"{a}.seen.obj_id = {b}.seen.obj_id" for a, b in legs)
    return (
        f"SELECT {CAMERAS[0]}.seen.obj_id, {times}\n"
        f"FROM   {places}\n"
        f"{windows}\n"
        f"WHERE  {chosen}\n   AND {keys}"
    )


def busy() -> str:
    """How often the cameras in the hall have seen something within the last five seconds."""
    return (
        f"SELECT CONCAT('Camera', camera) AS camera, COUNT(*) AS sightings\n"
        f"FROM   {HALL} [RANGE {BUSY_WINDOW // SECOND} SECONDS]\n"
        f"GROUP BY CONCAT('Camera', camera)\n"
        f"EMIT CHANGES EVERY {EVERY // SECOND} SECOND"
    )


def on_the_way() -> str:
    """How many objects a camera has seen within the window and the next one has not."""
    legs = "\n       UNION ALL\n       ".join(
        f"(SELECT '{name}' AS camera, {_seen_by(i)}\n        "
        f"EXCEPT SELECT '{name}', {_seen_by(i + 1)})"
        for i, name in enumerate(CAMERAS[:-1], 1)
    )
    return (
        f"SELECT camera, COUNT(*) AS objects\n"
        f"FROM  ({legs}) AS legs\n"
        f"GROUP BY camera\n"
        f"EMIT CHANGES EVERY {EVERY // SECOND} SECOND"
    )


def _seen_by(camera: int) -> str:
    table = HALL if camera <= 2 else YARD
    return f"seen.obj_id FROM {table} [RANGE {WINDOW // SECOND} SECONDS] WHERE camera = {camera}"
