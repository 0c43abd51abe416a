"""Nilometer: a stream database for sensor data on Apache Spark.

>>> import nilometer as nm
>>> spark = nm.local_spark()  # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from nilometer.errors import NilometerError
from nilometer.extras import require_extras
from nilometer.model.windows import between, dwindow, window
from nilometer.model.windows import range_window as range
from nilometer.version import VERSION as __version__

if TYPE_CHECKING:
    from nilometer.client import AsyncClient, Client
    from nilometer.connecting import connect
    from nilometer.database import Database
    from nilometer.local.embedded import EmbeddedDatabase
    from nilometer.spark.answer_table import keep_answer, read_answer
    from nilometer.spark.conditions import predicate
    from nilometer.spark.left_out import rows_without_time
    from nilometer.spark.metrics import metrics
    from nilometer.spark.session import local_spark
    from nilometer.spark.snapshot import snapshot
    from nilometer.spark.window_join import window_join

__all__ = [
    "AsyncClient",
    "Client",
    "Database",
    "EmbeddedDatabase",
    "NilometerError",
    "__version__",
    "between",
    "connect",
    "dwindow",
    "keep_answer",
    "local_spark",
    "metrics",
    "predicate",
    "range",
    "read_answer",
    "rows_without_time",
    "snapshot",
    "window",
    "window_join",
]

_CLIENT = "nilometer.client"
_HERE = {"EmbeddedDatabase": "nilometer.local.embedded", "connect": "nilometer.connecting"}
_LAZY = {
    "AsyncClient": _CLIENT,
    "Client": _CLIENT,
    "keep_answer": "nilometer.spark.answer_table",
    "read_answer": "nilometer.spark.answer_table",
    "snapshot": "nilometer.spark.snapshot",
    "local_spark": "nilometer.spark.session",
    "metrics": "nilometer.spark.metrics",
    "rows_without_time": "nilometer.spark.left_out",
    "predicate": "nilometer.spark.conditions",
    "Database": "nilometer.database",
    "window_join": "nilometer.spark.window_join",
}


def __getattr__(name: str) -> Any:
    """Import what needs Spark or the SQL parser only when it is used: workers never do."""
    if name in _HERE:
        return getattr(import_module(_HERE[name]), name)
    if name not in _LAZY:
        raise AttributeError(f"module 'nilometer' has no attribute {name!r}")
    module = _LAZY[name]
    require_extras(f"nm.{name}", "client" if module == _CLIENT else "spark")
    return getattr(import_module(module), name)


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext nilometer` in a notebook: the magic `%%nilometer`."""
    require_extras("%load_ext nilometer", "client")
    shell.register_magics(import_module("nilometer.notebook").NilometerMagics)
