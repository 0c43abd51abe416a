"""Messages between the driver and workers on other machines, which both prove that they know a key.

The key travels with Spark's tasks, and never over this connection. Every message has a code that
only the two ends can make, and that differs for each direction and place in the sequence: nobody
in between can add, change, repeat or reorder messages. They are not encrypted: whoever needs that
encrypts the network, as for Spark's own connections.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any, Final

_HELLO: Final = b"NiEngine"
_NONCE: Final = 32
_CODE: Final = 32
_SIZES: Final = struct.Struct("<IQ")
_MOST_HEAD: Final = 64 << 20
_MOST_BODY: Final = 4 << 30
HANDSHAKE_SECONDS: Final = 10.0
KEY_BYTES: Final = 32


class Channel:
    """One end of a connection; used by one thread."""

    def __init__(self, connected: socket.socket, sends: bytes, receives: bytes) -> None:
        self._socket = connected
        self._sends, self._receives = _Codes(sends), _Codes(receives)

    def send(self, head: Mapping[str, Any], body: Sequence[bytes] = ()) -> None:
        """Send a message: JSON values, and bytes."""
        encoded = json.dumps(head, separators=(",", ":")).encode()
        parts = [_SIZES.pack(len(encoded), sum(map(len, body))), encoded, *body]
        self._socket.sendall(b"".join([*parts, self._sends.code(parts)]))

    def receive(self) -> tuple[dict[str, Any], bytes] | None:
        """The next message; None once the other end has closed the connection."""
        sizes = _read(self._socket, _SIZES.size)
        if not sizes:
            return None
        if len(sizes) != _SIZES.size:
            raise ConnectionError("the connection of the engine ended in the middle of a message")
        head, body = _SIZES.unpack(sizes)
        if head > _MOST_HEAD or body > _MOST_BODY:
            raise ConnectionError("a message of the engine is too large")
        content = _read(self._socket, head + body + _CODE)
        if len(content) != head + body + _CODE:
            raise ConnectionError("the connection of the engine ended in the middle of a message")
        encoded, rest, code = content[:head], content[head:-_CODE], content[-_CODE:]
        if not hmac.compare_digest(self._receives.code([sizes, encoded, rest]), code):
            raise ConnectionError("a message of the engine was altered in transit")
        values: dict[str, Any] = json.loads(encoded)
        return values, rest

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class _Codes:
    """The codes of the messages in one direction."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._number = 0

    def code(self, parts: Sequence[bytes]) -> bytes:
        mac = blake2b(self._number.to_bytes(8, "little"), key=self._key, digest_size=_CODE)
        for one in parts:
            mac.update(one)
        self._number += 1
        return mac.digest()


def call(address: tuple[str, int], key: bytes, timeout: float) -> Channel:
    """Connect to a server that knows the key; raises ConnectionError otherwise."""
    connected = socket.create_connection(address, timeout)
    try:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        own = secrets.token_bytes(_NONCE)
        connected.sendall(_HELLO + own)
        answer = _read(connected, _NONCE + _CODE)
        nonces = own + answer[:_NONCE]
        if not hmac.compare_digest(answer[_NONCE:], _derived(key, b"server", nonces)):
            raise ConnectionError("the server of the engine's files does not have its key")
        connected.sendall(_derived(key, b"client", nonces))
        return Channel(connected, _derived(key, b"up", nonces), _derived(key, b"down", nonces))
    except BaseException:
        connected.close()
        raise


def answer_call(connected: socket.socket, key: bytes) -> Channel:
    """Let somebody in who knows the key; raises ConnectionError otherwise, or after ten seconds."""
    end = time.monotonic() + HANDSHAKE_SECONDS
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    hello = _read(connected, len(_HELLO) + _NONCE, end)
    if len(hello) != len(_HELLO) + _NONCE or not hello.startswith(_HELLO):
        raise ConnectionError("a connection is not that of a worker of the engine")
    own = secrets.token_bytes(_NONCE)
    nonces = hello[len(_HELLO) :] + own
    connected.sendall(own + _derived(key, b"server", nonces))
    if not hmac.compare_digest(_read(connected, _CODE, end), _derived(key, b"client", nonces)):
        raise ConnectionError("a connection was made without the key of the engine")
    connected.settimeout(None)
    return Channel(connected, _derived(key, b"down", nonces), _derived(key, b"up", nonces))


def _derived(key: bytes, purpose: bytes, nonces: bytes) -> bytes:
    return blake2b(purpose + b"\0" + nonces, key=key, digest_size=_CODE).digest()


def _read(connected: socket.socket, length: int, end: float | None = None) -> bytes:
    """Read so many bytes, or fewer if the connection ends; TimeoutError after `end`, if given."""
    parts, missing = [], length
    while missing:
        if end is not None:
            connected.settimeout(max(end - time.monotonic(), 0.001))
        part = connected.recv(min(missing, 1 << 20))
        if not part:
            break
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)
