"""A process that looks for alerts and delivers what they tell until it is killed."""

from __future__ import annotations

import time
from multiprocessing.connection import Connection
from pathlib import Path


def alert_until_killed(folder: str, reports: Connection) -> None:
    """Open a database and go on with its alerts and deliveries."""
    from nilometer.database.home import Home  # noqa: PLC0415 (it brings Spark, which takes a while)

    home = Home(Path(folder), None, None, lambda rows, where: set())
    home.deliveries.resume()
    home.alerts.resume()
    reports.send("ready")
    while True:
        time.sleep(1)
