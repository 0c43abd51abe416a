"""Lets the executors of a cluster use checkpoints on the driver's own disk.

Spark keeps the state of a streaming query in the folder of its checkpoint, where all executors have
to find it. Spark comes with a client of WebHDFS, a protocol for files over HTTP, so the driver
serves these folders in that protocol. Each start of a query gets a new address: 128 random bits
that travel with Spark's tasks only. Tasks of an earlier start know an old one, which is not
answered any more. The messages are not encrypted, as Spark's own are not.
"""

from __future__ import annotations

import re
import secrets
import socket
import threading
from hashlib import blake2b
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from nilometer.errors import SessionError
from nilometer.spark.exchange import is_on_one_machine
from nilometer.spark.webhdfs import FileServer

PORT: Final = "spark.nilometer.checkpoint.port"
"""The setting of the port at which executors reach checkpoints; any free one by default."""
_ADDRESS_BYTES: Final = 16
_ADDRESS: Final = re.compile(r"webhdfs://[^\s/'\"]+/[0-9a-f]{32}")
_POLL: Final = 0.1
"""In seconds: how soon `close` is noticed."""
_SERVERS: Final[dict[str, CheckpointServer]] = {}
_LOCK: Final = threading.Lock()


class CheckpointServer:
    """Serves folders to whoever knows their addresses, until it is closed."""

    def __init__(self, host: str, *, bind: str | None = None, port: int = 0) -> None:
        """Executors connect to `host`; the server listens at `bind`, or there."""
        self._lock = threading.Lock()
        self._served: dict[Path, str] = {}
        self._folders: dict[bytes, Path] = {}
        self._http = FileServer((bind or host, port), self._folder_at)
        self._at = f"webhdfs://{host}:{self._http.server_address[1]}"
        threading.Thread(
            target=self._http.serve_forever, args=(_POLL,), name="checkpoints", daemon=True
        ).start()

    def serve(self, folder: Path) -> str:
        """Serve a folder at a new address, and no longer at the one before; returns the new one."""
        name = secrets.token_hex(_ADDRESS_BYTES)
        with self._lock:
            before = self._served.pop(folder, None)
            if before is not None:
                del self._folders[_hash(before)]
            self._served[folder] = name
            self._folders[_hash(name)] = folder
        return f"{self._at}/{name}"

    def address_of(self, folder: Path) -> str:
        """The address of a folder; a new one if it has none."""
        with self._lock:
            name = self._served.get(folder)
        return self.serve(folder) if name is None else f"{self._at}/{name}"

    def _folder_at(self, address: str) -> Path | None:
        with self._lock:
            return self._folders.get(_hash(address))

    def close(self) -> None:
        with self._lock:
            self._served.clear()
            self._folders.clear()
        self._http.shutdown()
        self._http.server_close()


def _server(session: SparkSession) -> CheckpointServer | None:
    """The server of a session's checkpoints.

    None where executors see the driver's disk, where this process is not the driver, or where
    Kerberos is in use: Spark's client would ask for a ticket there.
    """
    if is_on_one_machine(session) or not hasattr(session, "_sc") or _has_kerberos(session):
        return None
    config = session.sparkContext.getConf()
    host = config.get("spark.driver.host") or socket.gethostname()
    bind, port = config.get("spark.driver.bindAddress"), config.get(PORT) or "0"
    with _LOCK:
        name = session.sparkContext.applicationId
        if name not in _SERVERS:
            while _SERVERS:  # an application that has ended
                _SERVERS.popitem()[1].close()
            try:
                _SERVERS[name] = CheckpointServer(host, bind=bind, port=int(port))
            except (OSError, ValueError, OverflowError) as error:
                raise SessionError(
                    "cannot listen for the executors of the cluster",
                    detail=f"{bind or host}, port {port}: {error}",
                    hint=f"set spark.driver.bindAddress, and {PORT} to a free port, or leave "
                    "that out",
                ) from None
        return _SERVERS[name]


def _has_kerberos(session: SparkSession) -> bool:
    assert session._jvm is not None
    security = session._jvm.org.apache.hadoop.security
    return bool(security.UserGroupInformation.isSecurityEnabled())


def serve_checkpoint(session: SparkSession, folder: Path) -> str | None:
    """Serve a checkpoint whose query is about to start; None where its path is enough."""
    server = _server(session)
    return None if server is None else server.serve(folder)


def address_of(session: SparkSession, folder: Path) -> str:
    """Where executors find a checkpoint: its path, or its present address."""
    server = _server(session)
    return str(folder) if server is None else server.address_of(folder)


def without_addresses(text: str) -> str:
    """A text without the addresses of checkpoints."""
    return _ADDRESS.sub("the checkpoint", text)


def _hash(address: str) -> bytes:
    """What addresses are looked up by, so that the time it takes says nothing about them."""
    return blake2b(address.encode(errors="replace"), digest_size=32).digest()
