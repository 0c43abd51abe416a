"""Processes that tests start: copies of one that has imported what takes long."""

from __future__ import annotations

import multiprocessing
from typing import Final

FORKS: Final = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "pandas",  # Arrow wants it
        "nilometer.database.home",
        "tests.unit.alert_children",
        "tests.unit.delivery_children",
        "tests.unit.log_children",
        "tests.unit.packing_children",
    ]
)
