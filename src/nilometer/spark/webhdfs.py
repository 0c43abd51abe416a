"""Files over HTTP, as far as Spark's client of WebHDFS needs it for checkpoints.

The first name in a path is the address of a folder, which is known to few; what follows is a
file in that folder. Answers have no `Content-Type`: Spark's client would look for a library that
Spark does not bring.
"""

from __future__ import annotations

import io
import json
import logging
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO, Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

_PREFIX: Final = "/webhdfs/v1/"
_MOST_STRANGERS: Final = 64
"""How many connections may be open that have not named an address yet."""
_STRANGER_SECONDS: Final = 10.0
_PIECE: Final = 1 << 20
_LONGEST_SIZE: Final = 32
"""Bytes of the line before each piece of a body."""
_BLOCK: Final = 128 << 20
_LOG: Final = logging.getLogger("nilometer.engine")


class FileServer(ThreadingHTTPServer):
    """Serves folders by their addresses; few strangers may wait at once, and not for long."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, at: tuple[str, int], folder_at: Callable[[str], Path | None]) -> None:
        """`folder_at`: the folder that has an address, if any has."""
        self.folder_at = folder_at
        self.strangers = threading.BoundedSemaphore(_MOST_STRANGERS)
        super().__init__(at, _Connection)

    def verify_request(self, *_: Any) -> bool:
        return self.strangers.acquire(blocking=False)

    def handle_error(self, *_: Any) -> None:
        _LOG.info("an executor's connection has ended", exc_info=True)


class _Connection(BaseHTTPRequestHandler):
    """One connection, in a thread of its own."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    server: FileServer

    def setup(self) -> None:
        super().setup()
        self._is_stranger = True
        self._input = _Input(self.connection, time.monotonic() + _STRANGER_SECONDS)
        self.rfile = io.BufferedReader(self._input)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def finish(self) -> None:
        self._let_in()
        super().finish()

    def log_message(self, *_: Any) -> None:
        """Nothing is logged of requests."""

    def version_string(self) -> str:
        return "nilometer"

    def do_GET(self) -> None:
        self._answer(_GET)

    def do_PUT(self) -> None:
        self._answer(_PUT)

    def do_DELETE(self) -> None:
        self._answer(_DELETE)

    def tell(self, answer: Mapping[str, Any] | None, code: int = HTTPStatus.OK) -> None:
        """Answer with JSON, or with nothing."""
        content = b"" if answer is None else json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def tell_to_send(self) -> None:
        """Have the client send the content of a file: it asks first where."""
        self.send_response(HTTPStatus.TEMPORARY_REDIRECT)
        self.send_header("Location", f"http://{self.headers.get('Host')}{self.path}&data=true")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def send_file(self, file: Path, start: int, length: int | None) -> None:
        with open(file, "rb") as opened:
            rest = max(0, os.fstat(opened.fileno()).st_size - start)
            length = rest if length is None else min(length, rest)
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.flush()
            if length:
                self.connection.sendfile(opened, start, length)

    def take_file(self, file: Path) -> None:
        """Store what the client sends as a file; one that ends too early is not kept."""
        try:
            with open(file, "wb") as opened:
                self._copy_body(opened)
        except (OSError, ValueError):
            file.unlink(missing_ok=True)
            raise

    def _copy_body(self, opened: BinaryIO) -> None:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while size := int(self._line(), 16):
                self._copy(size, opened)
                self._line()
            self._line()
        else:
            self._copy(int(self.headers.get("Content-Length", "")), opened)

    def _line(self) -> bytes:
        return self.rfile.readline(_LONGEST_SIZE).partition(b";")[0].strip()

    def _copy(self, size: int, opened: BinaryIO) -> None:
        if size < 0:
            raise ValueError("a length is negative")
        while size:
            piece = self.rfile.read(min(size, _PIECE))
            if not piece:
                raise ConnectionError("the connection ended in the middle of a file")
            opened.write(piece)
            size -= len(piece)

    def _answer(self, known: Mapping[str, _Operation]) -> None:
        try:
            root, inside, parameters = self._asked()
            operation = known.get(parameters.get("op", "").upper())
            if operation is None:
                self._refuse(400, "java.lang.UnsupportedOperationException", "not offered")
            else:
                operation(self, root, inside, parameters)
        except PermissionError as error:
            self._refuse(403, "java.io.IOException", str(error))
        except (FileNotFoundError, NotADirectoryError) as error:
            self._refuse(404, "java.io.FileNotFoundException", str(error))
        except ConnectionError:
            self.close_connection = True
        except OSError as error:
            self._refuse(500, "java.io.IOException", str(error))
        except ValueError as error:
            self._refuse(400, "java.lang.IllegalArgumentException", str(error))

    def _refuse(self, code: int, kind: str, message: str) -> None:
        """Answer with an exception of Java; a body that was not read ends the connection."""
        self.close_connection = code != HTTPStatus.NOT_FOUND
        name = kind.rpartition(".")[2]
        about = {"exception": name, "javaClassName": kind, "message": message}
        self.tell({"RemoteException": about}, code)

    def _asked(self) -> tuple[Path, Path, dict[str, str]]:
        """The folder that is asked for, the file in it, and the parameters."""
        url = urlsplit(self.path)
        parameters = {name: values[-1] for name, values in parse_qs(url.query).items()}
        address, names = _parts(unquote(url.path).removeprefix(_PREFIX))
        root = self.server.folder_at(address)
        if root is None:
            raise PermissionError("there is no longer a checkpoint at this address")
        self._let_in()
        if not root.is_dir():
            raise FileNotFoundError("the checkpoint has been deleted")
        destination = parameters.get("destination")
        if destination is not None:
            other, places = _parts(destination.removeprefix("/"))
            if other != address:
                raise PermissionError("a file stays in its checkpoint")
            parameters["destination"] = os.path.join(root, *places)
        return root, root.joinpath(*names), parameters

    def _let_in(self) -> None:
        """The client is none of the strangers any more."""
        if self._is_stranger:
            self._is_stranger = False
            self._input.end = None
            self.connection.settimeout(None)
            self.server.strangers.release()


