"""How far each stream of a query has come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nilometer.model.time import FOREVER

NEVER: Final = -FOREVER
"""The watermark of a stream that has not spoken yet: earlier than every instant."""


@dataclass(frozen=True, slots=True)
class StreamClock:
    """How a stream's watermark follows its timestamps (microseconds)."""

    lateness: int = 0
    """How much earlier than its largest timestamp a stream may still bring tuples."""
    idle: int | None = None
    """After how long a silence the stream follows the others; None: never."""
    ended: bool = False
    """All tuples are there: the watermark lies beyond every instant."""


class Watermarks:
    """The watermark of every stream: no tuple before it is accepted any more.

    A watermark never goes back. Times of day (`now`) come from the micro-batch, not from a
    clock, so a replay decides the same.
    """

    def __init__(self, clocks: Sequence[StreamClock]) -> None:
        self._clocks = tuple(clocks)
        self.marks = [FOREVER if clock.ended else NEVER for clock in clocks]
        self._heard: list[int | None] = [None] * len(clocks)

    def advance(self, largest: Sequence[int | None], now: int | None = None) -> None:
        """Take in a micro-batch: the largest timestamp of each stream in it, and its time."""
        for i, (clock, time) in enumerate(zip(self._clocks, largest, strict=True)):
            if time is not None:
                self.marks[i] = max(self.marks[i], time - clock.lateness)
            if time is not None or self._heard[i] is None:
                self._heard[i] = now
        if now is not None:
            self._follow_the_speaking(now)

    def _follow_the_speaking(self, now: int) -> None:
        silent = [self._is_silent(i, now) for i in range(len(self.marks))]
        speaking = [
            mark
            for mark, clock, quiet in zip(self.marks, self._clocks, silent, strict=True)
            if not quiet and not clock.ended
        ]
        if not speaking:
            return
        for i, quiet in enumerate(silent):
            if quiet:
                self.marks[i] = max(self.marks[i], min(speaking))

    def _is_silent(self, i: int, now: int) -> bool:
        idle, heard = self._clocks[i].idle, self._heard[i]
        return idle is not None and heard is not None and now - heard >= idle

    def snapshot(self) -> dict[str, object]:
        """What `restore` needs."""
        return {"marks": list(self.marks), "heard": list(self._heard)}

    def restore(self, snapshot: dict[str, list[int]]) -> None:
        """Continue where a snapshot was taken."""
        self.marks = list(snapshot["marks"])
        self._heard = list(snapshot["heard"])
