"""Nobody can take the server's threads from others, by statements or by looking."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from nilometer.errors import ClosedError, LimitError
from nilometer.log.layout import TIMESTAMP, LogLayout
from nilometer.log.options import LogOptions
from nilometer.log.reader import LogReader
from nilometer.log.seen import Seen
from nilometer.log.writer import LogWriter
from nilometer.server.fair_threads import FairThreads, works_for
from nilometer.server.results import query_results
from nilometer.server.results.chunk import Page
from nilometer.server.results.offset import Offset
from nilometer.server.results.read_page import read_page
from nilometer.server.results.stored_results import StoredResults
from nilometer.server.settings import ServerSettings
from tests.patience import LONG, until, wait_for
from tests.served import served

RESULTS = pa.schema([("_time", TIMESTAMP), ("k", pa.int64())])


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def submit(threads: FairThreads, who: str, work: Callable[[], Any]) -> Future[Any]:
    def run() -> Future[Any]:
        works_for(who)
        return threads.submit(work)

    return contextvars.copy_context().run(run)


def test_one_asker_never_has_all_threads(gate: threading.Event) -> None:
    threads = FairThreads(3, "t", 100)
    own = [submit(threads, "a", lambda: gate.wait(LONG)) for _ in range(50)]
    assert submit(threads, "b", lambda: 7).result(LONG) == 7
    assert not any(one.done() for one in own)
    gate.set()
    assert all(one.result(LONG) for one in own)
    threads.close()


def test_askers_take_turns(gate: threading.Event) -> None:
    threads, order = FairThreads(1, "t", 100), list[str]()
    first = submit(threads, "", lambda: gate.wait(LONG))
    waiting = [submit(threads, who, lambda who=who: order.append(who)) for who in "aaaabbc"]
    gate.set()
    for one in (first, *waiting):
        one.result(LONG)
    assert order == list("abcabaa")
    threads.close()


def test_what_waits_is_bounded_for_each(gate: threading.Event) -> None:
    threads = FairThreads(2, "t", 3)
    running = submit(threads, "a", lambda: gate.wait(LONG))
    wait_for(lambda: threads._running["a"] == 1)
    waiting = [submit(threads, "a", lambda: 1) for _ in range(3)]
    with pytest.raises(LimitError, match="3 requests of one token wait already"):
        submit(threads, "a", lambda: 1)
    assert submit(threads, "b", lambda: 2).result(LONG) == 2
    gate.set()
    assert running.result(LONG)
    assert [one.result(LONG) for one in waiting] == [1, 1, 1]
    threads.close()


def test_what_waits_when_it_closes_is_reported(gate: threading.Event) -> None:
    threads = FairThreads(2, "t", 10)
    submit(threads, "a", lambda: gate.wait(LONG))
    wait_for(lambda: threads._running["a"] == 1)
    waiting = submit(threads, "a", lambda: 1)
    threads.close()
    with pytest.raises(ClosedError, match="the server is stopping"):
        waiting.result(LONG)


def test_who_looks_a_lot_keeps_nobody_from_looking(
    tmp_path: Path, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(tmp_path, ServerSettings(max_requests_each=10)) as server:
        began = list[bool]()

        def slow() -> list[Any]:
            began.append(True)
            gate.wait(LONG)
            return []

        monkeypatch.setattr(server.database, "streams", slow, raising=False)

        async def many() -> tuple[list[int], int]:
            own = [
                asyncio.create_task(server.ask_async("GET", "/streams", "write")) for _ in range(20)
            ]
            await until(lambda: sum(one.done() for one in own) == 7)
            assert len(began) == 3
            other = asyncio.create_task(server.ask_async("GET", "/queries", "read"))
            status = (await other).status_code
            gate.set()
            return sorted([(await one).status_code for one in own]), status

        assert asyncio.run(many()) == ([200] * 13 + [429] * 7, 200)


def test_who_reads_many_results_keeps_nobody_from_theirs(
    tmp_path: Path, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Path(tmp_path)
    writer = LogWriter.open(str(home / "q"), LogLayout(RESULTS, "_time"), LogOptions())
    writer.append(pa.RecordBatch.from_pylist([{"_time": 1, "k": n} for n in range(100)], RESULTS))
    writer.close()
    stored, read, began = StoredResults(lambda name: str(home / name)), read_page, list[str]()

    def slow(reader: LogReader, place: Offset, limit: int, seen: Seen) -> Page:
        if limit > 50:
            began.append("a")
            gate.wait(LONG)
        return read(reader, place, limit, seen)

    monkeypatch.setattr(query_results, "read_page", slow)

    async def page(who: str, limit: int) -> int:
        works_for(who)
        results = stored.of("q")
        return len((await results.page(await results.oldest(), limit)).rows)

    async def many() -> None:
        own = [asyncio.create_task(page("a", 51 + n)) for n in range(20)]
        await until(lambda: len(began) == 3)
        assert await asyncio.create_task(page("b", 5)) == 5
        assert not any(one.done() for one in own)
        gate.set()
        assert await asyncio.gather(*own) == [51 + n for n in range(20)]

    asyncio.run(many())
    stored.close()
