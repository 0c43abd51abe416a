"""Delivery keys in the log: each with its sensor's number, the last of each within reach.

A log returns its newest keys, of whichever sensors. A sensor that was quiet for a long time would
not find its own among them, and would deliver again what is stored: so the last key of every sensor
is appended again after many others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

_NUMBER: Final = 4
REPEAT_AFTER: Final = 4_000
"""Fewer than the keys that a log is certain to return."""


class SensorKeys:
    """The newest keys of a log, by sensor."""

    def __init__(self, recent: Iterable[bytes], limit: int) -> None:
        """`recent`: what the log returns, newest last; `limit`: how many are kept here."""
        self._limit = limit
        self._newest: deque[bytes] = deque()
        self._of_sensor: dict[bytes, deque[bytes]] = {}
        self._since_repeat = 0
        self._note(recent)

    @staticmethod
    def spell(number: int, key: bytes) -> bytes:
        """A key as the log keeps it."""
        return number.to_bytes(_NUMBER, "big") + key

    @staticmethod
    def sensor_of(key: bytes) -> bytes:
        """The sensor's part of a key as the log keeps it."""
        return key[:_NUMBER]

    def delivered(self, number: int) -> frozenset[bytes]:
        """The keys of a sensor that may be delivered again; safe to call from any thread."""
        keys = self._of_sensor.get(number.to_bytes(_NUMBER, "big"), ())
        return frozenset(list(keys))

    def appended(self, keys: Sequence[bytes]) -> None:
        """Note that these have been appended to the log."""
        self._note(keys)
        self._since_repeat += len(keys)

    def repeats(self) -> list[bytes]:
        """The keys to append again now; usually none."""
        if self._since_repeat < REPEAT_AFTER:
            return []
        return [number + keys[-1] for number, keys in self._of_sensor.items()]

    def repeated(self) -> None:
        """Note that the repeats have been appended."""
        self._since_repeat = 0

    def _note(self, keys: Iterable[bytes]) -> None:
        for one in keys:
            self._newest.append(one)
            self._of_sensor.setdefault(one[:_NUMBER], deque()).append(one[_NUMBER:])
        while len(self._newest) > self._limit:
            of_sensor = self._of_sensor[self._newest.popleft()[:_NUMBER]]
            if len(of_sensor) > 1:
                of_sensor.popleft()
