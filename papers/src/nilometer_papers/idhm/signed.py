"""Requests signed with a secret, as deliveries to webhooks are."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from hashlib import sha256
from typing import Final, Protocol

OLDEST: Final = 300
"""Older requests, in seconds, are refused: someone may have recorded them."""


class Headers(Protocol):
    """Headers of a request, with case-insensitive names."""

    def get(self, name: str, default: str) -> str: ...


def is_genuine(secret: str, headers: Headers | Mapping[str, str], body: bytes, now: float) -> bool:
    """Whether a request was signed with the secret, and recently (`now` in seconds)."""
    timestamp = headers.get("Nilometer-Timestamp", "")
    signature = headers.get("Nilometer-Signature", "")
    expected = hmac.new(secret.encode(), timestamp.encode() + b"." + body, sha256).hexdigest()
    is_signed = hmac.compare_digest(f"v1={expected}".encode(), signature.encode())
    return is_signed and timestamp.isdecimal() and abs(now - int(timestamp)) <= OLDEST
