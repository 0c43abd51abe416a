"""The sensors of a demo in a separate process, started and stopped with it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from nilometer.errors import SessionError

_PATIENCE: Final = 10.0


class SensorProcess:
    """A module that prints its port, waits for a line, prints when it started, and then works.

    It ends when its input does.
    """

    def __init__(self, module: str, arguments: Sequence[str]) -> None:
        self._name = module
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for the demo, which then stops them
        )
        self.port = self._number()

    def begin(self) -> int:
        """Start the simulation; return when that was, in microseconds."""
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
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _number(self) -> int:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SessionError("the sensors could not be started", detail=self._name)
        return int(line)


@contextmanager
def sensors_at_work(module: str, arguments: Sequence[str]) -> Iterator[SensorProcess]:
    """Start sensors that are ready to begin."""
    sensors = SensorProcess(module, arguments)
    try:
        yield sensors
    finally:
        sensors.stop()
