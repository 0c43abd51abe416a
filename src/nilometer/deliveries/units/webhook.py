"""webhook: chunks of results as signed POST requests.

A receiver answers 2xx once it has stored a chunk. After any other answer, or none, the same chunk
is sent again with the same id; only 410 (gone) ends the delivery.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from time import monotonic
from typing import ClassVar, Final
from urllib.parse import urlsplit

import httpx

from nilometer.deliveries.json_rows import chunk_text, row_bytes
from nilometer.deliveries.unit import Chunk, ReceiverError, ReceiverGoneError, UnitSetting
from nilometer.log.clock import now_micros
from nilometer.model.options import Option, OptionError, seconds, yes_or_no
from nilometer.model.reach import Reach, addresses_within, reach_of
from nilometer.version import VERSION

ID_HEADER: Final = "Nilometer-Id"
TIME_HEADER: Final = "Nilometer-Timestamp"
SIGNATURE_HEADER: Final = "Nilometer-Signature"
logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs URLs, which may contain keys
_PORTS: Final = {"http": 80, "https": 443}
_GONE: Final = 410
_BUSY: Final = (429, 503)
_REFUSED_WAIT: Final = 30.0
"""A receiver that refuses a chunk will not accept it a second later."""
_LONGEST_WAIT: Final = 3600.0
_ANSWER: Final = 2048
"""At most this many bytes of an answer are read."""
_ANSWER_SECONDS: Final = 5.0
"""At most this long they are waited for."""
_SHOWN: Final = 120


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """The signature of a request: it proves the origin to anyone who knows the secret.

    >>> sign("secret", "1767225600", b"{}")[:15]
    'v1=fa7eaa06bf97'
    """
    signed = timestamp.encode() + b"." + body
    return f"v1={hmac.new(secret.encode(), signed, sha256).hexdigest()}"


class WebhookUnit:
    """Posts to a URL; redirects are not followed, certificates are checked."""

    row_bytes = staticmethod(row_bytes)
    options: ClassVar = (
        Option("url", "where to post, http:// or https://", str, is_secret=True),
        Option("secret", "the secret with which requests are signed", str, is_secret=True),
        Option("private", "whether a name may resolve to a private address", yes_or_no, False),
        Option("timeout", "how long each step of a request may take", seconds, 10.0),
    )

    def __init__(self, setting: UnitSetting, clock: Callable[[], int] = now_micros) -> None:
        self._url = httpx.URL(setting.options["url"])
        self._reach = _reach(setting)
        self._secret = setting.options["secret"]
        self._clock = clock
        self._client = httpx.Client(
            timeout=setting.options["timeout"], follow_redirects=False, trust_env=False
        )

    @classmethod
    def check(cls, setting: UnitSetting) -> None:
        """Refuse an invalid URL, and a signature without a secret."""
        url = setting.options["url"]
        hint = "write WITH (url = 'https://host/path', secret = '…')"
        if url is None:
            raise OptionError("a webhook needs a url", hint=hint, option="url")
        try:
            httpx.URL(url)
            parts = urlsplit(url)
            is_usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        except (ValueError, httpx.InvalidURL):
            is_usable = False
        if not is_usable:
            raise OptionError("the url cannot be posted to", hint=hint, option="url")
        _reach(setting)
        if not setting.options["secret"]:
            raise OptionError(
                "a webhook needs a secret",
                detail="requests are signed with it, so that receivers can trust them",
                hint=hint,
                option="secret",
            )

    def deliver(self, chunk: Chunk) -> None:
        """Post a chunk."""
        body = chunk_text(chunk).encode()
        timestamp = str(self._clock() // 1_000_000)
        headers = {
            "Host": self._url.netloc.decode("ascii"),
            "Content-Type": "application/json",
            "User-Agent": f"nilometer/{VERSION}",
            ID_HEADER: chunk.id,
            TIME_HEADER: timestamp,
            SIGNATURE_HEADER: sign(self._secret, timestamp, body),
        }
        try:
            self._post(body, headers)
        except httpx.TimeoutException as error:
            raise ReceiverError("the receiver did not answer in time") from error
        except (httpx.HTTPError, OSError) as error:
            raise ReceiverError(f"the receiver cannot be reached: {error}") from error

    def _post(self, body: bytes, headers: dict[str, str]) -> None:
        """Post to the first reachable address of the host, among those that may be contacted."""
        host = self._url.raw_host.decode("ascii")
        port = self._url.port or _PORTS[self._url.scheme]
        *others, last = addresses_within(host, port, self._reach)
        for address in others:
            with suppress(httpx.ConnectError, httpx.ConnectTimeout):
                return self._post_to(address, body, headers)
        return self._post_to(last, body, headers)

    def _post_to(self, address: str, body: bytes, headers: dict[str, str]) -> None:
        """Post to this address only; the receiver must prove that it has the host's name."""
        with self._client.stream(
            "POST",
            self._url.copy_with(host=address),
            content=body,
            headers=headers,
            extensions={"sni_hostname": self._url.raw_host.decode("ascii")},
        ) as answer:
            self._judge(answer)

    def close(self) -> None:
        self._client.close()

    @staticmethod
    def _judge(answer: httpx.Response) -> None:
        if answer.is_success:
            return
        message = f"the receiver answered {answer.status_code}{_answer_text(answer)}"
        if answer.status_code == _GONE:
            raise ReceiverGoneError(message)
        after = _REFUSED_WAIT if answer.is_client_error else 0.0
        if answer.status_code in _BUSY:
            after = _seconds(answer.headers.get("Retry-After", ""))
        raise ReceiverError(message, after)


def _reach(setting: UnitSetting) -> Reach:
    """The declared restrictions on the receiver's host."""
    host = httpx.URL(setting.options["url"]).raw_host.decode("ascii")
    return reach_of(host, may_be_private=setting.options["private"])


def _answer_text(answer: httpx.Response) -> str:
    """The beginning of an answer's text, in one line."""
    content, until = b"", monotonic() + _ANSWER_SECONDS
    for piece in answer.iter_raw():
        content += piece
        if len(content) >= _ANSWER or monotonic() > until:
            break
    text = " ".join(content[:_SHOWN].decode(errors="replace").split())
    return f": {text}" if text else ""


def _seconds(text: str) -> float:
    """The wait that Retry-After requests, within reason."""
    return min(float(text), _LONGEST_WAIT) if text.strip().isdecimal() else 0.0
