"""Pools of Spark's scheduler: queries in different ones share the cores fairly."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession

_POOL: Final = "spark.scheduler.pool"


@contextmanager
def started_in_pool(session: SparkSession | None, pool: str) -> Iterator[None]:
    """Run the queries that this thread starts meanwhile in a pool, if Spark has pools.

    Spark Connect cannot choose the pool of a query.
    """
    context = getattr(session, "_sc", None)
    if context is None:
        yield
        return
    before = context.getLocalProperty(_POOL)
    context.setLocalProperty(_POOL, pool)
    try:
        yield
    finally:
        context.setLocalProperty(_POOL, before)
