"""Receivers of deliveries for tests: a webhook that behaves as told, results to deliver."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from nilometer.deliveries.delivery import Delivery, DeliverySettings
from nilometer.deliveries.unit import Chunk, ChunkSize, UnitSetting
from nilometer.log.options import Fsync, LogOptions
from nilometer.log.writer import LogWriter
from nilometer.model.time import FOREVER
from tests.unit.log_samples import LAYOUT, rows_from

QUICK = DeliverySettings(look_every=0.01, first_wait=0.01, longest_wait=0.05, stop_within=2.0)


@dataclass
class Post:
    """A request that was received."""

    headers: dict[str, str]
    body: bytes

    @property
    def content(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.body)
        return content

    @property
    def numbers(self) -> list[int]:
        return [row["k"] for row in self.content["rows"]]


@dataclass
class Receiver:
    """The requests to a webhook, and what it answers."""

    url: str = ""
    posts: list[Post] = field(default_factory=list)
    answer: Callable[[Post], tuple[int, dict[str, str], bytes]] = lambda _: (204, {}, b"")

    @property
    def numbers(self) -> list[int]:
        return [number for post in list(self.posts) for number in post.numbers]


@contextmanager
def receiver() -> Iterator[Receiver]:
    """A webhook on a free port of the loopback interface."""
    made = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            body = self.rfile.read(length)
            if len(body) < length:  # the sender was killed halfway
                self.close_connection = True
                return
            post = Post(dict(self.headers.items()), body)
            made.posts.append(post)
            status, headers, text = made.answer(post)
            try:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text)
            except OSError:
                self.close_connection = True

        def do_GET(self) -> None:
            raise AssertionError("nothing is ever fetched")

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    made.url = f"http://127.0.0.1:{server.server_port}/in?key=hidden"
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Results:
    """The result log of a query, with consecutive numbers."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.location = str(folder / "q")
        self._options = LogOptions(**{"history": FOREVER, "fsync": Fsync.NEVER, **options})
        self.rows = 0
        self.append(0)

    def append(self, count: int) -> None:
        with LogWriter.open(self.location, LAYOUT, self._options) as log:
            self.rows = log.end.row
            log.append(rows_from(self.rows, count) if count else None, watermark=self.rows)
            self.rows += count

    def drop_oldest(self) -> None:
        with LogWriter.open(self.location, LAYOUT, self._options) as log:
            log.drop_oldest()


def setting(folder: Path, find: Callable[[str], Any] = str, **options: Any) -> UnitSetting:
    return UnitSetting("d", "q", options, [folder / "deliveries"], find)


class Into:
    """A unit that passes chunks to a function."""

    def __init__(self, take: Callable[[Chunk], None]) -> None:
        self._take = take

    def deliver(self, chunk: Chunk) -> None:
        self._take(chunk)

    def close(self) -> None: ...


@contextmanager
def delivering(
    results: Results,
    make_unit: Callable[[], Any],
    *,
    name: str = "d",
    size: ChunkSize | None = None,
    settings: DeliverySettings = QUICK,
    failed: Callable[[str], None] = lambda _: None,
) -> Iterator[Delivery]:
    chunk = size or ChunkSize(rows=10)
    made = Delivery(name, "q", results.location, chunk, make_unit, failed, settings=settings)
    made.start()
    try:
        yield made
    finally:
        made.stop()
