"""The resources used by Java and the Python processes that it has started."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

_PROC: Final = Path("/proc")
_JAVA: Final = "java"


@dataclass(frozen=True)
class JavaStatus:
    """The status of Spark's Java, as it reports it."""

    heap_bytes: int
    max_heap_bytes: int
    threads: int
    collections: int
    """How many times garbage was collected, and"""
    collection_seconds: float
    """how long that took."""


@dataclass(frozen=True)
class Processes:
    """The descendant processes of this one, as the system reports them."""

    workers: int
    """Python processes, including those that start others."""
    worker_bytes: int
    """Resident bytes; shared memory is counted for each of them."""
    java_bytes: int


def java_status(spark: SparkSession) -> JavaStatus | None:
    """The status of Java; None if there is none to ask."""
    try:
        factory: Any = spark.sparkContext._jvm.java.lang.management.ManagementFactory  # type: ignore[union-attr]
        heap = factory.getMemoryMXBean().getHeapMemoryUsage()
        collectors = list(factory.getGarbageCollectorMXBeans())
        return JavaStatus(
            int(heap.getUsed()),
            int(heap.getMax()),
            int(factory.getThreadMXBean().getThreadCount()),
            sum(max(0, int(one.getCollectionCount())) for one in collectors),
            sum(max(0, int(one.getCollectionTime())) for one in collectors) / 1000,
        )
    except Exception:  # whatever it is: there is no Java to ask
        return None


def processes_below(pid: int, proc: Path = _PROC) -> Processes | None:
    """The descendants of a process; None where the system does not report them."""
    processes = _processes(proc)
    if pid not in processes:
        return None
    children = defaultdict(list)
    for one, (_, parent, _) in processes.items():
        children[parent].append(one)
    below, rest = [], list(children[pid])
    while rest:
        one = rest.pop()
        below.append(one)
        rest += children[one]
    java = [processes[one][2] for one in below if processes[one][0] == _JAVA]
    workers = [processes[one][2] for one in below if processes[one][0].startswith("python")]
    return Processes(len(workers), sum(workers), sum(java))


def _processes(proc: Path) -> Mapping[int, tuple[str, int, int]]:
    """The name, the parent and the resident bytes of every process."""
    processes, page = {}, os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError):
        for folder in proc.iterdir():
            if folder.name.isdecimal():
                with suppress(OSError, ValueError, IndexError):  # it has ended meanwhile
                    text = (folder / "stat").read_text()
                    name, _, rest = text.partition(" (")[2].rpartition(") ")
                    fields = rest.split()
                    processes[int(folder.name)] = (name, int(fields[1]), int(fields[21]) * page)
    return processes
