"""`query.live()`: an answer that a thread of its own keeps current."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from time import monotonic
from typing import TYPE_CHECKING, Final, Self

import httpx
import pyarrow as pa

from nilometer.client.arrow_messages import Batch
from nilometer.client.connection import cut_off
from nilometer.client.following import FollowState, LostError
from nilometer.client.html_table import html_table, html_text
from nilometer.client.live_display import LiveDisplay
from nilometer.client.live_rows import CurrentAnswer, KeptRows, NewestRows
from nilometer.client.rows import Rows
from nilometer.errors import (
    ClosedError,
    InputError,
    InternalError,
    LogGapError,
    NilometerError,
    TimeLimitError,
    in_one_line,
)

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from matplotlib.axes import Axes

    from nilometer.client.client import Client, Query

CHANGELOG: Final = "changelog"
_END_WITHIN: Final = 5.0


class LiveAnswer:
    """The current answer of a query, or its newest rows, as long as it is not closed.

    Every method may be called from any thread. In a notebook it is shown as a table that
    changes with it.
    """

    def __init__(self, client: Client, query: Query, newest: int, patience: float | None) -> None:
        if newest < 1:
            raise InputError("a live answer keeps at least one row", detail=f"got newest={newest}")
        self._client = client
        self._query = query
        self._newest = newest
        self._patience = patience
        self._changed = threading.Condition()
        self._version = 0
        self._is_closed = False
        self._error: NilometerError | None = None
        self._response: httpx.Response | None = None
        self._kept, self._state = self._begin()
        self._display = LiveDisplay(self)
        self._thread = threading.Thread(target=self._run, name=f"live {query.name}", daemon=True)
        self._thread.start()

    def rows(self) -> Rows:
        """A snapshot of the current rows; raises the error if there is one."""
        with self._changed:
            if self._error is not None and not self._is_closed:
                raise self._error
            return self._kept.rows()

    def to_arrow(self) -> pa.Table:
        return self.rows().to_arrow()

    def to_pandas(self) -> pd.DataFrame:
        return self.rows().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        return self.rows().to_polars()

    def plot(
        self,
        x: str | None = None,
        y: str | Sequence[str] | None = None,
        *,
        per: str | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Plot the current rows, as `Rows.plot` does; returns the axes."""
        return self.rows().plot(x, y, per=per, ax=ax)

    def wait(
        self, until: Callable[[Rows], bool] | None = None, *, timeout: float | None = None
    ) -> Rows:
        """Wait until the rows meet a condition, and return them.

        until    the condition on rows; without it, there must be at least one row.
        timeout  seconds after which TimeLimitError is raised; None: never.

        `live.wait(lambda rows: len(rows) >= 10, timeout=60)` waits for ten rows, for a minute.
        """
        is_right = until or (lambda rows: len(rows) > 0)
        deadline = None if timeout is None else monotonic() + timeout
        while True:
            with self._changed:
                version, rows, is_closed = self._version, self.rows(), self._is_closed
            if is_right(rows):
                return rows
            if is_closed:
                raise ClosedError(f"the live answer of {self._query.name} is closed")
            left = None if deadline is None else deadline - monotonic()
            if not self.await_change(version, left):
                raise TimeLimitError(
                    f"{self._query.name} did not meet the condition in time",
                    detail=f"{timeout:g} s, and it has {len(rows)} rows",
                    hint="give a longer timeout=, or look at query.status()",
                )

    @property
    def error(self) -> NilometerError | None:
        """Why it is no longer current; None while it is, or tries to be."""
        return self._error

    @property
    def is_lost(self) -> bool:
        """Whether the connection is lost and being re-established."""
        return self._state.is_lost

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    @property
    def version(self) -> int:
        """Grows with every change."""
        return self._version

    def await_change(self, version: int, seconds: float | None = None) -> bool:
        """Wait until it has another version, or is closed; whether that came to be in time."""
        with self._changed:
            return self._changed.wait_for(
                lambda: self._version != version or self._is_closed, seconds
            )

    def close(self) -> None:
        """Stop following the query; the rows stay as they are."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            if self._response is not None:
                cut_off(self._response)
        if threading.current_thread() is not self._thread:
            self._thread.join(_END_WITHIN)
        self._display.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self.rows())

    def __repr__(self) -> str:
        return f"<LiveAnswer of {self._query.name}: {self._note()}>"

    def _repr_html_(self) -> str:
        """The current rows as a small table, with the status."""
        with self._changed:
            rows = self._kept.rows()
        return f"{html_table(rows.table, is_cut=rows.is_cut)}<p>{html_text(self._note())}</p>"

    def _ipython_display_(self) -> None:
        """Show it here, and keep what is shown current."""
        self._display.show()

    def _note(self) -> str:
        if self._error is not None:
            return f"not current: {in_one_line(self._error)}"
        if self._is_closed:
            return "closed"
        if self._state.is_lost:
            return "the connection was lost, and is being re-established"
        if self._state.phase not in (None, "running"):
            reason = f": {self._state.error}" if self._state.error else ""
            return f"the query is {self._state.phase}{reason}"
        if isinstance(self._kept, CurrentAnswer):
            at = self._kept.instant
            return "no complete answer yet" if at is None else f"live, the answer at {at}"
        return f"live, the newest {self._newest} rows at most"

    def _begin(self) -> tuple[KeptRows, FollowState]:
        """Rows that are there, and where to follow on."""
        if self._query.emits == CHANGELOG:
            answer = self._query.answer()
            # An answer that is too long to be given at once is made of all its changes.
            start = "start" if answer.is_cut else answer.offset
            return CurrentAnswer(answer), self._following(start)
        page = self._query.page("latest", limit=self._newest)
        return NewestRows(page, self._newest), self._following(page.next)

    def _following(self, start: str) -> FollowState:
        return FollowState(
            self._query.name,
            start,
            patience=self._patience,
            on_reconnect=lambda *_: self._note_change(),
            on_base=self._forget,
        )

    def _run(self) -> None:
        try:
            while not self._is_closed:
                self._follow()
        except NilometerError as error:
            self._fail(error)
        except Exception as error:  # or nobody would hear of it
            self._fail(InternalError("the live answer has ended", detail=in_one_line(error)))

    def _follow(self) -> None:
        """Follow until the connection is lost, and wait for a while."""
        try:
            with closing(self._client.listen(self._state, self._opened)) as connection:
                for data in connection:
                    for batch in self._state.all_batches(data):
                        self._take(batch)
                    if self._is_closed:
                        return
        except LostError as lost:
            if not self._is_closed:
                self.await_closing(self._state.lost(lost.why))
        except LogGapError:
            if self._query.emits == CHANGELOG:
                raise
            kept, state = self._begin()  # what is gone would not be among the newest
            with self._changed:
                self._kept, self._state = kept, state
            self._note_change()

    def await_closing(self, seconds: float) -> bool:
        """Wait for so long, unless it is closed before; whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: self._is_closed, seconds)

    def _opened(self, response: httpx.Response) -> None:
        with self._changed:
            self._response = response
            if self._is_closed:
                cut_off(response)

    def _take(self, batch: Batch) -> None:
        with self._changed:
            has_event = "event" in batch.metadata
            if self._kept.take(batch) or has_event:
                self._version += 1
                self._changed.notify_all()

    def _forget(self, _: int) -> None:
        with self._changed:
            self._kept.forget()

    def _note_change(self) -> None:
        with self._changed:
            self._version += 1
            self._changed.notify_all()

    def _fail(self, error: NilometerError) -> None:
        with self._changed:
            self._error = None if self._is_closed else error
            self._version += 1
            self._changed.notify_all()
