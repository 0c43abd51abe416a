"""Sensors that send lines over TCP: each line of CSV or JSON is a reading."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from nilometer.errors import InputError
from nilometer.model.options import Option, one_of, parse_size, seconds, yes_or_no
from nilometer.model.reach import connect_within, reach_of
from nilometer.sensors.stream_type import NEW_VALUE, BadReadingError, Reading, SensorAddress
from nilometer.sensors.types.json_fields import (
    check_columns,
    field_reader,
    parse_json,
    read_fields,
)
from nilometer.sensors.types.options import read_options
from nilometer.sensors.types.text_cells import CsvLines

_CHUNK: Final = 1 << 16


def read_separator(text: str) -> str:
    """One character, which may be written as \\t."""
    text = text.replace("\\t", "\t")
    if len(text) != 1:
        raise ValueError("write one character, such as ';' or '\\t'")
    return text


class LineSplitter:
    """Splits incoming bytes into lines; one longer than `max_bytes` is a bad reading."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()
        self._is_skipping = False

    def feed(self, data: bytes) -> list[bytes | BadReadingError]:
        """The lines that are complete now, without empty ones."""
        self._buffer += data
        *lines, rest = self._buffer.split(b"\n")
        self._buffer = rest
        items: list[bytes | BadReadingError] = []
        for line in lines:
            if self._is_skipping:
                self._is_skipping = False  # the end of a line that was already refused
            elif len(line) > self._max_bytes:
                items.append(self._too_long(line))
            elif line := line.rstrip(b"\r"):
                items.append(bytes(line))
        if len(self._buffer) > self._max_bytes:
            if not self._is_skipping:
                items.append(self._too_long(self._buffer))
            self._is_skipping = True
            self._buffer.clear()
        return items

    def _too_long(self, line: bytearray) -> BadReadingError:
        return BadReadingError(f"a line of more than {self._max_bytes} bytes", bytes(line[:4096]))


class TcpStream:
    """A connection to host and port that sends lines."""

    can_wait = True
    options: ClassVar = (
        Option("format", "the format of a line: csv or json", one_of("csv", "json"), "csv"),
        Option("header", "whether the first line names the columns", yes_or_no, False),
        Option("separator", "the separator between cells of CSV", read_separator, ","),
        Option("fields", "JSON fields by column: 'temperature=t, humidity=data.h'", read_fields),
        Option("max_line", "the longest line", parse_size, 1 << 16),
        Option("timeout", "how long it may take to connect", seconds, 10.0),
        Option("private", "whether a name may resolve to a private address", yes_or_no, False),
        Option("silence", "how long without a line before reconnecting", seconds),
    )

    def __init__(self) -> None:
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._lines = LineSplitter(0)
        self._silence: float | None = None
        self._value: Callable[[str], Any] = str
        self._csv: CsvLines | None = None
        self._wants_header = False

    async def init_stream(self, sensor: SensorAddress) -> None:
        """Connect."""
        chosen = read_options("tcp", self.options, sensor.options)
        check_columns("fields", tuple(chosen["fields"] or ()), sensor.columns)
        host, port = _place(sensor)
        self._lines = LineSplitter(chosen["max_line"])
        self._silence = chosen["silence"]
        self._csv = None
        if chosen["format"] == "csv":
            self._csv = CsvLines(sensor.columns, chosen["separator"])
            self._value = self._csv.read
        else:
            fields = field_reader(chosen["fields"])
            self._value = lambda line: fields(parse_json(line))
        self._wants_header = chosen["header"] and self._csv is not None
        async with asyncio.timeout(chosen["timeout"]):
            self._reader, self._writer = await connect_within(
                host,
                port,
                reach_of(host, may_be_private=chosen["private"]),
                lambda address: asyncio.open_connection(address, port),
            )

    async def read_stream(self) -> list[Reading | BadReadingError]:
        """All lines that have arrived; if there is none, waits for one."""
        assert self._reader is not None
        readings: list[Reading | BadReadingError] = []
        while not readings:
            try:
                async with asyncio.timeout(self._silence):
                    data = await self._reader.read(_CHUNK)
            except TimeoutError as error:
                raise TimeoutError(f"no line for {self._silence:g} s") from error
            if not data:
                raise ConnectionError("the sensor has closed the connection")
            readings = [one for line in self._lines.feed(data) if (one := self._read(line))]
        return readings

    async def close_stream(self) -> None:
        """Disconnect."""
        if self._writer is not None:
            self._writer.transport.abort()
            self._writer = None

    def _read(self, line: bytes | BadReadingError) -> Reading | BadReadingError | None:
        if isinstance(line, BadReadingError):
            return line
        try:
            text = line.decode()
            if self._wants_header and self._csv is not None:
                self._wants_header = False
                self._csv.header(text)
                return None
            return Reading(NEW_VALUE, self._value(text))
        except UnicodeDecodeError:
            return BadReadingError("not UTF-8", line[:4096])
        except BadReadingError as error:
            return error


def _place(sensor: SensorAddress) -> tuple[str, int]:
    try:
        parts = urlsplit(sensor.address)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if host is None or not port or parts.scheme != "tcp":
        raise InputError(
            f"sensor {sensor.sensor} has an address that names no host and port",
            detail=f"got {sensor.address!r}",
            hint="write tcp://host:port",
        )
    return host, port
