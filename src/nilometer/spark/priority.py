"""Gives a process that serves users priority over the work that Spark does for it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

_NICENESS: Final = 5


def give_way(session: SparkSession) -> None:
    """Give a local Spark, with the workers that it starts, a lower priority than this process.

    Linux keeps niceness per thread, and what a thread starts inherits it. If it cannot be set,
    Spark works as before: only waits are longer.
    """
    gateway = session.sparkContext._gateway
    java = None if gateway is None else getattr(gateway, "proc", None)
    if java is None:
        return
    with suppress(OSError):
        for thread in Path(f"/proc/{java.pid}/task").iterdir():
            with suppress(OSError):  # it may have ended
                os.setpriority(os.PRIO_PROCESS, int(thread.name), _NICENESS)
