"""Statements that take too long hold up nobody but whoever asked for them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from nilometer.errors import ClosedError, LimitError, TimeLimitError
from nilometer.server import threads as module
from nilometer.server.settings import ServerSettings
from nilometer.server.threads import Threads
from tests.patience import LONG, until
from tests.served import served


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    monkeypatch.setattr(module, "_GRACE_SECONDS", 0.0)
    event = threading.Event()
    yield event
    event.set()


def test_who_asked_is_told_in_time_whatever_the_statement_does(gate: threading.Event) -> None:
    async def ask() -> None:
        threads = Threads(8, 0.1, 100)
        for work in (threads.select, threads.plan):
            with pytest.raises(TimeLimitError, match="took too long"):
                await work(lambda: gate.wait(LONG))
        assert threads.statements_taken == 1  # it runs still
        assert await threads.change(lambda: 7) == 7
        assert await threads.look(lambda: 8) == 8
        gate.set()
        await until(lambda: not threads.statements_taken)
        threads._within = LONG
        assert await threads.select(lambda: 9) == 9
        threads.close()
        with pytest.raises(ClosedError):
            await threads.select(lambda: 9)
        assert threads.statements_taken == 0

    asyncio.run(ask())


def test_who_waits_in_vain_is_told_to_come_again(
    gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask() -> None:
        threads = Threads(5, LONG, 100)
        began: list[bool] = []

        def work() -> None:
            began.append(True)
            gate.wait(LONG)

        asked = [asyncio.create_task(threads.select(work)) for _ in range(6)]
        await until(lambda: len(began) == 4)  # as many as there are threads
        loop = asyncio.get_running_loop()
        later = loop.time() + 2 * LONG
        monkeypatch.setattr(loop, "time", lambda: later)
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        kinds = [type(one) for one in outcomes]
        assert kinds.count(TimeLimitError) == 4
        assert kinds.count(LimitError) == 2  # one has waited, for one there was no room
        gate.set()
        threads.close()

    # Some releases of uvicorn make uvloop the usual loop, which does not ask its `time`.
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        runner.run(ask())


def test_a_large_answer_is_refused(tmp_path: Path) -> None:
    with served(tmp_path, ServerSettings(max_answer_bytes=1000)) as server:
        server.database.answer = pa.table({"v": ["x" * 2000]})
        answer = server.sql("SELECT v FROM T")
        assert answer.status_code == 413
        assert answer.json()["error"]["message"] == "the answer is too large"
        server.database.answer = pa.table({"v": ["x"]})
        assert server.sql("SELECT v FROM T").status_code == 200
