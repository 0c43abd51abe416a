"""Processes that tests start: forks of one with the slow imports done."""

from __future__ import annotations

import multiprocessing
from typing import Final

FORKS: Final = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "pandas",  # Arrow needs it
        "nilometer.database.home",
        "tests.unit.alert_children",
        "tests.unit.delivery_children",
        "tests.unit.log_children",
        "tests.unit.packing_children",
        "tests.unit.write_ahead_children",
    ]
)
