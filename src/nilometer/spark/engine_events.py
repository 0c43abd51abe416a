"""Log messages about engines."""

from __future__ import annotations

import logging
from typing import Final

from nilometer.errors import NilometerError, in_one_line
from nilometer.model.events import event

_LOG: Final = logging.getLogger("nilometer.engine")


def tell_restart(bucket: int, error: NilometerError, failures: int) -> None:
    """Log that a Spark streaming query has ended and will be restarted."""
    why = in_one_line(error)
    extra = event("engine_restarts", str(bucket), bucket=bucket, reason=why, failures=failures)
    _LOG.warning("the engine ended and will be restarted: %s", why, extra=extra)


def tell_moved(name: str) -> None:
    """Log that a query has been moved to an engine of its own."""
    words = "query %s delayed others and was moved to its own engine"
    _LOG.warning(words, name, extra=event("query_moved", name, query=name))


def tell_stayed(name: str, error: Exception) -> None:
    """Log that a query could not be moved to another bucket, and goes on where it was."""
    _LOG.warning("query %s could not be moved to another bucket: %s", name, error)
