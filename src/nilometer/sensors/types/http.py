"""Sensors that are asked over HTTP: each JSON answer is a reading, or several."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import zlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

from nilometer.errors import InputError
from nilometer.model.options import Option, parse_size, seconds, whole, yes_or_no
from nilometer.model.reach import reach_of
from nilometer.sensors.stream_type import (
    NEW_VALUE,
    NO_VALUE,
    BadReadingError,
    Reading,
    SensorAddress,
    TryLaterError,
)
from nilometer.sensors.types.http_answer import BadAnswerError, HttpAnswer
from nilometer.sensors.types.http_client import HttpClient, Origin, shared_client
from nilometer.sensors.types.json_fields import (
    check_columns,
    field_reader,
    follow,
    parse_json,
    read_fields,
    read_path,
)
from nilometer.sensors.types.options import read_options
from nilometer.version import VERSION

_SOON: Final = 1.0
"""A new sensor is asked for the first time within this many seconds."""
_PORTS: Final = {"http": 80, "https": 443}
_REDIRECTS: Final = (301, 302, 303, 307, 308)


class HttpStatusError(Exception):
    """A sensor that answered, but not with a reading."""


def read_headers(text: str) -> dict[str, str]:
    """Headers of a request, from a JSON object."""
    try:
        headers = json.loads(text)
    except ValueError:
        headers = None
    if not isinstance(headers, dict) or not all(isinstance(one, str) for one in headers.values()):
        raise ValueError('write a JSON object of texts, such as {"X-Key": "abc"}')
    if any(c in text for text in (*headers, *headers.values()) for c in "\r\n\0"):
        raise ValueError("a header is one line")
    return headers


class _Request(NamedTuple):
    """Where to send a request, and the request without its last lines."""

    origin: Origin
    head: str


class HttpStream:
    """A URL that is requested again and again."""

    can_wait = True
    options: ClassVar = (
        Option("interval", "the time from one request to the next", seconds, 1.0),
        Option("timeout", "how long an answer may take", seconds, 10.0),
        Option("field", "the path to the readings in an answer, such as data.items", read_path),
        Option("fields", "JSON fields by column: 'temperature=t, humidity=data.h'", read_fields),
        Option("headers", "a JSON object of headers to send", read_headers),
        Option("token", "a bearer token to send", str),
        Option("max_bytes", "the maximum size of an answer", parse_size, 1 << 20),
        Option("redirects", "how many redirections are followed", whole(0, 20), 5),
        Option("private", "whether a name may resolve to a private address", yes_or_no, False),
        Option("ca", "a file of certificates to trust, in place of the system's", Path),
        Option("insecure", "whether to trust any certificate", yes_or_no, False),
    )

    def __init__(self) -> None:
        self._chosen: Mapping[str, Any] = {}
        self._url = ""
        self._sensor = ""
        self._value: Callable[[Any], Any] = lambda document: document
        self._due = 0.0
        self._phase = 0.0
        self._conditions: dict[str, str] = {}
        self._client: HttpClient | None = None
        self._requests: dict[str, _Request] = {}

    @property
    def every(self) -> float:
        """Seconds from one request to the next."""
        return float(self._chosen.get("interval", 0.0))

    async def init_stream(self, sensor: SensorAddress) -> None:
        """Choose a time for the requests that differs from that of other sensors."""
        self._chosen = read_options("http", self.options, sensor.options)
        check_columns("fields", tuple(self._chosen["fields"] or ()), sensor.columns)
        self._value = field_reader(self._chosen["fields"])
        self._url, self._sensor = sensor.address, sensor.sensor
        self._request(self._url)
        interval = max(self._chosen["interval"], 0.001)
        share = zlib.crc32(sensor.identity.encode()) / (1 << 32)
        self._phase = share * interval
        self._due = asyncio.get_running_loop().time() + share * min(interval, _SOON)
        self._client = shared_client()
        self._client.join()

    async def read_stream(self) -> Reading | list[Reading]:
        """Wait until the next request is due, and send it."""
        loop = asyncio.get_running_loop()
        if (wait := self._due - loop.time()) > 0:
            await asyncio.sleep(wait)
        try:
            async with asyncio.timeout(self._chosen["timeout"]):
                answer = await self._ask()
        except TimeoutError as error:
            raise TimeoutError(f"no answer within {self._chosen['timeout']:g} s") from error
        finally:
            self._due = self._next(loop.time())
        if answer.status == 304:
            return Reading(NO_VALUE)
        return self._readings(answer)

    async def close_stream(self) -> None:
        """Send no more requests."""
        if self._client is not None:
            self._client.leave()
            self._client = None

    def _next(self, now: float) -> float:
        """This sensor's next instant; missed ones are skipped."""
        interval: float = max(self._chosen["interval"], 0.001)
        return ((now - self._phase) // interval + 1) * interval + self._phase

    async def _ask(self) -> HttpAnswer:
        assert self._client is not None
        url = self._url
        for _ in range(self._chosen["redirects"] + 1):
            origin, head = self._request(url)
            lines = "".join(f"{name}: {value}\r\n" for name, value in self._conditions.items())
            request = f"{head}{lines}\r\n".encode("latin-1")
            try:
                answer = await self._client.get(
                    origin, request, max_bytes=self._chosen["max_bytes"]
                )
            except BadAnswerError as error:
                raise BadReadingError(str(error)) from error
            if answer.status not in _REDIRECTS or "location" not in answer.headers:
                self._check(answer)
                self._remember(answer)
                return answer
            url = self._followed(urljoin(url, answer.headers["location"]))
        raise HttpStatusError(f"more than {self._chosen['redirects']} redirections")

    def _followed(self, url: str) -> str:
        """The target of a redirect, which must be on the declared server."""
        parts, own = _split(url, self._sensor), _split(self._url, self._sensor)
        if _server(parts) != _server(own):
            raise HttpStatusError(
                f"the sensor redirects to another server, {parts.scheme}://{parts.hostname}: "
                "declare it with that address if it is right"
            )
        return url

    def _check(self, answer: HttpAnswer) -> None:
        if answer.status in (200, 304):
            return
        text = f"the sensor answered {answer.status} {answer.reason}".rstrip()
        if (after := _retry_after(answer.headers.get("retry-after", ""))) is not None:
            raise TryLaterError(text, after)
        raise HttpStatusError(text)

    def _remember(self, answer: HttpAnswer) -> None:
        """Remember what to send next time, so that the server can answer 304 Not Modified."""
        if answer.status == 200:
            pairs = (("If-None-Match", "etag"), ("If-Modified-Since", "last-modified"))
            headers = answer.headers
            self._conditions = {ask: headers[name] for ask, name in pairs if name in headers}

    def _readings(self, answer: HttpAnswer) -> Reading | list[Reading]:
        document = parse_json(answer.body)
        if (path := self._chosen["field"]) is not None:
            document = follow(document, path)
            if document is None:
                place = ".".join(map(str, path))
                raise BadReadingError(f"nothing at {place}", answer.body[:4096])
        if isinstance(document, list) and all(isinstance(one, dict) for one in document):
            if not document:
                return Reading(NO_VALUE)
            return [Reading(NEW_VALUE, self._value(one)) for one in document]
        return Reading(NEW_VALUE, self._value(document))

    def _request(self, url: str) -> _Request:
        request = self._requests.get(url)
        if request is None:
            self._requests.clear()
            request = self._requests[url] = self._make_request(url)
        return request

    def _make_request(self, url: str) -> _Request:
        parts = _split(url, self._sensor)
        is_secure = parts.scheme == "https"
        context = _context(self._chosen["ca"], self._chosen["insecure"]) if is_secure else None
        path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
        query = f"?{quote(parts.query, safe='%/?:@!$&()*+,;=~-._')}" if parts.query else ""
        headers = {
            "Host": parts.netloc.rpartition("@")[2],
            "User-Agent": f"nilometer/{VERSION}",
            "Accept": "application/json",
        }
        headers |= self._proofs(_split(self._url, self._sensor))
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        _, host, port = _server(parts)
        reach = reach_of(host, may_be_private=self._chosen["private"])
        origin = Origin(host, port, context, reach)
        return _Request(origin, f"GET {path}{query} HTTP/1.1\r\n{lines}")

    def _proofs(self, own: SplitResult) -> dict[str, str]:
        proofs: dict[str, str] = dict(self._chosen["headers"] or {})
        if (token := self._chosen["token"]) is not None:
            proofs["Authorization"] = f"Bearer {token.strip()}"
        elif own.username is not None:
            account = f"{unquote(own.username)}:{unquote(own.password or '')}"
            proofs["Authorization"] = f"Basic {base64.b64encode(account.encode()).decode()}"
        return proofs


def _split(url: str, sensor: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or any(c in url for c in "\r\n\0 "):
        raise InputError(
            f"sensor {sensor} has an address that is not a URL",
            detail=f"got {url!r}",
            hint="write http://host:port/path or https://host/path",
        )
    return parts


def _server(parts: SplitResult) -> tuple[str, str, int]:
    return parts.scheme, parts.hostname or "", parts.port or _PORTS[parts.scheme]


@lru_cache(maxsize=64)
def _context(authority: Path | None, insecure: bool) -> ssl.SSLContext:
    """Shared by many sensors, since creating it reads all certificates of the system."""
    context = ssl.create_default_context(cafile=authority)
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _retry_after(text: str) -> float | None:
    """Seconds to wait, from a number or a date."""
    if text.isdecimal():
        return float(text)
    try:
        when = parsedate_to_datetime(text).astimezone(UTC)
    except ValueError:
        return None
    return max(0.0, (when - datetime.now(UTC)).total_seconds())
