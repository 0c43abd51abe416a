"""The stream type http, against sensors of all sorts."""

from __future__ import annotations

import asyncio
import resource
import ssl
from collections.abc import Awaitable, Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nilometer.errors import InputError
from nilometer.sensors.stream_type import (
    NO_VALUE,
    BadReadingError,
    Reading,
    SensorAddress,
    TryLaterError,
)
from nilometer.sensors.types.http import HttpStatusError, HttpStream
from nilometer.sensors.types.http_answer import AnswerReader, BadAnswerError
from tests.mosquitto import make_certificates
from tests.patience import LONG
from tests.sensors_at_work import HttpSensors

COLUMNS = pa.schema([("reading", pa.int64()), ("temperature", pa.float64())])


@pytest.fixture(scope="module")
def sensors() -> Iterator[HttpSensors]:
    with HttpSensors() as running:
        yield running


OPEN: list[HttpStream] = []


async def opened(address: str, identity: str = "t/1", **options: str) -> HttpStream:
    stream = HttpStream()
    chosen = {"interval": "10ms", **options}
    await stream.init_stream(SensorAddress("T", "s", address, chosen, COLUMNS, None, identity))
    OPEN.append(stream)
    return stream


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def all_closed() -> None:
        try:
            await asyncio.wait_for(work(), LONG)
        finally:
            while OPEN:
                await OPEN.pop().close_stream()
            await asyncio.sleep(0)

    asyncio.run(all_closed())


def read(address: str, times: int = 1, **options: str) -> list[Any]:
    """What some readings bring, errors among them."""
    answers: list[Any] = []

    async def work() -> None:
        stream = await opened(address, **options)
        for _ in range(times):
            try:
                answers.append(await stream.read_stream())
            except Exception as error:
                answers.append(error)

    run(work)
    return answers


def test_every_answer_is_a_reading(sensors: HttpSensors) -> None:
    answers = read(sensors.url(1), 3)
    assert [one.value["reading"] for one in answers] == [0, 1, 2]
    assert sensors.counts()["/sensor/1"] == 3


def test_readings_come_at_the_interval(sensors: HttpSensors) -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        stream = await opened(sensors.url(2), interval="100ms")
        await stream.read_stream()
        began = loop.time()
        for _ in range(3):
            await stream.read_stream()
        assert loop.time() - began >= 0.19

    run(work)


def test_sensors_do_not_ask_at_the_same_instant(sensors: HttpSensors) -> None:
    async def work() -> None:
        streams = [await opened(sensors.url(0), f"t/{n}", interval="10s") for n in range(200)]
        phases = sorted(one._phase for one in streams)
        assert max(later - sooner for sooner, later in pairwise(phases)) < 1
        now = asyncio.get_running_loop().time()
        assert all(now - 1 < one._due <= now + 1 for one in streams)

    run(work)


def test_nothing_new_is_no_value(sensors: HttpSensors) -> None:
    answers = read(sensors.url("tagged"), 6)
    assert [one.value["reading"] if one.status != NO_VALUE else None for one in answers] == [
        0, None, None, 1, None, None,
    ]  # fmt: skip


def test_lists_and_paths(sensors: HttpSensors) -> None:
    (answer,) = read(sensors.url("list"))
    assert [one.value for one in answer] == [{"reading": 0}, {"reading": 1}]
    (answer,) = read(sensors.url("nested"), field="data.items", fields="reading=r.n")
    assert [one.value for one in answer] == [{"reading": 0}]
    (answer,) = read(sensors.url("nested"), field="data.nothing")
    assert isinstance(answer, BadReadingError)
    assert answer.reason == "nothing at data.nothing"


