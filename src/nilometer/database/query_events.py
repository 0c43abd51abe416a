"""Log messages about named queries."""

from __future__ import annotations

import logging
from typing import Final

from nilometer.database.query_run import RunState
from nilometer.database.query_status import QueryPhase, Stall
from nilometer.errors import NilometerError, in_one_line
from nilometer.model.events import event
from nilometer.model.names import count

_LOG: Final = logging.getLogger("nilometer.queries")


def tell_failed(name: str, state: RunState, now: int) -> None:
    """Log that a query has failed, and whether it is retried."""
    about = {"query": name, "reason": state.error, "failures": state.failures}
    if state.phase is QueryPhase.FAILED or state.next_try is None:
        extra = event("query_failed", name, **about)
        _LOG.error("query %s failed permanently: %s", name, state.error, extra=extra)
        return
    seconds = max(0, state.next_try - now) / 1e6
    extra = event("query_restarts", name, **about, seconds=seconds)
    words = "query %s failed and will be restarted in %.1f s: %s"
    _LOG.warning(words, name, seconds, state.error, extra=extra)


def tell_begun(name: str, state: RunState | None) -> None:
    """Log that a query has been restarted."""
    failures = 0 if state is None else state.failures
    extra = event("query_started", name, query=name, failures=failures)
    _LOG.info("query %s is running again", name, extra=extra)


def tell_well(name: str, failures: int) -> None:
    """Log that a failed query works again."""
    extra = event("query_recovered", query=name, failures=failures)
    _LOG.info("query %s has recovered after %s", name, count(failures, "failure"), extra=extra)


def tell_stalled(name: str, stall: Stall) -> None:
    """Log that a query is stalled."""
    about = {"stream": stall.stream, "sensor": stall.sensor, "reason": str(stall.reason)}
    extra = event("query_stalled", name, query=name, **about)
    _LOG.warning("query %s is stalled: %s", name, stall.cause, extra=extra)


def tell_gets_on(name: str) -> None:
    """Log that a stalled query makes progress again."""
    extra = event("query_gets_on", name, query=name)
    _LOG.info("query %s is making progress again", name, extra=extra)


def tell_spread(name: str, parts: int) -> None:
    """Log that the hot key of a query was spread."""
    extra = event("query_spread", name, query=name, buckets=parts)
    words = "query %s had a hot key, whose rows are now spread over %d buckets"
    _LOG.info(words, name, parts, extra=extra)


def tell_not_spread(name: str, error: NilometerError) -> None:
    """Log that the hot key of a query could not be spread."""
    why = in_one_line(error)
    extra = event("query_not_spread", name, query=name, reason=why)
    _LOG.warning("the hot key of query %s could not be spread: %s", name, why, extra=extra)


def tell_dead_letters(name: str, more: int) -> None:
    """Log that rows became dead letters because they could not be computed."""
    if more > 0:
        extra = event("query_dead_letters", name, query=name, count=more)
        words = "query %s left out %s: SHOW DEAD LETTERS FROM %s says why"
        _LOG.warning(words, name, count(more, "row"), name, extra=extra)
