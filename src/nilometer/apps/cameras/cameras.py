"""Cameras and a broker in processes of their own, started and stopped with the demo."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
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
"""Many messages may be on their way: each is acknowledged only once it is stored."""


class Cameras:
    """The process of all cameras."""

    def __init__(self, rate: int, seconds: int, by_http: str, broker: int | None, by_mqtt: str):
        given = [str(rate), str(seconds), by_http]
        given += [] if broker is None else [str(broker), by_mqtt]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "nilometer.apps.cameras.at_work", *given],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for the demo, which stops them in its turn
        )
        self.port = self._number()

    def begin(self) -> int:
        """Let the objects move; when that was, in microseconds."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self._number()

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _number(self) -> int:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SessionError("the cameras could not be started")
        return int(line)


@contextmanager
def cameras_at_work(
    rate: int, seconds: int, by_http: str, broker: int | None, by_mqtt: str
) -> Iterator[Cameras]:
    """Cameras that are ready to begin."""
    cameras = Cameras(rate, seconds, by_http, broker, by_mqtt)
    try:
        yield cameras
    finally:
        cameras.stop()


@contextmanager
def broker_at_work(folder: Path) -> Iterator[int | None]:
    """The port of an MQTT broker that runs for this demo; None where mosquitto is missing."""
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
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


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
