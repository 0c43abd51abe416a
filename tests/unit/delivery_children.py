"""Processes that deliver until they are killed: with a whole database, or with a log alone."""

from __future__ import annotations

import time
from multiprocessing.connection import Connection
from pathlib import Path

from nilometer.deliveries.delivery import Delivery
from nilometer.deliveries.find_units import chunk_size, read_unit_options, unit_class
from nilometer.deliveries.unit import UnitSetting
from tests.delivery_receivers import QUICK


def deliver_until_killed(folder: str, reports: Connection) -> None:
    """Open a database and go on with its deliveries."""
    from nilometer.database.home import Home  # noqa: PLC0415 (it brings Spark, which takes a while)

    home = Home(Path(folder), None, None, lambda rows, where: set())
    home.deliveries.resume()
    _wait(reports)


def deliver_log_until_killed(folder: str, url: str, reports: Connection) -> None:
    """Deliver the log `q` of a folder to a webhook, and to Parquet files."""
    for unit, given in (
        ("webhook", {"url": url, "secret": "s", "rows": "20"}),
        ("parquet", {"rows": "30", "every": "0s"}),
    ):
        options = read_unit_options(unit, given)
        setting = UnitSetting(unit, "q", options, [Path(folder)], str)
        Delivery(
            unit,
            "q",
            f"{folder}/q",
            chunk_size(options),
            lambda unit=unit, setting=setting: unit_class(unit)(setting),  # type: ignore[misc]
            print,
            settings=QUICK,
        ).start()
    _wait(reports)


def _wait(reports: Connection) -> None:
    reports.send("ready")
    while True:
        time.sleep(1)
