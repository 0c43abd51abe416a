"""How many objects are on their way from each camera to the next: an answer that changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import pyarrow as pa

from nilometer.apps.cameras.declare import HALL, YARD
from nilometer.apps.cameras.world import CAMERAS, SECOND
from nilometer.log.reader import LogReader

WINDOW: Final = 4 * SECOND
"""Longer than any object takes to the next camera."""
EVERY: Final = SECOND

Counts = dict[str, int]
"""Objects on their way, by the camera that has seen them; those without any are left out."""


class Change(NamedTuple):
    """From an instant (microseconds) on there are `copies` more of a row; or, negative, fewer."""

    time: int
    camera: str
    objects: int
    copies: int


def statement() -> str:
    """Objects that a camera has seen within the window and the next one has not."""
    legs = "\n       UNION ALL\n       ".join(
        f"(SELECT '{name}' AS camera, {_seen(i)}\n        EXCEPT SELECT '{name}', {_seen(i + 1)})"
        for i, name in enumerate(CAMERAS[:-1], 1)
    )
    return (
        f"SELECT camera, COUNT(*) AS objects\n"
        f"FROM  ({legs}) AS legs\n"
        f"GROUP BY camera\n"
        f"EMIT CHANGES EVERY {EVERY // SECOND} SECOND"
    )


def _seen(camera: int) -> str:
    table = HALL if camera <= 2 else YARD
    return f"seen.obj_id FROM {table} [RANGE {WINDOW // SECOND} SECONDS] WHERE camera = {camera}"


class OnTheWay:
    """Follows the log of the query's changes; knows the current answer, and all before."""

    def __init__(self, location: str | None = None) -> None:
        self._changes: list[Change] = []
        self._log = None if location is None else LogReader.open(location)
        self._read = None if self._log is None else self._log.start

    def look(self) -> None:
        """Take in the changes that the log has got since the last look."""
        if self._log is None or self._read is None:
            return
        for frame in self._log.read(self._read, self._log.end):
            self._read = frame.end
            rows = frame.rows.to_pydict()
            times = frame.rows.column("_time").cast(pa.int64()).to_pylist()
            found = zip(times, rows["camera"], rows["objects"], rows["_diff"], strict=True)
            self.add([Change(*row) for row in found])

    def add(self, changes: Iterable[Change]) -> None:
        """Take in more changes."""
        self._changes.extend(changes)

    @property
    def time(self) -> int | None:
        """The instant of the last change."""
        return max((change.time for change in self._changes), default=None)

    def current(self) -> Counts:
        """The answer after all changes so far."""
        return _counts(_fold(self._changes))

    def is_right(self, truth: Mapping[int, Counts]) -> bool:
        """Whether the answer is the true one at every instant, and nothing comes after them."""
        self.look()
        changes = sorted(self._changes)
        held: Counter[tuple[str, int]] = Counter()
        for instant, expected in sorted(truth.items()):
            until = [change for change in changes if change.time <= instant]
            changes = changes[len(until) :]
            held = _fold(until, held)
            if held != Counter(expected.items()):
                return False
        return not changes


def _fold(
    changes: list[Change], before: Counter[tuple[str, int]] | None = None
) -> Counter[tuple[str, int]]:
    """How often each row holds; none is left at zero."""
    held = Counter(before or {})
    for change in changes:
        held[change.camera, change.objects] += change.copies
    return Counter({row: copies for row, copies in held.items() if copies})


def _counts(held: Counter[tuple[str, int]]) -> Counts:
    return dict(sorted(held))
