"""Packs full segments: many small frames become few large ones, in fewer and smaller files.

A segment that is full is packed by itself. Many small packs become a larger one, and so do the
objects of a store, of which every append is one. A pack is written aside, forced to the disk and
then shown under its name, in one step; the files it came from are deleted after that. A process
stopped in between leaves the old files, or both, and then the pack counts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

import pyarrow as pa

from nilometer.log.appender import Appender
from nilometer.log.base import Net, make_base
from nilometer.log.options import MEGABYTE, LogOptions
from nilometer.log.pack_segments import packed, stored_segments
from nilometer.log.retention import Segment
from nilometer.log.segment_files import pack_name
from nilometer.log.storage import Storage

FEW: Final = 32
"""This many packs of a generation become one of the next; so do this many objects."""
LARGE: Final = 64 * MEGABYTE
"""Packs need not get larger than this."""
_PAYS_FROM: Final = 16 << 10
"""A segment of fewer bytes is only packed together with others: an index takes space, too."""
_MOST: Final = 4096
"""The most files that are read at once."""
_PARTS_OF_HISTORY: Final = 8
"""A pack spans at most this fraction of the history, as it is deleted as a whole."""


def _no_rest() -> None:
    """Nothing to wait for."""


class SegmentPacker:
    """Packs the segments of one log, which can be appended to meanwhile."""

    def __init__(
        self,
        storage: Storage,
        appender: Appender,
        options: LogOptions,
        appending: threading.RLock,
        deletable: Callable[[Sequence[Segment], bool], list[Segment]],
        net: Net | None,
    ) -> None:
        """`net`: adds up changes; None: the log has none."""
        self._storage = storage
        self._appender = appender
        self._options = options
        self._appending = appending
        self._packing = threading.Lock()
        self._deletable = deletable
        self._net = net

    def pack(self, breathe: Callable[[], None] = _no_rest) -> bool:
        """Pack some full segments, or make a base; returns whether there was work.

        `breathe` is called repeatedly, and may wait, or raise an error to stop the work.
        """
        with self._packing:
            with self._appending:
                appender = self._appender
                chosen = list(
                    next_to_pack(
                        appender.segments,
                        self._options,
                        appender.max_bytes(LARGE),
                        whole=appender.is_whole,
                    )
                )
            if not chosen:
                return self._rebase(self._needless(), breathe)
            first, last = chosen[0], chosen[-1]
            generation = first.generation + 1
            name = pack_name(first.number, last.last, generation, self._storage.term)
            content = packed(stored_segments(self._storage, chosen), first.schema, breathe)
            self.replace(
                chosen,
                replace(
                    first, last=last.last, length=last.length, name=name, generation=generation
                ),
                content,
            )
            return True

    def rebase_to_make_room(self) -> None:
        """Replace all changes that every reader has read by a base, however recent they are."""
        with self._packing:
            with self._appending:
                self._appender.seal()
            self._rebase(self._needless(whatever_age=True), _no_rest)

    def _needless(self, *, whatever_age: bool = False) -> list[Segment]:
        """The oldest files of a changelog that a base may replace, if that pays."""
        if self._net is None:
            return []
        with self._appending:
            segments = self._appender.segments
            oldest = self._deletable(segments, whatever_age or self._is_filling())
        more = [one for one in oldest if not one.is_base]
        if not more or any(one.schema is not segments[-1].schema for one in oldest):
            return []
        pays = whatever_age or sum(one.size for one in more) * 2 >= sum(
            one.size for one in oldest if one.is_base
        )
        return oldest if pays else []

    def _is_filling(self) -> bool:
        disk = self._options.disk
        return disk is not None and self._appender.stored_bytes * 2 > disk

    def _rebase(self, before: Sequence[Segment], breathe: Callable[[], None]) -> bool:
        if not before or self._net is None:
            return False
        with self._appending:
            names = [one.name for one in self._appender.segments]
            following = self._appender.segments[names.index(before[-1].name) + 1]
        base = make_base(self._storage, before, following, self._net, breathe)
        if base is None:
            return False
        content = packed([base.segment], before[-1].schema, breathe)
        return self.replace(before, base.described, content)

    def replace(
        self, before: Sequence[Segment], after: Segment, content: Iterable[bytes | pa.Buffer]
    ) -> bool:
        """Replace files by a new one; False if they were deleted meanwhile."""
        size = 0

        def counted() -> Iterator[bytes | pa.Buffer]:
            nonlocal size
            for chunk in _unless_deleted(content):
                size += len(chunk)
                yield chunk

        try:
            self._storage.put_aside(after.name, counted())
        except _DeletedError as deleted:
            self._storage.sweep(after.name)
            with self._appending:
                if set(before) <= set(self._appender.segments):
                    raise deleted.missing from None
            return False
        with self._appending:
            is_shown = self._appender.swap(before, replace(after, size=size))
        if not is_shown:
            self._storage.sweep(after.name)
            return False
        for one in before:
            self._storage.delete(one.name)
        return True


class _DeletedError(Exception):
    """A file that is to be replaced does not exist any more."""

    def __init__(self, missing: FileNotFoundError) -> None:
        super().__init__(str(missing))
        self.missing = missing


def _unless_deleted(content: Iterable[bytes | pa.Buffer]) -> Iterator[bytes | pa.Buffer]:
    try:
        yield from content
    except FileNotFoundError as missing:
        raise _DeletedError(missing) from missing


def next_to_pack(
    segments: Sequence[Segment], options: LogOptions, max_bytes: int, *, whole: bool
) -> Sequence[Segment]:
    """Consecutive segments that should become one pack; none if there is nothing to pack.

    The last one still grows, and is left. `whole`: every append is a file of its own, and a pack
    pays for many of them only. `max_bytes`: a pack need not get larger than that.
    """
    for _, run in groupby(segments[:-1], key=_kind):
        files = list(run)
        if files[0].is_base:
            continue
        if not files[0].generation and not whole:
            for one in files:
                if one.size >= _PAYS_FROM:
                    return [one]
        pack = _together(files, options, max_bytes)
        if len(pack) >= FEW:
            return pack
    return ()


def _kind(one: Segment) -> tuple[int, int, bool]:
    return one.generation, id(one.schema), one.is_base


def _together(files: Sequence[Segment], options: LogOptions, max_bytes: int) -> Sequence[Segment]:
    """The first files of a run that fit into one pack, if they are enough for one."""
    begin, size = 0, 0
    for place, one in enumerate(files):
        span = one.created - files[begin].created
        is_long = not options.keeps_everything and 0 < options.history < span * _PARTS_OF_HISTORY
        if size + one.size > max_bytes or is_long or place - begin >= _MOST:
            if place - begin >= FEW:
                return files[begin:place]
            begin, size = place, 0
        size += one.size
    return files[begin:]
