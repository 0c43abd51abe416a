"""Ends threads of Spark's that are not needed.

For every log that a query reads Spark makes a factory of Python workers, and with it a thread that
looks for workers that have long been idle. The thread runs until Java ends, although the single
worker of such a factory is never idle and ends with the query: the threads would accumulate.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import SparkSession

_NAME: Final = "Idle Worker Monitor for "
_FACTORY: Final = "org$apache$spark$api$python$PythonWorkerFactory$MonitorThread$$$outer"


def end_idle_monitors(session: SparkSession) -> int:
    """End those threads of a classic session, and return how many there were."""
    context = getattr(session, "_sc", None)
    if context is None:
        return 0
    monitors = [one for one in _threads(context) if one.getName().startswith(_NAME)]
    # Daemons have workers that become idle; their monitors are needed.
    idle = [one for one in monitors if not getattr(one, _FACTORY)().useDaemonEnabled()]
    for one in idle:
        one.interrupt()
    return len(idle)


def _threads(context: Any) -> list[Any]:
    """All threads of Java."""
    group = context._jvm.java.lang.Thread.currentThread().getThreadGroup()
    while (parent := group.getParent()) is not None:
        group = parent
    threads = context._gateway.new_array(context._jvm.java.lang.Thread, 2 * group.activeCount())
    return [threads[place] for place in range(group.enumerate(threads))]
