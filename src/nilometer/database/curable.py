"""Whether a retry may succeed after a query has failed."""

from __future__ import annotations

from typing import Final

from nilometer.errors import (
    CheckpointError,
    DiskFullError,
    InputError,
    InternalError,
    LogError,
    LogFullError,
    LogGapError,
    NilometerError,
    PredicateError,
    SchemaError,
    SqlError,
    WindowError,
)

_LASTING: Final = (
    CheckpointError,
    InputError,
    InternalError,
    LogFullError,
    LogGapError,
    PredicateError,
    SchemaError,
    SqlError,
    WindowError,
)
"""Errors that recur with the same text over the same rows."""
_LASTING_OF_LOGS: Final = (
    "the log is damaged",
    "the log has other columns",
    "a log of another version",
    "the rows do not have the columns of the log",
    "no file system for this location",
)


def may_be_cured(error: NilometerError) -> bool:
    """Whether to retry: Spark, a worker, a disk or a catalog may work next time."""
    if isinstance(error, LogError) and error.message in _LASTING_OF_LOGS:
        return False
    return isinstance(error, DiskFullError) or not isinstance(error, _LASTING)
