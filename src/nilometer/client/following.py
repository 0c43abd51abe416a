"""Following a query's results, except for the connection: offsets, events, patience."""

from __future__ import annotations

import json
import logging
import random
import re
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any, Final

import pyarrow as pa

from nilometer.client import calls
from nilometer.client.arrow_messages import ArrowMessages, Batch
from nilometer.client.calls import Call
from nilometer.client.replies import ARROW, Reply, error_in, make_error, make_gap
from nilometer.client.rows import instant_of
from nilometer.errors import ClosedError, LimitError, NilometerError, UnreachableError

log = logging.getLogger("nilometer.client")

SILENCE: Final = 35.0
"""After this many seconds without even a heartbeat the connection counts as lost."""
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 5.0
_PASSING: Final = (502, 503, 504)
_TAKEN: Final = re.compile(r"(.*)\.(\d+)")

OnReconnect = Callable[[NilometerError, float], None]
"""Called with why the connection was lost, and in how many seconds it is retried."""


OnBase = Callable[[int], None]
"""Called when changes are gone that were not received yet: all changes so far must be discarded.

What follows is the answer in their place, with this many rows, and then the changes after it.
"""


class FollowState:
    """How far a follower of a query has come; knows no connection, and keeps no rows."""

    def __init__(
        self,
        query: str,
        start: str,
        *,
        patience: float | None = None,
        on_reconnect: OnReconnect | None = None,
        on_base: OnBase | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """`patience`: seconds without a connection after which it gives up; None: never."""
        self.query = query
        self.watermark = instant_of(None)
        self.phase: str | None = None
        self.error: str | None = None
        self._at = start
        self._patience = patience
        self._on_reconnect = on_reconnect
        self._on_base = on_base
        self._clock = clock
        self._messages = ArrowMessages()
        self._failures = 0
        self._lost_since: float | None = None

    @property
    def offset(self) -> str:
        """The offset after all rows that were handed out; the start if there was no event yet."""
        return self._at

    @property
    def is_lost(self) -> bool:
        """Whether there is no connection now, although there was one or should be."""
        return self._lost_since is not None

    def call(self) -> Call[None]:
        """The call to make, at first and whenever the connection was lost."""
        self._messages = ArrowMessages()
        return calls.follow(self.query, self._at)

    def check(self, reply: Reply) -> None:
        """Check how a reply begins; `content` is needed only if its status is not 200."""
        if reply.status == 200 and reply.media_type == ARROW:
            return
        error = error_in(reply)
        # A server that is stopping, or a proxy in between, may answer 500 without our JSON.
        is_cut_off = reply.status == 500 and isinstance(error, UnreachableError)
        if reply.status in _PASSING or is_cut_off or isinstance(error, LimitError):
            raise LostError(error)
        raise error

    def batches(self, data: bytes) -> Iterator[pa.RecordBatch]:
        """The batches with rows that these bytes complete; `offset` is that after the last."""
        for batch in self._parsed_batches(data):
            if len(batch.rows):
                self._at = batch.metadata["offset"]
                yield batch.rows
            self._note(batch)

    def rows(self, data: bytes) -> Iterator[dict[str, Any]]:
        """The same row by row: `offset` is that after the row that was handed out last."""
        for batch in self._parsed_batches(data):
            start = batch.metadata.get("start", self._at)
            for number, row in enumerate(batch.rows.to_pylist(), 1):
                self._at = after(start, number)
                yield row
            self._note(batch)

    def all_batches(self, data: bytes) -> Iterator[Batch]:
        """All batches, also those without rows, once the metadata beside the rows is noted."""
        for batch in self._parsed_batches(data):
            self._note(batch)
            yield batch

    def lost(self, why: NilometerError) -> float:
        """Note a lost connection; returns seconds to wait, or raises if out of patience."""
        now = self._clock()
        self._lost_since = now if self._lost_since is None else self._lost_since
        if self._patience is not None and now - self._lost_since >= self._patience:
            raise why
        longest = min(_LONGEST_PAUSE, float(_FIRST_PAUSE * 2**self._failures))
        pause = longest * random.uniform(0.5, 1)  # many that were cut off at once spread out
        self._failures = min(self._failures + 1, 30)
        log.warning("results of %s: %s; retrying in %.1f s", self.query, why.message, pause)
        if self._on_reconnect is not None:
            self._on_reconnect(why, pause)
        return pause

    def ended(self) -> LostError:
        """The error for a server that closed the connection without a word."""
        return LostError(UnreachableError("the server has closed the connection"))

    def _parsed_batches(self, data: bytes) -> Iterator[Batch]:
        try:
            for batch in self._messages.feed(data):
                self._failures, self._lost_since = 0, None
                yield batch
        except UnreachableError as error:
            raise LostError(error) from None

    def _note(self, batch: Batch) -> None:
        """Take in the metadata beside the rows."""
        metadata = batch.metadata
        data = json.loads(metadata.get("data", "null"))
        match metadata.get("event"):
            case "gap":
                raise make_gap(data, metadata.get("offset"))
            case "base":
                if self._on_base is None:
                    raise make_gap({**data, "rows": data["gone"]}, metadata.get("offset"))
                self._on_base(data["rows"])
            case "end":
                error = make_error(data["error"])
                raise LostError(error) if isinstance(error, ClosedError) else error
            case "state":
                self.phase, self.error = data["phase"], data["error"]
        self._at = metadata.get("offset", self._at)
        self.watermark = instant_of(metadata.get("watermark")) or self.watermark


class LostError(Exception):
    """A connection was lost, and may be made again."""

    def __init__(self, why: NilometerError) -> None:
        self.why = why
        super().__init__(why.message)


def after(offset: str, rows: int) -> str:
    """The offset that lies this many rows after another one.

    >>> after("3f2a9c1e-0-1024-0-170-5be01c77", 2), after("3f2a9c1e-0-1024-0-170-5be01c77.2", 3)
    ('3f2a9c1e-0-1024-0-170-5be01c77.2', '3f2a9c1e-0-1024-0-170-5be01c77.5')
    """
    match = _TAKEN.fullmatch(offset)
    place, taken = (match[1], int(match[2])) if match else (offset, 0)
    return f"{place}.{taken + rows}"
