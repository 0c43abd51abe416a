"""The write-ahead of a log in an object store: appends are durable on the disk of this machine, and
shipped to the store in the background, many of them as one object.

The write-ahead is a log in a local folder, whose rows have one column more, the delivery key. Every
object states, as the number of a batch, up to which place in the write-ahead its rows reach: so an
object is never stored without that. After an interruption, shipping resumes after the place that
the log in the store names, and the write-ahead is cut only up to there.

Rows that wait when it is opened may have been read elsewhere in the meantime, if another machine
wrote the log: those whose delivery keys it has appended since are left out. Earlier keys do not
count: brokers use them again for other messages.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import pyarrow as pa

from nilometer.errors import DiskFullError, LogError, LogFullError, LogTakenError, in_one_line
from nilometer.log.delete import delete_log
from nilometer.log.frame_format import no_rows
from nilometer.log.layout import LogLayout
from nilometer.log.local_storage import LocalStorage
from nilometer.log.options import LogOptions
from nilometer.log.position import Position
from nilometer.log.reader import LogReader
from nilometer.log.registrations import commit, register
from nilometer.log.transactions import read_transactions
from nilometer.log.waiting_rows import SHIPPING, put_aside, waiting_in
from nilometer.log.writer import LogWriter

_LOG: Final = logging.getLogger("nilometer.storage")
_KEY: Final = "_delivery_key"
_REST: Final = 1.0
"""How many seconds pass at least after an attempt that failed."""
_EACH_MOMENT: Final = 1_000_000
_BYTES_OF_SEGMENTS: Final = 40
"""A place in the write-ahead as one number has so many bits for the byte in the segment."""


class WriteAhead:
    """Appends to a log in an object store by way of a folder on this machine.

    One thread at a time may append or trim; any thread may ship.
    """

    def __init__(
        self,
        folder: Path,
        store: LogWriter,
        options: LogOptions,
        clock: Callable[[], int],
        *,
        drops_oldest: bool = False,
        known_by: Callable[[bytes], bytes] = bytes,
    ) -> None:
        """`store`: the log, which only this object appends to from now on; `drops_oldest`: the
        oldest rows of the store make room for others; `known_by`: the part of a delivery key by
        which a row is known that others have appended."""
        self._folder = folder
        self._store = store
        self._options = options
        self._clock = clock
        self._drops_oldest = drops_oldest
        self._known_by = known_by
        self._storage = LocalStorage(folder)
        self._shipping = threading.Lock()
        self._wake = threading.Event()
        self._closing_now = threading.Event()
        self._taken: LogTakenError | None = None
        self._is_store_full = False
        self.problem: str | None = None
        """Why nothing can be shipped at present."""
        self._arrived: deque[tuple[Position, int]] = deque()
        """Ends of appends that wait, and when they were made; some are left out."""
        with ExitStack() as opening:
            self._local = opening.enter_context(self._open_local())
            shipped, own = self._find_shipped(), self._local.log_id
            self._before = self._local.end
            waits = shipped < self._before
            self._known = frozenset(map(known_by, store.keys_since(own) if waits else ()))
            """Of the delivery keys that others have appended since, what rows are known by."""
            # An object without a head may have been the last step of the writer before.
            if store.last_batch(own) is None or not store.is_published:
                store.append(None, batch=(own, _number(shipped)))
            self._shipped = (store.end, shipped)
            """The end of the log in the store, and the place in the write-ahead that it is."""
            if waits:
                self._arrived.append((self._before, clock()))
            about = {"log": store.log_id}
            register(folder, SHIPPING, shipped, about, now=clock(), named=True, anew=True)
            self._closing = opening.pop_all()
        self._thread = threading.Thread(target=self._run, name="log-shipping", daemon=True)
        self._thread.start()

    @property
    def end(self) -> Position:
        """The end of the log in the store, with the row number after the rows that wait, too."""
        end, shipped = self._shipped
        return replace(end, row=end.row + self._local.end.row - self._after(shipped).row)

    @property
    def watermark(self) -> int | None:
        """The watermark after all rows, also those that wait."""
        watermarks = (self._local.watermark, self._store.watermark)
        return max((one for one in watermarks if one is not None), default=None)

    @property
    def waiting_rows(self) -> int:
        """How many rows are not in the store yet."""
        return self._local.end.row - self._start.row

    @property
    def waiting_since(self) -> int | None:
        """When the oldest of them was appended; None: there are none."""
        first = next(iter(self._arrived.copy()), None)
        return None if first is None or not self.waiting_rows else first[1]

    @property
    def stored_bytes(self) -> int:
        """What the write-ahead takes on the disk."""
        return self._local.stored_bytes

    def append(
        self,
        rows: pa.RecordBatch | None,
        *,
        watermark: int | None = None,
        keys: Sequence[bytes] = (),
        row_keys: Sequence[bytes | None] | None = None,
    ) -> None:
        """Append rows and the watermark after them; returns once they are durable on the disk.

        `keys`: all delivery keys; `row_keys`: that of each row. Raises LogFullError, and appends
        nothing, if the write-ahead has no room.
        """
        if self._taken is not None:
            raise self._taken
        keyed = None
        if rows is not None:
            known = pa.nulls(len(rows), pa.binary()) if row_keys is None else row_keys
            columns = [*rows.columns, pa.array(known, pa.binary())]
            keyed = pa.RecordBatch.from_arrays(columns, schema=self._local.layout.stored)
        before = self._local.end
        try:
            end = self._local.append(keyed, watermark=watermark, keys=keys)
        except DiskFullError:
            raise
        except LogFullError as error:
            raise self._full() from error
        if end == before:
            return
        now = self._clock()
        if not self._arrived or now - self._arrived[-1][1] >= _EACH_MOMENT:
            self._arrived.append((end, now))
        if self._waiting_bytes >= self._options.ship_size:
            self._wake.set()

    def ship(self, *, at_least: int = 0) -> int:
        """Bring the rows that wait to the store while they are so many bytes; returns how many.

        What comes while they are shipped waits for the next time: small objects are expensive.
        """
        if self._taken is not None:
            raise self._taken
        rows = 0
        with self._shipping:
            until = self._local.end
            try:
                while self._shipped[1] < until and self._waiting_bytes >= at_least:
                    rows += self._ship_object()
            except Exception as error:
                self._note_problem(error)
                raise
            self.problem, self._is_store_full = None, False
        return rows

    def recent_keys(self, limit: int) -> list[bytes]:
        """The newest delivery keys, newest last, of rows in the store and of those that wait."""
        waiting = read_transactions(self._storage, self._start, self._local.end)
        keys = self._store.recent_keys(limit) + [
            key for one in waiting for key in one.keys if not self._is_known(key, one.end)
        ]
        return keys[-limit:] if limit > 0 else []

    def trim(self) -> int:
        """Delete what is in the store; returns how many files."""
        return self._local.trim()

    def drop_oldest(self) -> int:
        """Delete the oldest rows, of the store if that is full; returns how many are lost."""
        if self._is_store_full:
            return self._store.drop_oldest()
        before = self._start.row
        self._local.drop_oldest()
        return max(0, self._start.row - before)

    def repair(self) -> None:
        """Recover from a failed append, of which nothing remains; raises while that fails."""
        self._local.repair()

    def close(self) -> None:
        """Ship what waits if the store is there, and release the write-ahead."""
        self._closing_now.set()
        self._wake.set()
        self._thread.join()
        try:
            if self.problem is None:
                self.ship()
        except Exception as error:
            _LOG.warning(
                "%d rows of %s wait for their store: %s",
                self.waiting_rows,
                self._folder,
                in_one_line(error),
            )
        finally:
            self._closing.close()

    def _open_local(self) -> LogWriter:
        """The write-ahead, recreated if it belongs to another log, or is an old copy of itself."""
        self._refuse_foreign()
        options = replace(
            self._options,
            disk=self._options.write_ahead,
            segment=min(self._options.segment, self._options.ship_size),
            memory=min(self._options.memory, 2 * self._options.ship_size),
            history=0,
            keys_kept=0,
        )
        layout = _with_keys(self._store.layout)
        local = LogWriter.open(self._folder, layout, options, self._clock, may_change=True)
        mark = self._store.last_batch(local.log_id)
        if mark is None or mark <= _number(local.end):
            return local
        local.close()  # an old copy of itself: other rows would get places that the store has had
        put_aside(self._folder)
        return LogWriter.open(self._folder, layout, options, self._clock)

    def _refuse_foreign(self) -> None:
        """Refuse rows that wait for another log, which was here under this name."""
        waiting, log = waiting_in(self._folder)
        if log is None or log == self._store.log_id:
            return
        if waiting:
            raise LogError(
                "rows are waiting on this disk for a log that no longer exists",
                detail=f"{waiting} rows in {self._folder}, of a log {log}",
                hint="the stream was dropped and recreated elsewhere, or its logs were replaced: "
                "put the folder aside if the rows may be needed, or delete it",
            )
        delete_log(self._folder)

    def _find_shipped(self) -> Position:
        """The place up to which the log in the store has the rows."""
        start, end = LogReader.open(self._folder).start, self._local.end
        mark = self._store.last_batch(self._local.log_id)
        if mark is None:
            return start
        for one in read_transactions(self._storage, start, end):
            if _number(one.end) > mark:
                break
            start = one.end
        return start

    @property
    def _start(self) -> Position:
        """The place from which on rows wait."""
        return self._after(self._shipped[1])

    def _after(self, shipped: Position) -> Position:
        """The place, or the oldest one that is kept: rows may have been dropped."""
        oldest = self._local.segments[0]
        if shipped.segment >= oldest.number:
            return shipped
        return Position(oldest.number, 0, 0, oldest.first_row)

    @property
    def _waiting_bytes(self) -> int:
        """About how many bytes wait; less where files that are shipped in part were packed."""
        start = self._start
        sizes = (one.size for one in self._local.segments if one.last >= start.segment)
        return max(0, sum(sizes) - start.byte)

    def _ship_object(self) -> int:
        """Append the rows that wait longest to the log in the store, as one object."""
        self._local.sync()
        start, until, size = self._start, self._local.end, 0
        keys, watermark, stop = list[bytes](), None, start
        for one in read_transactions(self._storage, start, until):
            keys += [key for key in one.keys if not self._is_known(key, one.end)]
            watermark, stop = one.watermark, one.end
            size += one.size
            if size >= self._options.ship_size or stop == self._before:
                break
        if stop == start:  # a segment has been begun, and nothing is in it
            self._shipped = (self._shipped[0], until)
            return 0
        frames = [one.rows for one in self._local.read(start, stop)]
        rows = self._without_known(pa.Table.from_batches(frames, self._local.layout.stored), stop)
        self._shipped = (self._append_to_store(rows, watermark, keys, stop), stop)
        while self._arrived and self._arrived[0][0] <= stop:
            self._arrived.popleft()
        commit(self._folder, SHIPPING, stop, now=self._clock())
        return len(rows)

    def _append_to_store(
        self, rows: pa.RecordBatch, watermark: int | None, keys: Sequence[bytes], stop: Position
    ) -> Position:
        batch = (self._local.log_id, _number(stop))
        while True:
            try:
                return self._store.append(rows, watermark=watermark, keys=keys, batch=batch)
            except LogFullError:
                before = self._store.stored_bytes
                if self._drops_oldest:
                    self._store.drop_oldest()
                if self._store.stored_bytes == before:
                    raise
            except Exception:
                with suppress(Exception):  # or before the next attempt
                    self._store.repair()
                raise

    def _is_known(self, key: bytes | None, end: Position) -> bool:
        """Whether others have appended what has this key, and is before this place."""
        if key is None or not self._known or end > self._before:
            return False
        return self._known_by(key) in self._known

    def _without_known(self, rows: pa.Table, stop: Position) -> pa.RecordBatch:
        """Rows as the store has them, except those that it has got from elsewhere."""
        if self._known and stop <= self._before:
            keys = rows.column(rows.num_columns - 1).to_pylist()
            rows = rows.filter(pa.array([not self._is_known(key, stop) for key in keys]))
        schema = self._store.layout.stored
        batches = rows.combine_chunks().to_batches()
        if not batches:
            return no_rows(schema)
        return pa.RecordBatch.from_arrays(batches[0].columns[:-1], schema=schema)

    def _full(self) -> LogFullError:
        return LogFullError(
            "the write-ahead is full",
            detail=f"{self.waiting_rows} rows in {self._folder} wait for their store, and take "
            f"{self.stored_bytes} bytes of {self._options.write_ahead}"
            + ("" if self.problem is None else f": {self.problem}"),
            hint="the store must become reachable again, or the stream needs a larger write_ahead",
        )

    def _run(self) -> None:
        """Ship at intervals, and whenever there is enough."""
        while not self._closing_now.is_set():
            is_enough = self._wake.wait(self._options.ship_every / 1_000_000)
            self._wake.clear()
            if self._closing_now.is_set():
                return
            try:
                self.ship(at_least=self._options.ship_size if is_enough else 0)
                self._store.trim()
            except Exception:  # it is noted, and tried again
                self._closing_now.wait(_REST)

    def _note_problem(self, error: Exception) -> None:
        if self.problem is None:
            _LOG.warning("rows wait for their store in %s: %s", self._folder, in_one_line(error))
        self.problem = in_one_line(error)
        self._is_store_full = isinstance(error, LogFullError)
        if isinstance(error, LogTakenError):
            self._taken = error


def _with_keys(layout: LogLayout) -> LogLayout:
    """The columns of a log, and one for the delivery keys, the last."""
    name = _KEY
    while name in layout.stored.names or name in layout.in_segments.names:
        name = f"_{name}"
    stored = layout.stored.append(pa.field(name, pa.binary()))
    return LogLayout(stored, layout.time, names=layout.names)


def _number(place: Position) -> int:
    """A place in a write-ahead as the number of a batch, which grows with it."""
    return place.segment << _BYTES_OF_SEGMENTS | place.byte
