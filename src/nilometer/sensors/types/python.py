"""Readings from Python: any generator, plain or async, that this process has allowed.

Statements name generators but never import code: a name must have been registered here, or its
module must be listed in the environment variable NILOMETER_PYTHON_MODULES.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from importlib import import_module
from queue import SimpleQueue
from threading import Thread
from typing import Any, ClassVar, Final, TypeAlias

from nilometer.errors import InputError
from nilometer.model.names import nearest
from nilometer.model.options import Option, seconds
from nilometer.sensors.stream_type import END, NEW_VALUE, NO_VALUE, Reading, SensorAddress
from nilometer.sensors.types.options import read_options

MODULES: Final = "NILOMETER_PYTHON_MODULES"
Source: TypeAlias = Callable[..., Any]
_REGISTERED: dict[str, Source] = {}


def register(name: str, function: Source) -> None:
    """Allow a generator function under a name, as the address of sensors of type python.

    It takes no argument, or the `SensorAddress`, and yields readings: a mapping, a sequence, a
    single value, one of these with its time as a pair, or a `Reading`.
    """
    _REGISTERED[name] = function


def forget(name: str) -> None:
    """Stop allowing a name."""
    _REGISTERED.pop(name, None)


class PythonStream:
    """A generator, read as fast as its readings are stored."""

    can_wait = True
    options: ClassVar = (Option("interval", "the time from one value to the next", seconds, 0.0),)

    def __init__(self) -> None:
        self._source: _AsyncSource | _PlainSource | None = None
        self._columns = 0
        self._interval = 0.0

    async def init_stream(self, sensor: SensorAddress) -> None:
        """Call the function."""
        self._interval = read_options("python", self.options, sensor.options)["interval"]
        function = _find(sensor)
        generator = function(sensor) if _takes_sensor(function) else function()
        self._columns = len(sensor.columns)
        if isinstance(generator, AsyncGenerator):
            self._source = _AsyncSource(generator)
        elif isinstance(generator, Generator):
            self._source = _PlainSource(generator)
        else:
            raise InputError(
                f"{sensor.address} is not a generator",
                detail=f"it returned a {type(generator).__name__}",
                hint="write a function, plain or async, that yields readings",
            )

    async def read_stream(self) -> Reading:
        """The next value that the generator yields."""
        assert self._source is not None
        if self._interval:
            await asyncio.sleep(self._interval)
        is_end, value = await self._source.next()
        if is_end:
            return Reading(END)
        if isinstance(value, Reading):
            return value
        if value is None:
            await asyncio.sleep(0)
            return Reading(NO_VALUE)
        if isinstance(value, tuple) and len(value) == 2 and self._is_timed(value):
            return Reading(NEW_VALUE, value[0], value[1])
        return Reading(NEW_VALUE, value)

    async def close_stream(self) -> None:
        """Close the generator, unless it is running: then it is left alone."""
        if self._source is not None:
            await self._source.close()

    def _is_timed(self, value: tuple[Any, Any]) -> bool:
        """Whether a pair is a value and its time, not a row of two columns."""
        return self._columns != 2 or isinstance(value[0], Mapping | tuple | list)


class _AsyncSource:
    """An async generator; a value whose reader was cancelled is not lost."""

    def __init__(self, generator: AsyncGenerator[Any, None]) -> None:
        self._generator = generator
        self._next: asyncio.Task[tuple[bool, Any]] | None = None

    async def next(self) -> tuple[bool, Any]:
        if self._next is None:
            self._next = asyncio.ensure_future(self._advance())
        await _settled(self._next)
        done, self._next = self._next, None
        return done.result()

    async def close(self) -> None:
        if self._next is not None:
            self._next.cancel()
            await asyncio.gather(self._next, return_exceptions=True)
        await self._generator.aclose()

    async def _advance(self) -> tuple[bool, Any]:
        try:
            return False, await anext(self._generator)
        except StopAsyncIteration:
            return True, None


class _PlainSource:
    """A plain generator in its own thread, since it may block forever."""

    def __init__(self, generator: Generator[Any, None, None]) -> None:
        self._generator = generator
        self._loop = asyncio.get_running_loop()
        self._asked: SimpleQueue[asyncio.Future[tuple[bool, Any]] | None] = SimpleQueue()
        self._next: asyncio.Future[tuple[bool, Any]] | None = None
        Thread(target=self._run, name="nilometer-python", daemon=True).start()

    async def next(self) -> tuple[bool, Any]:
        if self._next is None:
            self._next = self._loop.create_future()
            self._asked.put(self._next)
        await _settled(self._next)
        done, self._next = self._next, None
        return done.result()

    async def close(self) -> None:
        self._asked.put(None)

    def _run(self) -> None:
        while (waiting := self._asked.get()) is not None:
            try:
                outcome: tuple[bool, Any] | Exception = (False, next(self._generator))
            except StopIteration:
                outcome = (True, None)
            except Exception as error:  # passed to the reader
                outcome = error
            try:
                self._loop.call_soon_threadsafe(_settle, waiting, outcome)
            except RuntimeError:
                break  # the loop is gone
        self._generator.close()


async def _settled(waiting: asyncio.Future[Any]) -> None:
    """Wait until there is a result or an error; a cancelled waiter has taken neither."""
    await asyncio.wait([waiting])


def _settle(
    waiting: asyncio.Future[tuple[bool, Any]], outcome: tuple[bool, Any] | Exception
) -> None:
    if waiting.done():
        return
    if isinstance(outcome, Exception):
        waiting.set_exception(outcome)
    else:
        waiting.set_result(outcome)


def _find(sensor: SensorAddress) -> Source:
    name = sensor.address
    if (source := _REGISTERED.get(name)) is not None:
        return source
    module, colon, attribute = name.partition(":")
    allowed = [one.strip() for one in os.environ.get(MODULES, "").split(",") if one.strip()]
    if not colon or not any(module == one or module.startswith(f"{one}.") for one in allowed):
        raise InputError(
            f"this process does not allow the Python generator {name!r}",
            detail=f"registered: {', '.join(sorted(_REGISTERED)) or 'none'}; "
            f"{MODULES}: {', '.join(allowed) or 'empty'}",
            hint=nearest(name, _REGISTERED)
            or f"register it in this process, or list its module in {MODULES}",
        )
    function = getattr(import_module(module), attribute, None)
    if not callable(function):
        raise InputError(f"module {module} has no function {attribute!r}")
    return function  # type: ignore[no-any-return]


def _takes_sensor(function: Source) -> bool:
    return any(
        one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
        for one in inspect.signature(function).parameters.values()
    )
