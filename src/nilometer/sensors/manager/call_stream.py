"""Calls the functions of a stream type: `async` ones in the loop, plain ones in its own thread."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from nilometer.sensors.stream_type import StreamType


class StreamCalls:
    """One object of a stream type; a plain function that hangs blocks only this sensor."""

    def __init__(self, stream: StreamType) -> None:
        self.stream = stream
        self._thread: _CallThread | None = None
        self._unfinished: tuple[str, asyncio.Future[Any]] | None = None

    def is_async(self, name: str) -> bool:
        return inspect.iscoroutinefunction(getattr(self.stream, name))

    async def call(self, name: str, *arguments: Any) -> Any:
        """Call a function of the stream; a plain one continues if the caller is cancelled."""
        function = getattr(self.stream, name)
        if self.is_async(name):
            return await function(*arguments)
        if self._thread is None:
            self._thread = _CallThread(asyncio.get_running_loop(), f"sensor {name}")
        future = self._thread.call(lambda: function(*arguments))
        self._unfinished = (name, future)
        try:
            return await asyncio.shield(future)
        finally:
            if future.done():
                self._unfinished = None

    async def last_result(self, timeout: float) -> tuple[str, Any] | None:
        """The function that was still running when its caller was cancelled, and its result."""
        if self._unfinished is None:
            return None
        (name, future), self._unfinished = self._unfinished, None
        done, _ = await asyncio.wait([future], timeout=timeout)
        if not done:
            self.let_go()  # it hangs: later calls get another thread
            return None
        return None if future.exception() is not None else (name, future.result())

    def let_go(self) -> None:
        """End the thread once its current call has returned."""
        if self._thread is not None:
            self._thread.end()
            self._thread = None


def _note_error(future: asyncio.Future[Any]) -> None:
    if not future.cancelled():
        future.exception()


class _CallThread:
    """A thread that runs calls one after another; a daemon, so that no process waits for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self._loop = loop
        self._calls: SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]] | None] = (
            SimpleQueue()
        )
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def call(self, function: Callable[[], Any]) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self._loop.create_future()
        future.add_done_callback(_note_error)  # possibly nobody awaits it any more
        self._calls.put((function, future))
        return future

    def end(self) -> None:
        self._calls.put(None)

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            function, future = call
            result, error = None, None
            try:
                result = function()
            except Exception as problem:  # passed to the caller
                error = problem
            try:
                self._loop.call_soon_threadsafe(_settle, future, result, error)
            except RuntimeError:
                return  # the loop has been closed: nobody is waiting any more


def _settle(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
