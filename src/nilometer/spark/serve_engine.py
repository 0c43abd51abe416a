"""Where the executors of a cluster reach the files of an engine."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from nilometer.engine.place import write_address
from nilometer.engine.serve_folder import FolderServer
from nilometer.errors import SessionError
from nilometer.spark.exchange import is_on_one_machine

PORT: Final = "spark.nilometer.driver.port"
"""The setting of the port at which executors reach the engine's files; any free one by default."""


def serve_folder(session: SparkSession, folder: Path) -> FolderServer | None:
    """Serve the folder to the executors of a cluster, which do not share it."""
    write_address(folder, None)
    if is_on_one_machine(session) or not hasattr(session, "_sc"):
        return None
    config = session.sparkContext.getConf()
    host = config.get("spark.driver.host") or socket.gethostname()
    bind, port = config.get("spark.driver.bindAddress"), config.get(PORT) or "0"
    try:
        server = FolderServer(folder, host, bind=bind, port=int(port))
    except (OSError, ValueError) as error:
        raise SessionError(
            "cannot listen for the executors of the cluster",
            detail=f"{bind or host}, port {port}: {error}",
            hint=f"set spark.driver.bindAddress, and {PORT} to a free port, or leave that out",
        ) from None
    write_address(folder, server.address)
    return server
