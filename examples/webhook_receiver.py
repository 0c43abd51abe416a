"""Receives the results of a query as signed requests, and prints each of them once.

    python examples/webhook_receiver.py 8700 "a long secret"

    CREATE DELIVERY alarms FROM hot TO webhook
    WITH (url = 'http://127.0.0.1:8700/', secret = 'a long secret')

A request may come again: whoever stores what it brings stores the ids with it, in one transaction.
This example keeps them in memory.
"""

from __future__ import annotations

import hmac
import json
import sys
import time
from collections.abc import Callable
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

OLDEST = 300
"""Older requests, in seconds, are refused: somebody may have recorded them."""
LARGEST = 16 << 20


def is_genuine(secret: str, timestamp: str, body: bytes, signature: str, now: float) -> bool:
    """Whether a request was signed with the secret, not long ago."""
    signed = timestamp.encode() + b"." + body
    expected = "v1=" + hmac.new(secret.encode(), signed, sha256).hexdigest()
    is_signed = hmac.compare_digest(expected.encode(), signature.encode())
    return is_signed and abs(now - int(timestamp)) <= OLDEST


def make_handler(secret: str, take: Callable[[dict], None]) -> type[BaseHTTPRequestHandler]:
    """A handler of requests that gives every chunk once to `take`."""
    seen: set[str] = set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(self._receive())
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _receive(self) -> int:
            length = int(self.headers.get("Content-Length", 0))
            if length > LARGEST:
                return 413
            body = self.rfile.read(length)
            timestamp = self.headers.get("Nilometer-Timestamp", "0")
            signature = self.headers.get("Nilometer-Signature", "")
            if not is_genuine(secret, timestamp, body, signature, time.time()):
                return 401
            chunk = json.loads(body)
            if chunk["id"] not in seen:
                take(chunk)
                seen.add(chunk["id"])
            return 204

        def log_message(self, *_: object) -> None:
            """Say nothing of requests."""

    return Handler


def print_rows(chunk: dict) -> None:
    for row in chunk["rows"]:
        print(json.dumps(row), flush=True)  # noqa: T201


def main() -> None:
    port, secret = int(sys.argv[1]), sys.argv[2]
    ThreadingHTTPServer(("127.0.0.1", port), make_handler(secret, print_rows)).serve_forever()


if __name__ == "__main__":
    main()
