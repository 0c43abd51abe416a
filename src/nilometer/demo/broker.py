"""An MQTT broker in a separate process, for a demo."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from nilometer.errors import SessionError

_PATIENCE: Final = 10.0
_BROKER: Final = """\
listener {} 127.0.0.1
allow_anonymous true
max_queued_messages 0
max_inflight_messages 1000
"""
"""Many messages may be in flight: each is acknowledged only once it is stored."""


@contextmanager
def broker_at_work(folder: Path) -> Iterator[int | None]:
    """The port of an MQTT broker that runs for this demo; None if mosquitto is missing."""
    program = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/sbin")
    if program is None:
        yield None
        return
    port = _free_port()
    config = folder / "mosquitto.conf"
    config.write_text(_BROKER.format(port))
    process = subprocess.Popen(
        [program, "-c", str(config)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with ExitStack() as stack:
        stack.callback(process.wait)
        stack.callback(process.terminate)
        _wait_for(port)
        yield port


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int) -> None:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise SessionError("the MQTT broker does not answer")
