"""Writes a log, as its only writer for as long as it is open."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Final, Self

import pyarrow as pa

from nilometer.errors import LogFullError
from nilometer.log.appender import Appender
from nilometer.log.background import StopWorkError, Work, in_background
from nilometer.log.base import Net
from nilometer.log.clock import now_micros
from nilometer.log.compaction import SegmentPacker
from nilometer.log.delivery_keys import keys_since, newest_keys
from nilometer.log.dropped_rows import add_dropped_rows
from nilometer.log.frame import Frame
from nilometer.log.frame_format import (
    BatchKey,
    Chunks,
    EncodedFrame,
    FrameHeader,
    encode_frame,
    no_rows,
)
from nilometer.log.interval_sync import IntervalSync
from nilometer.log.layout import LogLayout
from nilometer.log.location import storage_at
from nilometer.log.memory_tail import MemoryTail
from nilometer.log.options import Fsync, LogOptions
from nilometer.log.parts import Part, check_schema, part_bodies, part_headers, pieces
from nilometer.log.position import Position
from nilometer.log.published import as_watermark, own_layout, read_layout
from nilometer.log.reader import LogReader, whole_frame
from nilometer.log.registrations import Registration, registered_in
from nilometer.log.retention import Segment, age_to_end, deletable
from nilometer.log.storage import Storage

_AT_ONCE: Final = 4 << 20
"""About how many bytes of frames a reader in the process gets at a time."""
_DEFAULTS: Final = LogOptions()


class LogWriter:
    """A log open for writing. One thread at a time may append; any thread may read meanwhile."""

    def __init__(
        self,
        storage: Storage,
        layout: LogLayout,
        options: LogOptions,
        clock: Callable[[], int],
        may_change: bool = False,
        net: Net | None = None,
    ) -> None:
        self._storage = storage
        self._options = options
        self._clock = clock
        self._appending = threading.RLock()
        self._closing = ExitStack()
        with ExitStack() as opening:
            storage.make()
            opening.enter_context(storage.claim())
            self.layout, self._log_id = own_layout(storage, layout, may_change)
            self._appender = Appender(storage, self.layout, options, clock)
            opening.callback(self._close_appender)
            self._end = self._appender.state.end
            self._tail = MemoryTail(options.memory, self._end)
            if options.fsync is Fsync.INTERVAL:
                opening.callback(IntervalSync(self.sync, options.fsync_every).close)
            self._net = net if self.layout.changes else None
            self._packer = SegmentPacker(
                storage, self._appender, options, self._appending, self._deletable, self._net
            )
            opening.callback(in_background(_packing(weakref.ref(self))))
            self._closing = opening.pop_all()

    @classmethod
    def open(
        cls,
        location: str | Path,
        layout: LogLayout,
        options: LogOptions = _DEFAULTS,
        clock: Callable[[], int] = now_micros,
        *,
        may_change: bool = False,
        net: Net | None = None,
    ) -> Self:
        """Create or reopen a log; raises LogError if another writer holds it.

        `may_change`: a log of another layout continues with this one, if it can.
        `net` adds up changes: old ones of a changelog become a base instead of being deleted.
        """
        return cls(storage_at(location), layout, options, clock, may_change, net)

    @property
    def log_id(self) -> str:
        """An id that no other log has."""
        return self._log_id

    @property
    def end(self) -> Position:
        return self._end

    @property
    def is_published(self) -> bool:
        """Whether readers see what an earlier writer stored last; else the next append shows it."""
        return LogReader.open(self._storage.location).end >= self._end

    @property
    def watermark(self) -> int | None:
        return as_watermark(self._appender.state.watermark)

    @property
    def stored_bytes(self) -> int:
        """What the segments take on the disk."""
        return self._appender.stored_bytes

    @property
    def segments(self) -> Sequence[Segment]:
        """The files that hold its rows, oldest first."""
        return tuple(self._appender.segments)

    @property
    def last_key(self) -> BatchKey | None:
        """The last batch that `append_parts` added."""
        return next(reversed(list(self._appender.state.batches.items())), None)

    def last_batch(self, writer: str) -> int | None:
        """The number of the last batch that has this writer's name."""
        return self._appender.state.batches.get(writer)

    def append(
        self,
        rows: pa.RecordBatch | None,
        *,
        watermark: int | None = None,
        keys: Sequence[bytes] = (),
        batch: BatchKey | None = None,
    ) -> Position:
        """Append rows and the watermark after them; returns the end of the log once durable.

        The watermark never goes back. `keys` are the delivery keys of the rows; `batch`: what
        `last_batch` returns from now on. Raises LogFullError, and appends nothing, if there is no
        room.
        """
        with self._appending:
            known = _later(self._appender.state.watermark, watermark)
            if not (rows or keys or batch) and known == self._appender.state.watermark:
                return self._end
            batches = list(pieces(self._stored(rows))) if rows else []
            self._store(batches, known, keys, batch)
            return self._end

    def append_parts(self, parts: Sequence[Part], *, watermark: int | None, key: BatchKey) -> bool:
        """Append all rows of part files at once; False if they were appended before.

        They were if this writer (key[0]) has appended a batch of this number (key[1]) or later.
        """
        self._rebase_if_full(sum(one.size for one in parts))
        with self._appending:
            if self._appender.state.batches.get(key[0], key[1] - 1) >= key[1]:
                return False
            schema = self.layout.stored
            last = encode_frame(None, None, None, batch=key)
            headers = [one for part in parts for one in part_headers(part, schema)]
            bodies = chain.from_iterable(part_bodies(part, schema) for part in parts)
            known = _later(self._appender.state.watermark, watermark)
            self._write([*headers, last.header], chain(bodies, [last.body]), known, key)
            self._tail.forget(self._appender.state.end)
            self._end = self._appender.state.end
            return True

    def append_frames(
        self, frames: Sequence[EncodedFrame], *, watermark: int | None, key: BatchKey
    ) -> bool:
        """Append encoded frames, the last of which holds this key; False if they are there already.

        Frames that are appended again after a power failure get the same offsets as before.
        """
        self._rebase_if_full(sum(one.header.length for one in frames))
        with self._appending:
            if self._appender.state.batches.get(key[0], key[1] - 1) >= key[1]:
                return False
            known = _later(self._appender.state.watermark, watermark)
            headers = [one.header for one in frames]
            self._write(headers, [one.body for one in frames], known, key)
            self._tail.forget(self._appender.state.end)
            self._end = self._appender.state.end
            return True

    def recent_keys(self, limit: int) -> list[bytes]:
        """The newest delivery keys, newest last; at least 10 000 outlive their rows."""
        with self._appending:
            return newest_keys(self._storage, (self._end.segment, self._end.byte), limit)

    def keys_since(self, writer: str) -> list[bytes]:
        """The delivery keys that came after the last batch that has this writer's name."""
        end, batch = (self._end.segment, self._end.byte), (writer, self.last_batch(writer))
        return keys_since(self._storage, end, batch)

    def read(self, start: Position, end: Position | None = None) -> Iterator[Frame]:
        """The frames from `start` up to `end`: the newest from memory, older ones from disk."""
        end = self._end if end is None else end
        reader = LogReader(self._storage, self.layout, self._log_id)
        while start < end:
            frames = self._tail.after(start, end, _AT_ONCE)
            if frames is None:
                stop = min(end, self._tail.start)
                yield from reader.read(start, stop)
                start = stop
            elif not frames:
                return
            else:
                yield from frames
                start = frames[-1].end

    def trim(self) -> int:
        """Delete segments that are no longer needed, and return how many.

        A segment that grows slowly is ended when it is old, so that it can be packed and deleted.
        """
        with self._appending:
            if self._appender.last_created < self._clock() - age_to_end(self._options):
                self._seal()
            if self._net is not None:
                return 0  # a base replaces them
            deletable = self._deletable(self._appender.segments)
            self._appender.delete(deletable)
            return len(deletable)

    def pack(self) -> bool:
        """Pack some full segments; returns whether there were any. Also done in the background."""
        return self._packer.pack()

    def drop_oldest(self) -> int:
        """Delete the oldest segment even if unread; returns how many rows are lost."""
        with self._appending:
            appender = self._appender
            if len(appender.segments) == 1:
                self._seal()
            if len(appender.segments) < 2:
                return 0
            oldest, following = appender.segments[:2]
            rows = following.first_row - oldest.first_row
            add_dropped_rows(self._storage, rows)
            appender.delete([oldest])
            return rows

    def sync(self) -> None:
        """Force everything that was appended to the disk, whatever the policy."""
        self._appender.sync()

    def repair(self) -> None:
        """Recover from a failed append, of which nothing remains; raises while that fails."""
        with self._appending:
            self._appender.repair()

    def close(self) -> None:
        """Force everything to the disk and release the log."""
        self._closing.close()

    def _close_appender(self) -> None:
        with self._appending:
            self._appender.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _stored(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows with the log's own schema, which may differ in details that are not stored."""
        schema = self.layout.stored
        check_schema(rows.schema, schema)
        return pa.RecordBatch.from_arrays(rows.columns, schema=schema)

    def _store(
        self,
        batches: list[pa.RecordBatch],
        watermark: int,
        keys: Sequence[bytes],
        batch: BatchKey | None,
    ) -> None:
        """Write rows as one transaction, and keep them in memory."""
        time, compression = self.layout.time, self._options.compression
        frames = [encode_frame(one, time, compression) for one in batches[:-1]]
        last = batches[-1] if batches else None
        frames.append(encode_frame(last, time, compression, keys, batch))
        headers = [one.header for one in frames]
        placed = self._write(headers, [one.body for one in frames], watermark, batch)
        end = self._appender.state.end
        byte = end.byte - sum(one.length for one in placed)
        for header, rows in zip(placed, batches or [no_rows(self.layout.stored)], strict=True):
            frame = whole_frame(end.segment, byte, header, rows)
            self._tail.add(frame, as_watermark(header.before))
            byte += header.length
        self._end = end

    def _write(
        self,
        headers: Sequence[FrameHeader],
        bodies: Iterable[Chunks],
        watermark: int,
        batch: BatchKey | None,
    ) -> list[FrameHeader]:
        self._make_room(sum(one.length for one in headers))
        return self._appender.write(headers, bodies, watermark, batch)

    def _make_room(self, wanted: int) -> None:
        disk = self._options.disk
        if disk is None or self._size_with(wanted) <= disk:
            return
        self.trim()
        is_over = self._net is None and self._size_with(wanted) > disk
        if is_over and self._would_sealing_make_room():
            self._seal()
            self.trim()
        if self._size_with(wanted) > disk:
            raise LogFullError(
                "the log is full",
                detail=f"{self._storage.location} takes {self.stored_bytes} bytes of {disk}, "
                f"and {wanted} more are needed",
                hint="its readers must catch up, or it needs a larger disk budget",
            )

    def _size_with(self, wanted: int) -> int:
        return self.stored_bytes + self._appender.added_by(wanted)

    def _deletable(self, segments: Sequence[Segment], whatever_age: bool = False) -> list[Segment]:
        keys, now = self._appender.state.keys, self._clock()

        def without(readers: Iterable[Registration]) -> list[Segment]:
            places = (one.position for one in readers)
            return deletable(segments, places, self._options, now, keys, whatever_age=whatever_age)

        # There may be a thousand readers: do not look them up if nothing is old enough.
        return without(registered_in(self._storage)) if without(()) else []

    def _rebase_if_full(self, wanted: int) -> None:
        """Make room in a changelog; before the log is locked, as packing may be under way."""
        disk = self._options.disk
        if self._net is not None and disk is not None and self._size_with(wanted) > disk:
            self._packer.rebase_to_make_room()
            self._end = self._appender.state.end

    def _would_sealing_make_room(self) -> bool:
        """Whether the growing segment would be deletable if it were not the last one."""
        segments = self._appender.segments
        if not segments:
            return False
        last, keys = segments[-1], self._appender.state.keys
        begun = replace(
            last, number=last.last + 1, first_row=self._end.row, created=self._clock(), keys=keys
        )
        return len(self._deletable([*segments, begun])) == len(segments)

    def _seal(self) -> None:
        self._appender.seal()
        self._end = self._appender.state.end


def _packing(log: weakref.ref[LogWriter]) -> Work:
    """The packer of a log, for as long as the log is open."""

    def pack(breathe: Callable[[], None]) -> bool:
        writer = log()
        if writer is None:
            raise StopWorkError
        return writer._packer.pack(breathe)

    return pack


def make_log(location: str | Path, layout: LogLayout) -> str:
    """Create a log unless it exists, even if another process writes it; returns its id.

    Raises LogError if it has other columns.
    """
    storage = storage_at(location)
    if read_layout(storage) is None:
        LogWriter.open(location, layout).close()
    return own_layout(storage, layout)[1]


def _later(watermark: int, other: int | None) -> int:
    return watermark if other is None else max(watermark, other)
