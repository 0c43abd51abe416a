"""Receives results from a server in a separate thread, so that Ctrl-C ends at once."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from queue import Empty, Full, Queue
from types import TracebackType
from typing import Final, Self

import pyarrow as pa

from nilometer.client import Client, Following, Query
from nilometer.commands.follow_results import FollowStatus
from nilometer.commands.server_access import Server
from nilometer.errors import NilometerError

_AHEAD: Final = 4
"""How many batches are received ahead of writing: no more are requested."""
_LOOK_SECONDS: Final = 0.1


@dataclass
class Listening:
    """Batches of one query's results, from an offset on, until the context ends."""

    server: Server
    query: str
    start: str
    _batches: Queue[pa.RecordBatch | BaseException] = field(
        default_factory=lambda: Queue(_AHEAD), init=False
    )
    _ended: threading.Event = field(default_factory=threading.Event, init=False)
    _loss: NilometerError | None = field(default=None, init=False)
    _client: Client = field(init=False)
    _following: Following[pa.RecordBatch] = field(init=False)

    def __enter__(self) -> Self:
        logging.getLogger("nilometer.client").addHandler(logging.NullHandler())
        self._client = self.server.open()
        about = {"name": self.query, "statement": "", "emits": ""}
        self._following = Query(self._client, about).follow(
            self.start, batches=True, on_reconnect=self._note_loss
        )
        threading.Thread(target=self._listen, name="results", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._client.close()

    def take(self, seconds: float) -> pa.RecordBatch | None:
        """The next batch; None if none arrives within this time. Raises what went wrong."""
        try:
            item = self._batches.get(timeout=seconds)
        except Empty:
            return None
        if isinstance(item, BaseException):
            raise item
        return item

    @property
    def heard(self) -> FollowStatus:
        """The current state."""
        one = self._following
        lost = self._loss if one.is_lost else None
        return FollowStatus(one.watermark, one.phase, one.error, lost)

    def _listen(self) -> None:
        try:
            for batch in self._following:
                if not self._put(batch):
                    return
        except BaseException as error:  # passed to whoever takes batches
            self._put(error)

    def _put(self, item: pa.RecordBatch | BaseException) -> bool:
        while not self._ended.is_set():
            try:
                self._batches.put(item, timeout=_LOOK_SECONDS)
                return True
            except Full:
                continue
        return False

    def _note_loss(self, error: NilometerError, _: float) -> None:
        self._loss = error
