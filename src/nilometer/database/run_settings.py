"""How a database runs its named queries."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from nilometer.database.back_off import BackOff
from nilometer.database.query_status import QueryLimits
from nilometer.database.supervisor import EVERY
from nilometer.log.clock import now_micros


@dataclass(frozen=True)
class RunSettings:
    """How named queries are run."""

    session: SparkSession | None = None
    limits: QueryLimits = field(default_factory=QueryLimits)
    """The limits of queries that set none of their own."""
    max_running: int | None = None
    """How many may run at a time."""
    back_off: BackOff = field(default_factory=BackOff)
    look_every: float = EVERY
    clock: Callable[[], int] = now_micros
    chance: Callable[[], float] = random.random
