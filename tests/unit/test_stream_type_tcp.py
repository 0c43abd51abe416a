"""The stream type tcp: lines as readings, whatever comes over the wire."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.errors import InputError
from nilometer.sensors.stream_type import BadReadingError, SensorAddress
from nilometer.sensors.types.tcp import LineSplitter, TcpStream
from tests.patience import LONG
from tests.sensors_at_work import TcpSensors

COLUMNS = pa.schema([("n", pa.int64()), ("t", pa.float64()), ("room", pa.string())])


def read(address: str, **options: str) -> tuple[list[Any], Exception]:
    """All readings up to the error that ends them."""

    async def work() -> tuple[list[Any], Exception]:
        stream = TcpStream()
        await stream.init_stream(SensorAddress("T", "s", address, options, COLUMNS, None, "i"))
        readings: list[Any] = []
        while True:
            try:
                readings += await stream.read_stream()
            except Exception as error:
                await stream.close_stream()
                await asyncio.sleep(0)
                return readings, error

    return asyncio.run(asyncio.wait_for(work(), LONG))


def test_lines_of_csv() -> None:
    with TcpSensors('1,20.5,hall\r\n\n2,,"a, ""b"""\n3,1\nx,1,y\n') as sensors:
        readings, error = read(sensors.url)
    assert isinstance(error, ConnectionError)
    assert str(error) == "the sensor has closed the connection"
    assert [one.value for one in readings if not isinstance(one, BadReadingError)] == [
        {"n": 1, "t": 20.5, "room": "hall"},
        {"n": 2, "t": None, "room": 'a, "b"'},
        {"n": "x", "t": 1.0, "room": "y"},
    ]
    assert readings[2].reason == "a line of 2 cells where 3 were expected"


def test_a_header_and_another_separator() -> None:
    with TcpSensors("room;n;other\nhall;7;z\n") as sensors:
        readings, _ = read(sensors.url, header="yes", separator=";")
    assert [one.value for one in readings] == [{"room": "hall", "n": 7, "other": "z"}]


def test_lines_of_json_and_a_silent_sensor() -> None:
    with TcpSensors('{"n": 1, "x": {"t": 2}}\n{oops\n', stay=True) as sensors:
        readings, error = read(sensors.url, format="json", fields="n=n, t=x.t", silence="200ms")
    assert readings[0].value == {"n": 1, "t": 2}
    assert readings[1].reason.startswith("malformed JSON")
    assert str(error) == "no line for 0.2 s"


def test_an_endless_line_is_refused_once() -> None:
    with TcpSensors("1" * 100_000 + "\n2,2,b\n") as sensors:
        readings, _ = read(sensors.url, max_line="1KB")
    assert readings[0].reason == "a line of more than 1024 bytes"
    assert len(readings) == 2
    assert readings[1].value == {"n": 2, "t": 2.0, "room": "b"}


@given(
    lines=st.lists(st.binary(max_size=12).filter(lambda one: not set(one) & {10, 13})),
    cuts=st.lists(st.integers(0, 200)),
)
def test_lines_do_not_depend_on_how_they_are_cut(lines: list[bytes], cuts: list[int]) -> None:
    text = b"".join(line + b"\n" for line in lines)
    places = sorted({0, len(text), *(one for one in cuts if one < len(text))})
    splitter = LineSplitter(8)
    pieces: list[bytes | None] = []
    for start, end in zip(places, [*places[1:], len(text)], strict=True):
        for one in splitter.feed(text[start:end]):
            pieces.append(None if isinstance(one, BadReadingError) else one)
    assert pieces == [line if len(line) <= 8 else None for line in lines if line]


@pytest.mark.parametrize("address", ["host:1", "tcp://host", "udp://host:1", "tcp://h:99999"])
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(InputError, match="names no host and port"):
        read(address)
