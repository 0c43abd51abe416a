"""The stream type python: any generator, but only one that this process has allowed."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from nilometer.errors import InputError
from nilometer.sensors.stream_type import END, NEW_VALUE, Reading, SensorAddress
from nilometer.sensors.types.python import MODULES, PythonStream, forget, register
from tests.patience import LONG

COLUMNS = pa.schema([("n", pa.int64()), ("t", pa.float64())])
WHEN = datetime(2026, 1, 1, tzinfo=UTC)


def at(address: str, columns: pa.Schema = COLUMNS, **options: str) -> SensorAddress:
    return SensorAddress("T", "s", address, options, columns, None, "i")


def read(address: str, columns: pa.Schema = COLUMNS) -> list[Reading]:
    async def work() -> list[Reading]:
        stream = PythonStream()
        await stream.init_stream(at(address, columns))
        values = []
        while (one := await stream.read_stream()).status is not END:
            values.append(one)
        await stream.close_stream()
        return values

    return asyncio.run(asyncio.wait_for(work(), LONG))


@pytest.fixture
def source() -> Iterator[Callable[[Callable[..., Any]], str]]:
    def add(function: Callable[..., Any]) -> str:
        register("tested", function)
        return "tested"

    yield add
    forget("tested")


def test_plain_and_async_generators(source: Callable[[Callable[..., Any]], str]) -> None:
    def plain() -> Iterator[dict[str, int]]:
        yield {"n": 1}
        yield {"n": 2}

    async def waiting(sensor: SensorAddress) -> AsyncIterator[dict[str, str]]:
        yield {"n": sensor.sensor}
        await asyncio.sleep(0)
        yield {"n": sensor.table}

    assert [one.value for one in read(source(plain))] == [{"n": 1}, {"n": 2}]
    assert [one.value for one in read(source(waiting))] == [{"n": "s"}, {"n": "T"}]


def test_pairs_are_values_with_times_unless_they_are_rows(
    source: Callable[[Callable[..., Any]], str],
) -> None:
    def pairs() -> Iterator[Any]:
        yield ({"n": 1}, WHEN)
        yield (1, 2.5)
        yield Reading(NEW_VALUE, 3, 4)

    assert [(one.value, one.time) for one in read(source(pairs))] == [
        ({"n": 1}, WHEN),
        ((1, 2.5), None),
        (3, 4),
    ]
    one_column = pa.schema([("t", pa.float64())])
    assert read(source(lambda: iter_of((1.5, WHEN))), one_column)[0][1:3] == (1.5, WHEN)


def iter_of(*values: Any) -> Iterator[Any]:
    yield from values


def test_a_failing_generator_is_reported(source: Callable[[Callable[..., Any]], str]) -> None:
    def fails() -> Iterator[int]:
        yield 1
        raise OSError("no sensor")

    with pytest.raises(OSError, match="no sensor"):
        read(source(fails))


def test_a_value_is_not_lost_when_nobody_waits(source: Callable[[Callable[..., Any]], str]) -> None:
    def slow() -> Iterator[int]:
        for number in range(3):
            time.sleep(0.05)
            yield number

    async def async_slow() -> AsyncIterator[int]:
        for number in range(3):
            await asyncio.sleep(0.05)
            yield number

    async def work() -> list[Any]:
        stream = PythonStream()
        await stream.init_stream(at("tested"))
        values: list[Any] = []
        while len(values) < 3:
            try:
                async with asyncio.timeout(0.02):
                    values.append((await stream.read_stream()).value)
            except TimeoutError:
                pass
        await stream.close_stream()
        return values

    for function in (slow, async_slow):
        source(function)
        assert asyncio.run(work()) == [0, 1, 2]


def test_statements_cannot_import_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: Callable[[Callable[..., Any]], str]
) -> None:
    (tmp_path / "own_sensors.py").write_text("def hall():\n    yield 7\nnumber = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv(MODULES, raising=False)
    with pytest.raises(InputError, match="does not allow the Python generator 'own_sensors:hall'"):
        read("own_sensors:hall")
    assert "own_sensors" not in sys.modules
    monkeypatch.setenv(MODULES, "other, own_sensor")
    with pytest.raises(InputError, match="does not allow"):
        read("own_sensors:hall")
    monkeypatch.setenv(MODULES, "other, own_sensors")
    assert [one.value for one in read("own_sensors:hall")] == [7]
    with pytest.raises(InputError, match="has no function 'number'"):
        read("own_sensors:number")
    source(lambda: 3)
    with pytest.raises(InputError, match="tested is not a generator"):
        read("tested")
    with pytest.raises(InputError, match="did you mean tested"):
        read("testd")
    sys.modules.pop("own_sensors", None)


def test_a_value_that_comes_when_its_reader_is_cancelled_is_not_lost(
    source: Callable[[Callable[..., Any]], str],
) -> None:
    """Both happen in the same turn of the loop: the reader wakes up, but only to be cancelled."""

    def numbers() -> Iterator[int]:
        yield from range(3)

    async def async_numbers() -> AsyncIterator[int]:
        for number in range(3):
            yield number

    async def work() -> list[Any]:
        stream = PythonStream()
        await stream.init_stream(at("tested"))
        values: list[Any] = []
        while len(values) < 3:
            reading = asyncio.ensure_future(stream.read_stream())
            await asyncio.sleep(0)
            assert stream._source is not None
            assert stream._source._next is not None
            stream._source._next.add_done_callback(lambda _, reading=reading: reading.cancel())
            with suppress(asyncio.CancelledError):
                values.append((await reading).value)
            values.append((await stream.read_stream()).value)
        await stream.close_stream()
        return values

    for function in (numbers, async_numbers):
        source(function)
        assert asyncio.run(work())[:3] == [0, 1, 2]
