"""Watermarks: how far each stream of a query has advanced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nilometer.model.time import FOREVER

NEVER: Final = -FOREVER
"""The watermark of a stream without any row yet: earlier than every instant."""


@dataclass(frozen=True, slots=True)
class StreamClock:
    """How a stream's watermark follows its timestamps (microseconds)."""

    lateness: int = 0
    """How much earlier than its largest timestamp tuples of the stream may still arrive."""
    idle: int | None = None
    """After how long without tuples the stream follows the others; None: never."""
    ended: bool = False
    """All tuples have arrived: the watermark lies beyond every instant."""
    by_arrival: bool = False
    """Times are arrival times: the watermark is the time of the micro-batch."""
    senders: int = 0
    """If the tuples come from another stage: how many buckets that has."""
    stated: bool = False
    """The watermark comes with the tuples: lateness and idle do not apply here."""

    @property
    def needs_now(self) -> bool:
        """Whether the watermark depends on the time of micro-batches."""
        return not self.stated and (self.idle is not None or self.by_arrival)


class Watermarks:
    """The watermark of every stream: no tuple before it is accepted any more.

    A watermark never goes back. Times of day (`now`) come from the micro-batch, not from a
    clock, so a replay decides the same.
    """

    def __init__(self, clocks: Sequence[StreamClock]) -> None:
        self._clocks = tuple(clocks)
        self.marks = [FOREVER if clock.ended else NEVER for clock in clocks]
        self._heard: list[int | None] = [None] * len(clocks)
        self._frontiers = [[NEVER] * clock.senders for clock in clocks]

    def advance(
        self,
        largest: Sequence[int | None],
        now: int | None = None,
        frontiers: Mapping[tuple[int, int], int] | None = None,
        stated: Sequence[int | None] | None = None,
    ) -> None:
        """Advance by a micro-batch: the largest timestamp of each stream in it, and its time.

        The frontiers, by stream and sender, are the instants before which senders are done;
        `stated` holds the watermarks that came with the streams.
        """
        for (stream, sender), frontier in (frontiers or {}).items():
            self._frontiers[stream][sender] = frontier
        for i, (clock, time) in enumerate(zip(self._clocks, largest, strict=True)):
            if clock.stated:
                mark = stated[i] if stated is not None else None
                self.marks[i] = max(self.marks[i], NEVER if mark is None else mark)
            elif clock.senders:
                self.marks[i] = max(self.marks[i], min(self._frontiers[i]))
            elif clock.by_arrival and now is not None:
                self.marks[i] = max(self.marks[i], now)
            elif time is not None:
                self.marks[i] = max(self.marks[i], time - clock.lateness)
            if time is not None or self._heard[i] is None:
                self._heard[i] = now
        if now is not None:
            self._follow_active_streams(now)

    def _follow_active_streams(self, now: int) -> None:
        silent = [self._is_silent(i, now) for i in range(len(self.marks))]
        active = [
            mark
            for mark, clock, quiet in zip(self.marks, self._clocks, silent, strict=True)
            if not quiet and not clock.ended and not clock.senders
        ]
        if not active:
            return
        for i, quiet in enumerate(silent):
            if quiet:
                self.marks[i] = max(self.marks[i], min(active))

    def _is_silent(self, i: int, now: int) -> bool:
        clock, heard = self._clocks[i], self._heard[i]
        if clock.stated or clock.idle is None or heard is None:
            return False
        return now - heard >= clock.idle

    def snapshot(self) -> dict[str, object]:
        """What `restore` needs."""
        return {
            "marks": list(self.marks),
            "heard": list(self._heard),
            "frontiers": [list(own) for own in self._frontiers],
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue where a snapshot was taken."""
        self.marks = list(snapshot["marks"])
        self._heard = list(snapshot["heard"])
        self._frontiers = [list(own) for own in snapshot["frontiers"]]

    def take_over(self, old: Sequence[Watermarks]) -> None:
        """Continue where other buckets are, which have all heard the same."""
        self.marks = [min(marks) for marks in zip(*(one.marks for one in old), strict=True)]
        self._heard = list(old[0]._heard)
        for i, clock in enumerate(self._clocks):
            reached = min((min(one._frontiers[i], default=NEVER) for one in old), default=NEVER)
            self._frontiers[i] = [reached] * clock.senders
