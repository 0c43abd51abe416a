"""Processes that go on with the deliveries of a database until they are killed."""

from __future__ import annotations

import time
from multiprocessing.connection import Connection
from pathlib import Path

from nilometer.database.home import Home
from nilometer.database.units import Units


def open_home(folder: Path, units: Units | None = None) -> Home:
    return Home(folder, None, None, lambda rows, where: set(), units)


def deliver_until_killed(folder: str, reports: Connection) -> None:
    """Open a database and go on with its deliveries."""
    home = open_home(Path(folder))
    home.deliveries.resume()
    reports.send("ready")
    while True:
        time.sleep(1)
