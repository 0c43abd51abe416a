"""How clients reach a server: address, token, timeouts, certificates."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from nilometer.client.calls import Call
from nilometer.client.following import SILENCE
from nilometer.client.replies import Reply
from nilometer.errors import InputError, UnreachableError

CONNECT_WITHIN: Final = 10.0


def http_options(
    url: str, token: str | None, timeout: float, verify: bool | str | ssl.SSLContext
) -> dict[str, Any]:
    """The arguments of an httpx client for a server; redirects are not followed.

    `verify`: False accepts any certificate, a path names a file of trusted ones.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(
            "this is not the address of a server",
            detail=f"got {url!r}",
            hint="write it as http://127.0.0.1:8642 or https://…",
        )
    if isinstance(verify, str):
        verify = ssl.create_default_context(cafile=verify)
    return {
        "base_url": url.rstrip("/"),
        "headers": {"Authorization": f"Bearer {token}"} if token else {},
        "timeout": httpx.Timeout(timeout, connect=min(timeout, CONNECT_WITHIN)),
        "verify": verify,
        "follow_redirects": False,
    }


def request_of(call: Call[Any]) -> dict[str, Any]:
    """A call as the arguments of an httpx request."""
    request: dict[str, Any] = {
        "method": call.method,
        "url": call.path,
        "params": dict(call.params),
        "headers": dict(call.headers),
    }
    if call.body is not None:
        request["json"] = {key: value for key, value in call.body.items() if value is not None}
    return request


def listening_timeout() -> httpx.Timeout:
    """The timeout for connections on which something arrives at least every few seconds."""
    return httpx.Timeout(SILENCE, connect=CONNECT_WITHIN)


def cut_off(response: httpx.Response) -> None:
    """End a reply that another thread reads, so that it stops waiting for more."""
    stream = response.extensions.get("network_stream")
    sock = None if stream is None else stream.get_extra_info("socket")
    if isinstance(sock, socket.socket):
        with suppress(OSError):
            # Not SSLSocket's own shutdown, which takes away from the reader what it reads with.
            socket.socket.shutdown(sock, socket.SHUT_RDWR)


def reply_of(response: httpx.Response, content: bytes) -> Reply:
    headers: Mapping[str, str] = {key.lower(): value for key, value in response.headers.items()}
    return Reply(response.status_code, headers, content)


def unreachable(error: Exception, url: object) -> UnreachableError:
    """A failure of the connection, as an error for the user."""
    what = str(error) or type(error).__name__
    if "CERTIFICATE_VERIFY_FAILED" in what:
        return UnreachableError(
            "the certificate of the server cannot be verified",
            detail=f"{url}: {what}",
            hint="name a file with the certificates to be trusted: --ca, or verify= in Python",
        )
    return UnreachableError(
        "the server cannot be reached",
        detail=f"{url}: {what}",
        hint="is it running, and is this its address? nilometer serve starts one",
    )
