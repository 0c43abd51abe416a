"""Cancels Spark's work for a caller if it takes too long or is no longer wanted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final
from uuid import uuid4

from pyspark import SparkContext

from nilometer.errors import SqlError, TimeLimitError

_AGAIN_SECONDS: Final = 0.5


@contextmanager
def time_limited(
    context: SparkContext,
    seconds: float | None,
    cancelling: Callable[[Callable[[], None]], None] | None = None,
) -> Iterator[None]:
    """Cancel the jobs that this thread starts within after this many seconds: TimeLimitError.

    `cancelling` gets a function that cancels them earlier. Spark's work before its first job, and
    a single call of a function that does not return, cannot be cancelled: a caller that must not
    wait for these has to wait in another thread.
    """
    tag = f"limited-{uuid4().hex}"
    wake, has_ended = threading.Event(), threading.Event()
    is_over, is_cancelled = threading.Event(), threading.Event()

    def watch() -> None:
        is_late = not wake.wait(seconds)
        if has_ended.is_set():
            return
        (is_over if is_late else is_cancelled).set()
        with suppress(Exception):  # Spark may have stopped
            context.cancelJobsWithTag(tag)
            while not has_ended.wait(_AGAIN_SECONDS):  # one job may follow another
                context.cancelJobsWithTag(tag)

    context.addJobTag(tag)
    context.setInterruptOnCancel(True)
    threading.Thread(target=watch, name="time limit", daemon=True).start()
    try:
        if cancelling is not None:
            cancelling(wake.set)
        yield
    except Exception:
        if is_over.is_set():
            raise took_too_long(seconds or 0) from None
        if is_cancelled.is_set():
            raise SqlError("the query was cancelled") from None
        raise
    finally:
        has_ended.set()
        wake.set()
        with suppress(Exception):
            context.setInterruptOnCancel(False)
            context.removeJobTag(tag)


def took_too_long(seconds: float) -> TimeLimitError:
    """The error for exceeding the time limit."""
    return TimeLimitError(
        "the statement took too long",
        detail=f"it may take {seconds:g} seconds",
        hint="read fewer rows: join by = and filter with WHERE",
    )