def test_chunks_redirections_and_tokens(sensors: HttpSensors) -> None:
    assert read(sensors.url("chunked"))[0].value == {"reading": 0}
    assert read(sensors.url("redirect"))[0].value["sensor"] == 77
    (answer,) = read(sensors.url("circle"), redirects="3")
    assert str(answer) == "more than 3 redirections"
    assert sensors.counts()["/circle"] == 4
    (answer,) = read(sensors.url("secret"))
    assert str(answer) == "the sensor answered 401 Unauthorized"
    assert read(sensors.url("secret"), token="open")[0].value == {"reading": 1}
    headers = '{"Authorization": "Bearer open"}'
    assert read(sensors.url("secret"), headers=headers)[0].value == {"reading": 2}


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1:{other}/secret",
        "http://169.254.169.254/latest/meta-data/",
        "https://127.0.0.1:{own}/secret",
        "//localhost:{own}/",
        "http://[::1]:{own}/",
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "http://127.0.0.1:{own}@elsewhere.example/",
    ],
)
def test_a_redirection_to_another_server_is_not_followed(sensors: HttpSensors, target: str) -> None:
    before = sensors.counts().get("/secret", 0)

    async def work() -> None:
        asked = 0

        async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal asked
            asked += 1
            await reader.readuntil(b"\r\n\r\n")
            place = target.format(own=port, other=urlsplit(sensors.url("x")).port).encode()
            writer.write(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: " + place)
            writer.write(b"\r\n\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(redirect, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        stream = await opened(f"http://127.0.0.1:{port}/", token="open")
        with pytest.raises((HttpStatusError, InputError), match="another server|not a URL"):
            await stream.read_stream()
        assert asked == 1
        assert sensors.counts().get("/secret", 0) == before
        server.close()

    run(work)


def test_failures_are_reported(sensors: HttpSensors) -> None:
    fails, again = read(sensors.url("fails"), 2)
    assert isinstance(fails, HttpStatusError)
    assert str(fails) == str(again) == "the sensor answered 500 Internal Server Error"
    (busy,) = read(sensors.url("busy"))
    assert isinstance(busy, TryLaterError)
    assert busy.after == 7
    (hangs,) = read(sensors.url("hangs"), timeout="50ms")
    assert isinstance(hangs, TimeoutError)
    assert str(hangs) == "no answer within 0.05 s"
    (malformed,) = read(sensors.url("malformed"))
    assert isinstance(malformed, BadReadingError)
    assert malformed.payload == b'{"reading": '
    (refused,) = read("http://127.0.0.1:1/")
    assert isinstance(refused, OSError)


def test_an_endless_answer_takes_no_memory(sensors: HttpSensors) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    huge, good = read(sensors.url("huge"), 2, max_bytes="64KB")
    assert isinstance(huge, BadReadingError)
    assert huge.reason == "an answer of more than 65536 bytes"
    assert isinstance(good, BadReadingError)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000


def test_connections_are_kept_and_made_anew(sensors: HttpSensors) -> None:
    async def work() -> None:
        connections = 0

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal connections
            connections += 1
            for _ in range(3):
                await reader.readuntil(b"\r\n\r\n")
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n7")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        stream = await opened(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
        for _ in range(9):
            assert (await stream.read_stream()).value == 7  # type: ignore[union-attr]
        assert connections == 3
        server.close()

    run(work)


def test_https(tmp_path: Path) -> None:
    tls = make_certificates(tmp_path)

    async def work() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.0 200 OK\r\n\r\n[1, 2.5]")
            await writer.drain()
            writer.close()

        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(tls.certificate, tls.key)
        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        for options in ({"ca": str(tls.authority)}, {"insecure": "yes"}):
            reading = await (await opened(url, **options)).read_stream()
            assert isinstance(reading, Reading)
            assert reading.value == [1, 2.5]
        with pytest.raises(ssl.SSLError):
            await (await opened(url)).read_stream()
        server.close()

    run(work)


@pytest.mark.parametrize(
    ("address", "options", "text"),
    [
        ("ftp://h/", {}, "sensor s has an address that is not a URL"),
        ("http:///x", {}, "sensor s has an address that is not a URL"),
        ("http://h:99999/", {}, "sensor s has an address that is not a URL"),
        ("http://h/\r\nX: y", {}, "sensor s has an address that is not a URL"),
        ("http://h/", {"headers": "[]"}, "option headers of stream type http cannot be"),
        ("http://h/", {"headers": '{"A": "b\\r\\nc"}'}, "option headers of stream type http"),
        ("http://h/", {"interval": "fast"}, "option interval of stream type http cannot be 'fast'"),
        ("http://h/", {"fields": "x=y"}, "option fields names a column 'x'"),
    ],
)
def test_refusals(address: str, options: dict[str, str], text: str) -> None:
    with pytest.raises(InputError, match=text):
        run(lambda: opened(address, **options))  # type: ignore[arg-type, return-value]


@given(
    body=st.binary(max_size=200),
    cuts=st.lists(st.integers(0, 400), max_size=6),
    chunks=st.lists(st.integers(1, 50), max_size=5),
    is_chunked=st.booleans(),
)
def test_answers_do_not_depend_on_how_they_are_cut(
    body: bytes, cuts: list[int], chunks: list[int], is_chunked: bool
) -> None:
    head = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"
    if is_chunked:
        text, rest = b"", body
        for length in chunks:
            part, rest = rest[:length], rest[length:]
            text += b"%x;x=y\r\n%b\r\n" % (len(part), part) if part else b""
        text += b"%x\r\n%b\r\n" % (len(rest), rest) if rest else b""
        answer = head + b"Transfer-Encoding: chunked\r\n\r\n" + text + b"0\r\nA: b\r\n\r\n"
    else:
        answer = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    places = sorted({0, len(answer), *(one for one in cuts if one < len(answer))})
    reader = AnswerReader(200)
    responses = [reader.feed(answer[start:end]) for start, end in pairwise(places)]
    assert responses[-1] is not None
    assert (responses[-1].body, responses[-1].status) == (body, 200)
    assert not any(responses[:-1])


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.limit(20)
@pytest.mark.parametrize(
    "answer",
    [
        CHUNKED + b"-6\r\n",
        CHUNKED + b"-9\r\n" + b"x" * 100,
        CHUNKED + b"+3\r\nabc\r\n",
        CHUNKED + b"0x3\r\nabc\r\n",
        CHUNKED + b"1_0\r\n" + b"x" * 16 + b"\r\n",
        CHUNKED + b"0\r\n" + b"A: b\r\n" * 20_000,
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nETag: x\nHost: other\r\nContent-Length: 0\r\n\r\n",
    ],
    ids=[
        *("no end", "less than nothing", "a sign", "a prefix", "a line below", "endless trailers"),
        *("a negative length", "a length of 5000 digits", "a header of two lines"),
    ],
)
def test_an_answer_that_is_not_http_is_refused_at_once(answer: bytes) -> None:
    with pytest.raises(BadAnswerError):
        AnswerReader(1 << 20).feed(answer)
