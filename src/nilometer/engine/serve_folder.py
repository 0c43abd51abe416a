"""The driver's side of `ServedPlace`: lets workers that know the key use the folder of an engine.

Only files that an engine has can be named. Every worker process has a connection, and a thread.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from nilometer.engine.at_work import AtWork
from nilometer.engine.channel import KEY_BYTES, Channel, answer_call
from nilometer.engine.folder import LocalFolder
from nilometer.engine.place import ServedAddress
from nilometer.engine.plan_set import PLANS_FILE, PlanFolder
from nilometer.engine.published import read_published
from nilometer.errors import LogError

_MOST_STRANGERS: Final = 64
"""How many connections may be in the handshake at once."""
_PAUSE: Final = 0.1
_NAME: Final = re.compile(r"\d{12}\.batch|\d{12}-[0-9a-f]{32}\.chunk")
_PLAN: Final = re.compile(r"[0-9a-f]{32}")
_LOG: Final = logging.getLogger("nilometer.engine")
_Reply = tuple[Mapping[str, Any], bytes]


class FolderServer:
    """Serves the folder of one engine until it is closed."""

    def __init__(self, folder: Path, host: str, *, bind: str | None = None, port: int = 0) -> None:
        """Workers connect to `host`; the server listens at `bind`, or there."""
        self._plans = PlanFolder(folder)
        self._key = secrets.token_bytes(KEY_BYTES)
        self._lock = threading.Lock()
        self._strangers = threading.BoundedSemaphore(_MOST_STRANGERS)
        self._buckets: dict[int, _Bucket] = {}
        self._connected: set[socket.socket] = set()
        self._closed = False
        self._listening = socket.create_server((bind or host, port), backlog=128)
        self.address = ServedAddress(host, self._listening.getsockname()[1], self._key)
        threading.Thread(target=self._accept, name="engine files", daemon=True).start()

    def close(self) -> None:
        """End all connections."""
        with self._lock:
            self._closed = True
            connected = list(self._connected)
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for one in connected:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while not self._closed:
            try:
                connected, _ = self._listening.accept()
            except OSError:  # it was closed, or there are too many files open
                if not self._closed:
                    time.sleep(_PAUSE)
                continue
            if not self._strangers.acquire(blocking=False):
                connected.close()
                continue
            with self._lock:
                self._connected.add(connected)
            threading.Thread(target=self._serve, args=(connected,), daemon=True).start()

    def _serve(self, connected: socket.socket) -> None:
        try:
            try:
                channel = answer_call(connected, self._key)
            finally:
                self._strangers.release()
            while not self._closed and (message := channel.receive()) is not None:
                self._answer(channel, *message)
        except (OSError, ValueError) as error:
            if not self._closed:
                _LOG.info("a worker's connection has ended: %s", error)
        finally:
            with self._lock:
                self._connected.discard(connected)
            connected.close()

    def _answer(self, channel: Channel, request: Mapping[str, Any], body: bytes) -> None:
        what = request.get("ask")
        if not isinstance(what, str):
            raise ValueError("a worker sent an empty request")
        if what in _NOTICES:
            with suppress(OSError):  # a full disk: it is only needed if the process dies
                _NOTICES[what](self._bucket(request), request)
            return
        try:
            head, content = self._reply(what, request, body)
        except FileNotFoundError as error:
            head, content = {"error": "missing", "message": str(error)}, b""
        except OSError as error:
            head = {"error": "system", "number": error.errno, "message": error.strerror}
            content = b""
        except LogError as error:
            head, content = {"error": "log", "message": error.message}, b""
            head = {**head, "detail": error.detail, "hint": error.hint}
        channel.send(head, [content])

    def _reply(self, what: str, request: Mapping[str, Any], body: bytes) -> _Reply:
        if what == "plan_set":
            return {}, (self._plans.folder / PLANS_FILE).read_bytes()
        if what == "plan":
            return {}, self._plans.plan(_checked(_PLAN, request.get("name")))
        if what == "published":
            return {"published": read_published(self._plans.folder, _number(request))}, b""
        if what in _REQUESTS:
            return _REQUESTS[what](self._bucket(request), request, body)
        raise ValueError("this is not a request that a worker makes")

    def _bucket(self, request: Mapping[str, Any]) -> _Bucket:
        number = _number(request)
        with self._lock:
            if number not in self._buckets:
                self._buckets[number] = _Bucket(self._plans.bucket(number))
            return self._buckets[number]


class _Bucket:
    """A bucket's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folder = LocalFolder(path)
        self.at_work = AtWork(path)
        self.lock = threading.Lock()

    def names(self, _: Mapping[str, Any], __: bytes) -> _Reply:
        return {"names": self.folder.names()}, b""

    def has(self, request: Mapping[str, Any], _: bytes) -> _Reply:
        return {"has": self.folder.has(_file(request))}, b""

    def start_of(self, request: Mapping[str, Any], _: bytes) -> _Reply:
        content, size = self.folder.start_of(_file(request), _count(request, "length"))
        return {"size": size}, content

    def read(self, request: Mapping[str, Any], _: bytes) -> _Reply:
        start, length = _count(request, "start"), _count(request, "length")
        with open(self.path / _file(request), "rb", buffering=0) as file:
            return {}, os.pread(file.fileno(), length, start)

    def create(self, request: Mapping[str, Any], body: bytes) -> _Reply:
        return {"size": self.folder.create(_file(request), [body])}, b""

    def add(self, request: Mapping[str, Any], body: bytes) -> _Reply:
        self.folder.add(_file(request), body)
        return {}, b""

    def delete(self, request: Mapping[str, Any], _: bytes) -> _Reply:
        names = request.get("names")
        if not isinstance(names, list):
            raise ValueError("a worker named no files to delete")
        self.folder.delete([_checked(_NAME, one) for one in names])
        return {}, b""

    def died(self, _: Mapping[str, Any], __: bytes) -> _Reply:
        with self.lock:
            return {"query": self.at_work.died()}, b""

    def begin(self, request: Mapping[str, Any]) -> None:
        self.at_work.begin(str(request.get("query", ""))[:64])

    def end(self, _: Mapping[str, Any]) -> None:
        self.at_work.end()

    def all_is_well(self, _: Mapping[str, Any]) -> None:
        with self.lock:
            self.at_work.all_is_well()


_REQUESTS: Final[dict[str, Callable[[_Bucket, Mapping[str, Any], bytes], _Reply]]] = {
    "names": _Bucket.names,
    "has": _Bucket.has,
    "start_of": _Bucket.start_of,
    "read": _Bucket.read,
    "create": _Bucket.create,
    "add": _Bucket.add,
    "delete": _Bucket.delete,
    "died": _Bucket.died,
}
_NOTICES: Final[dict[str, Callable[[_Bucket, Mapping[str, Any]], None]]] = {
    "begin": _Bucket.begin,
    "end": _Bucket.end,
    "all_is_well": _Bucket.all_is_well,
}


def _number(request: Mapping[str, Any]) -> int:
    return _count(request, "bucket")


def _count(request: Mapping[str, Any], name: str) -> int:
    value = request.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"a worker asked for {name} {value!r}")
    return value


def _file(request: Mapping[str, Any]) -> str:
    return _checked(_NAME, request.get("name"))


def _checked(form: re.Pattern[str], name: Any) -> str:
    if not isinstance(name, str) or not form.fullmatch(name):
        raise ValueError(f"a worker asked for the file {name!r}")
    return name
