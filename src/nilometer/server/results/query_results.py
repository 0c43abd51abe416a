"""The results of one named query: pages, newest rows, new rows, and the current answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Final, TypeVar

import pyarrow as pa

from nilometer.errors import ClosedError, InputError, LogError, ResultsGoneError
from nilometer.local.answer_fold import AnswerFold
from nilometer.log.reader import LogReader
from nilometer.log.seen import Seen
from nilometer.server.fair_threads import FairThreads
from nilometer.server.results.chunk import Chunk, CurrentAnswer, Page
from nilometer.server.results.offset import Offset
from nilometer.server.results.read_page import read_page
from nilometer.server.results.shared_work import SharedWork
from nilometer.server.results.watcher import LogWatcher

APPEND: Final = "append"
CHANGELOG: Final = "changelog"
_KEPT_BYTES: Final = 16 << 20
"""The size of the newest chunks of one query that are kept for other followers."""

_Outcome = TypeVar("_Outcome")


class QueryResults:
    """Reads the log of a query's results, and nothing else, for any number of clients."""

    def __init__(
        self,
        name: str,
        location: str,
        reader: LogReader,
        threads: FairThreads,
        fold: Callable[[LogReader], AnswerFold],
    ) -> None:
        self.name = name
        self.schema: pa.Schema = reader.layout.stored
        self.emits = CHANGELOG if reader.layout.changes else APPEND
        self.log_id = reader.log_id
        self._location = location
        self._reader = reader
        self._threads = threads
        self._fold = fold
        self._last_seen: Seen | None = None
        self.shared = SharedWork(_KEPT_BYTES)
        self.watcher = LogWatcher(self._look)

    async def page(self, offset: Offset | None, max_rows: int) -> Page:
        """At most `max_rows` stored rows after an offset; None: from the oldest one kept."""
        reader, log_id = self._reader, self.log_id

        def read() -> Page:
            seen = Seen.of(reader)
            start = Offset.at(log_id, reader.start) if offset is None else offset.require(log_id)
            return read_page(reader, start, max_rows, seen)

        return await self._in_thread(read)

    async def latest(self, max_rows: int) -> Page:
        """The newest rows, at most `max_rows`."""
        reader = self._reader

        def read() -> Page:
            seen = Seen.of(reader)
            place = reader.place_of(max(0, seen.end.row - max_rows))
            return read_page(reader, Offset.at(self.log_id, place), max_rows, seen)

        return await self._in_thread(read)

    async def follow(
        self, offset: Offset | None, *, max_rows: int = 5000
    ) -> AsyncGenerator[Chunk, None]:
        """What follows an offset (None: what arrives from now on), for as long as it is consumed.

        Nothing is read before it is requested. The first chunk is returned at once, perhaps without
        rows. Raises ResultsGoneError when the query is dropped, LogGapError if rows were deleted.
        """
        seen = await self._in_thread(self._see)
        is_first, watermark = True, None
        place = Offset.at(self.log_id, seen.end) if offset is None else offset
        place.require(self.log_id)
        while True:
            page = await self._chunk(place, max_rows, seen)
            if is_first or page.rows.num_rows or page.watermark != watermark:
                yield page
            is_first, watermark, place = False, page.watermark, page.next
            if page.at_end:
                seen = await self.watcher.beyond(seen)

    async def answer(self, max_rows: int) -> CurrentAnswer:
        """The current answer of a changelog query, at most `max_rows` rows of it."""
        if self.emits != CHANGELOG:
            raise InputError(
                f"query {self.name} only adds rows, so it has no current answer",
                hint="read its results, or create it with EMIT CHANGES",
            )

        def read() -> CurrentAnswer:
            current = self._fold(self._reader).now(max_rows)
            offset = Offset.at(self.log_id, current.place, current.watermark)
            return CurrentAnswer(current.rows, current.instant, offset, current.is_cut)

        return await self._in_thread(read)

    async def encoded(self, form: str, chunk: Chunk, encode: Callable[[Chunk], bytes]) -> bytes:
        """A chunk as bytes, encoded once for all followers with the same format."""

        async def write() -> bytes:
            return await self._in_thread(lambda: encode(chunk))

        key = (form, chunk.start, chunk.next, chunk.watermark)
        return await self.shared.get(key, write, len)

    async def work(self, encode: Callable[[], _Outcome]) -> _Outcome:
        """Run slow work on rows in a thread."""
        return await self._in_thread(encode)

    async def oldest(self) -> Offset:
        """The oldest offset whose rows are kept."""
        return Offset.at(self.log_id, await self._in_thread(lambda: self._reader.start))

    async def base(self) -> tuple[Offset, int, int] | None:
        """The start of a changelog's base, its number of rows and its instant; None: no base."""
        base = await self._in_thread(lambda: self._reader.base)
        if base is None:
            return None
        return Offset.at(self.log_id, base.start), base.rows, base.watermark - 1

    async def _chunk(self, place: Offset, max_rows: int, seen: Seen) -> Page:
        async def read() -> Page:
            return await self._in_thread(lambda: read_page(self._reader, place, max_rows, seen))

        return await self.shared.get((place, max_rows, seen), read, lambda page: page.rows.nbytes)

    async def _look(self) -> Seen:
        return await self._in_thread(self._see)

    def _see(self) -> Seen:
        """The end of the log, if it is still the same log."""
        seen = Seen.of(self._reader)
        if seen == self._last_seen:
            return seen
        try:
            is_same = LogReader.open(self._location).log_id == self.log_id
        except LogError:
            is_same = False
        if not is_same:
            raise ResultsGoneError(
                f"these results of query {self.name} are gone: it was dropped or replaced",
                hint="request the query's results again, without an offset",
            )
        self._last_seen = seen
        return seen

    async def _in_thread(self, work: Callable[[], _Outcome]) -> _Outcome:
        try:
            running = self._threads.submit(work)
        except RuntimeError:
            raise ClosedError("the server is stopping") from None
        return await asyncio.wrap_future(running)
