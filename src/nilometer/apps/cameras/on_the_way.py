"""How many objects are on their way from each camera to the next: an answer that changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from threading import Lock
from typing import Final, NamedTuple

from pyspark.sql import DataFrame

from nilometer.apps.cameras.world import CAMERAS, SECOND

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
    seen = f"[RANGE {WINDOW // SECOND} SECONDS]"
    legs = "\n       UNION ALL\n       ".join(
        f"(SELECT '{a}' AS camera, obj_id FROM {a} {seen}\n"
        f"        EXCEPT SELECT '{a}', obj_id FROM {b} {seen})"
        for a, b in pairwise(CAMERAS)
    )
    return (
        f"SELECT camera, COUNT(*) AS objects\n"
        f"FROM  ({legs}) AS on_the_way\n"
        f"GROUP BY camera\n"
        f"EMIT CHANGES EVERY {EVERY // SECOND} SECOND"
    )


class OnTheWay:
    """Takes in the changes of every micro-batch; knows the current answer, and all before."""

    def __init__(self) -> None:
        self._changes: list[Change] = []
        self._lock = Lock()

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """What Spark calls with the changes of a micro-batch."""
        found = rows.selectExpr("unix_micros(_time)", "camera", "objects", "_diff").collect()
        self.add([Change(*row) for row in found])

    def add(self, changes: Iterable[Change]) -> None:
        """Take in more changes."""
        with self._lock:
            self._changes.extend(changes)

    @property
    def time(self) -> int | None:
        """The instant of the last change."""
        with self._lock:
            return max((change.time for change in self._changes), default=None)

    def current(self) -> Counts:
        """The answer after all changes so far."""
        with self._lock:
            return _counts(_fold(self._changes))

    def is_right(self, truth: Mapping[int, Counts]) -> bool:
        """Whether the answer is the true one at every instant, and nothing comes after them."""
        with self._lock:
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
