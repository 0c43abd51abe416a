"""Streams and tables with the names that the examples of docs/mining use, small and made up."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from nilometer.local.database import LocalDatabase
from tests.mining_streams import TIMESTAMP

MINUTE = 60_000_000
DAY = 1_440 * MINUTE
MONDAY = 19_675 * DAY
CHANNELS = np.arange(200)


def examples_database() -> LocalDatabase:
    """Everything that the examples name, in one database."""
    database = LocalDatabase()
    streams = {
        "Meter": meter(),
        "Entered": entered(),
        "Bursts": bursts(),
        "Patterns": patterns(),
        "Spectra": spectra(),
    }
    tables = {
        "Kettle": kettle(),
        "Library": library(),
        "Templates": templates(),
        "Backgrounds": pa.table({"counts": [falling().tolist()], "kind": ["NaI"]}),
        "Background": pa.table(
            {"counts": [(60 * falling()).tolist()], "live": [60.0], "kind": ["NaI"]}
        ),
        "Lines": pa.table({"energy": [1.0], "name": ["X"]}),
    }
    for name, rows in streams.items():
        database.create_stream(name, rows, time="ts")
    for name, rows in tables.items():
        database.create_table(name, rows)
    return database


def times(instants: list[int]) -> pa.Array:
    return pa.array(instants, TIMESTAMP)


def meter(days: int = 3) -> pa.Table:
    """A row a minute; every hour and a half something is boiled, each in its own way."""
    minutes = range(days * 1_440 + 1)
    watts = [(0, 0, 150, 1_800, 2_000, 900, 100)[min(one % 90, 6)] + one % 90 for one in minutes]
    return pa.table(
        {
            "ts": times([MONDAY + one * MINUTE for one in minutes]),
            "sensor": ["kitchen"] * len(minutes),
            "P": pa.array(watts, pa.float64()),
        }
    )


def kettle() -> pa.Table:
    return pa.table({"minute": [1, 2, 3, 4, 5], "watts": [0.0, 150, 1_800, 2_000, 900]})


def entered() -> pa.Table:
    """The same three rooms, one after the other, on each of three days, and one more on one day."""
    rooms = ["hall", "lab", "stairs", "hall", "lab", "stairs", "hall", "lab", "stairs", "roof"]
    days = ["mon"] * 3 + ["tue"] * 3 + ["wed"] * 4
    seen = [MONDAY + (one // 3) * DAY + (9 + one) * 60 * MINUTE for one in range(10)]
    all_seen = times([*seen, MONDAY + 4 * DAY])
    return pa.table({"ts": all_seen, "day": [*days, None], "room": [*rooms, None]})


def bursts() -> pa.Table:
    """Ten bursts of one box that resembles steel."""
    return pa.table(
        {
            "ts": times([MONDAY + one * 1_000_000 for one in range(10)]),
            "detector": ["a"] * 10,
            "box": [7] * 10,
            "counts": [[9.0, 1.0, 0.0]] * 10,
            "live": [1.0] * 10,
        }
    )


def patterns() -> pa.Table:
    return pa.table(
        {"ts": times([MONDAY]), "box": [7], "shares": [[0.9, 0.1, 0.0]]},
    )


def library() -> pa.Table:
    """Forty known patterns of two classes."""
    heavy = [[9.0 + 0.1 * one, 1.0, 0.0] for one in range(20)]
    light = [[1.0, 9.0 + 0.1 * one, 0.0] for one in range(20)]
    names = ["steel"] * 20 + ["sugar"] * 20
    return pa.table(
        {
            "pattern": heavy + light,
            "class": names,
            "material": names,
            "kind": ["NaI"] * 40,
            "detector": ["NaI"] * 40,
        }
    )


def falling() -> np.ndarray:
    return np.exp(-CHANNELS / 80)


def line() -> np.ndarray:
    """A line at 1.0 where channels are 0.01171875 wide, and lines 0.06."""
    wide = 0.06 / 2.3548 / 0.01171875
    return np.exp(-0.5 * ((CHANNELS + 0.5 - 1.0 / 0.01171875) / wide) ** 2)


def templates() -> pa.Table:
    return pa.table(
        {
            "name": ["X", "Y"],
            "counts": [line().tolist(), np.roll(line(), 50).tolist()],
            "weight": [1.0, 1.0],
            "kind": ["NaI", "NaI"],
        }
    )


def spectra() -> pa.Table:
    """Two spectra of a minute, with much of X in them."""
    counts = np.round(60 * (falling() + 3 * line())).tolist()
    return pa.table(
        {
            "ts": times([MONDAY, MONDAY + 2 * 60 * MINUTE]),
            "detector": ["a", "a"],
            "box": [7, 8],
            "counts": [counts, counts],
            "live": [60.0, 60.0],
            "exposure": [60.0, 60.0],
        }
    )
