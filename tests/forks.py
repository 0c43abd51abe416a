"""Processes that tests start: copies of one that has imported what takes long."""

from __future__ import annotations

import multiprocessing
from typing import Final

FORKS: Final = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "pytest",
        "hypothesis",
        "httpx",
        "pyarrow.compute",
        "pyarrow.parquet",
        "nilometer.database.home",
    ]
)
