"""What the log tells of engines."""

from __future__ import annotations

import logging
from typing import Final

from nilometer.errors import NilometerError, in_one_line
from nilometer.model.events import event

_LOG: Final = logging.getLogger("nilometer.engine")


def tell_restart(bucket: int, error: NilometerError, failures: int) -> None:
    """A streaming query of Spark has ended, and will be started again."""
    why = in_one_line(error)
    told = event("engine_restarts", str(bucket), bucket=bucket, reason=why, failures=failures)
    _LOG.warning("the engine has ended, and is started again: %s", why, extra=told)


def tell_moved(name: str) -> None:
    """A query has been moved to an engine of its own."""
    words = "query %s kept others waiting, and was moved to an engine of its own"
    _LOG.warning(words, name, extra=event("query_moved", name, query=name))
