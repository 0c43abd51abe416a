"""A listener that speaks PostgreSQL's protocol, in a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from nilometer.server.pg.listener import PgListener
from nilometer.server.service import Service
from nilometer.server.tokens import Tokens
from tests.patience import LONG


@contextmanager
def listening(service: Service, tokens: Tokens) -> Iterator[int]:
    """Listen; returns the port."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, loop).result(LONG)

    place = socket.create_server(("127.0.0.1", 0))
    listener = PgListener(service, tokens, None)
    run(listener.start(place))
    try:
        yield int(place.getsockname()[1])
    finally:
        run(listener.close())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(LONG)
        loop.close()