class _Input(io.RawIOBase):
    """What is received over a connection; TimeoutError after `end`, if there is one."""

    def __init__(self, connection: socket.socket, end: float) -> None:
        self._connection = connection
        self.end: float | None = end

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self.end is not None:
            self._connection.settimeout(max(self.end - time.monotonic(), 0.001))
        return self._connection.recv_into(buffer)


_Operation = Callable[[_Connection, Path, Path, Mapping[str, str]], None]


def _status(one: _Connection, _: Path, path: Path, __: Mapping[str, str]) -> None:
    one.tell({"FileStatus": _about(path, "")})


def _list(one: _Connection, _: Path, path: Path, __: Mapping[str, str]) -> None:
    statuses = []
    for name in sorted(os.listdir(path)) if path.is_dir() else [""]:
        with suppress(FileNotFoundError):  # deleted since
            statuses.append(_about(path / name, name))
    one.tell({"FileStatuses": {"FileStatus": statuses}})


def _open(one: _Connection, _: Path, path: Path, parameters: Mapping[str, str]) -> None:
    if path.is_dir():
        raise FileNotFoundError(f"{path.name} is a folder")
    length = parameters.get("length")
    start = _count(parameters.get("offset", "0"))
    one.send_file(path, start, None if length is None else _count(length))


def _create(one: _Connection, _: Path, path: Path, parameters: Mapping[str, str]) -> None:
    if parameters.get("data") != "true":
        one.tell_to_send()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    one.take_file(path)
    one.tell(None, HTTPStatus.CREATED)


def _make_folders(one: _Connection, _: Path, path: Path, __: Mapping[str, str]) -> None:
    path.mkdir(parents=True, exist_ok=True)
    one.tell({"boolean": True})


def _rename(one: _Connection, _: Path, path: Path, parameters: Mapping[str, str]) -> None:
    """Rename a file; one of the new name is replaced, as the local file system of Hadoop does."""
    if "destination" not in parameters:
        raise ValueError("no destination was given")
    os.replace(path, parameters["destination"])
    one.tell(None if "renameoptions" in parameters else {"boolean": True})


def _delete(one: _Connection, root: Path, path: Path, parameters: Mapping[str, str]) -> None:
    if path == root:
        raise PermissionError("a checkpoint is deleted with its query")
    there = os.path.lexists(path)
    if path.is_dir():
        if parameters.get("recursive") == "true":
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.rmdir()
    else:
        path.unlink(missing_ok=True)
    one.tell({"boolean": there})


def _do_nothing(one: _Connection, *_: Any) -> None:
    """Rights and times are those of the server's own files."""
    one.tell(None)


def _defaults(one: _Connection, *_: Any) -> None:
    sizes = {"blockSize": _BLOCK, "bytesPerChecksum": 512, "writePacketSize": 65536}
    others = {"replication": 1, "fileBufferSize": 65536, "encryptDataTransfer": False}
    defaults = {**sizes, **others, "trashInterval": 0, "checksumType": 2, "policyId": 0}
    one.tell({"FsServerDefaults": {**defaults, "keyProviderUri": ""}})


_GET: Final[dict[str, _Operation]] = {
    "GETFILESTATUS": _status,
    "LISTSTATUS": _list,
    "OPEN": _open,
    "GETSERVERDEFAULTS": _defaults,
}
_PUT: Final[dict[str, _Operation]] = {
    "CREATE": _create,
    "MKDIRS": _make_folders,
    "RENAME": _rename,
    "SETPERMISSION": _do_nothing,
    "SETTIMES": _do_nothing,
}
_DELETE: Final[dict[str, _Operation]] = {"DELETE": _delete}


def _about(path: Path, suffix: str) -> dict[str, Any]:
    stat = path.stat()
    is_folder = path.is_dir()
    return {
        "pathSuffix": suffix,
        "type": "DIRECTORY" if is_folder else "FILE",
        "length": 0 if is_folder else stat.st_size,
        "modificationTime": int(stat.st_mtime * 1000),
        "accessTime": 0,
        "blockSize": 0 if is_folder else _BLOCK,
        "replication": 0 if is_folder else 1,
        "owner": "nilometer",
        "group": "nilometer",
        "permission": "755" if is_folder else "644",
        "storagePolicy": 0,
        "fileId": stat.st_ino,
        "childrenNum": 0,
    }


def _parts(path: str) -> tuple[str, list[str]]:
    """The address in a path, and the names after it, of which none leads elsewhere."""
    address, *names = path.rstrip("/").split("/")
    if any(one in ("", ".", "..") or "\0" in one for one in names):
        raise ValueError(f"a name of this path is not allowed: {quote('/'.join(names))}")
    return address, names


def _count(text: str) -> int:
    if not text.isdecimal() or not text.isascii():
        raise ValueError(f"this is not a number of bytes: {text!r}")
    return int(text)
