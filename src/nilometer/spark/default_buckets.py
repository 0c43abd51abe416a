"""How many buckets a query gets about which neither it nor its database says anything."""

from __future__ import annotations

from typing import Final

from pyspark.sql import SparkSession

from nilometer.kernels.routing import MOST_BUCKETS
from nilometer.spark.session import BUCKETS_ARE_CORES, shuffle_partitions

_ASKED_FOR_AT_ONCE: Final = ("yarn", "k8s://")
"""Clusters that start as many executors as the settings say."""


def default_buckets(session: SparkSession) -> int:
    """Spark's shuffle partitions; on a cluster where nobody has set them, its cores right now."""
    if session.conf.get(BUCKETS_ARE_CORES, None) is None:
        return shuffle_partitions(session)
    return min(MOST_BUCKETS, cores_of(session))


def cores_of(session: SparkSession) -> int:
    """The cores of a session's executors now, and of those that are sure to come.

    Nothing is waited for. Over Spark Connect it is not known how many there are.
    """
    if not hasattr(session, "_sc"):
        return shuffle_partitions(session)
    context = session.sparkContext
    conf = context.getConf()
    there = context.defaultParallelism
    is_dynamic = conf.get("spark.dynamicAllocation.enabled", "false") == "true"
    if is_dynamic or not str(context.master).startswith(_ASKED_FOR_AT_ONCE):
        return there
    executors = int(conf.get("spark.executor.instances") or 1)
    return max(there, executors * int(conf.get("spark.executor.cores") or 1))
