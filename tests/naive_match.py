"""A naive MATCH_RECOGNIZE: backtracking over a list of rows, in the order of preference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
Path = tuple[tuple[str, int], ...]
"""The variable and the position of every row of a match."""
Value = Callable[[Path, Sequence[Row]], Any]
Part = tuple[Any, ...]
"""("var", name), ("not", name), ("all", parts), ("any", parts), ("times", part, n, m, greedy)"""


class UnknownYetError(Exception):
    """The match depends on later rows."""


@dataclass(frozen=True)
class NaiveMatch:
    """The match from one row on, and when it is known."""

    path: Path | None
    known_at: int


@dataclass(frozen=True)
class NaiveMatcher:
    pattern: Part
    conditions: dict[str, Value]
    within: int | None
    skip: str
    """"past", "next", "first X" or "last X"."""
    free: bool
    """Whether attempts from different rows are independent."""
    ahead: int = 0

    def matches(self, rows: Sequence[Row], ended: bool) -> Iterator[tuple[Path, int]]:
        """All matches in the rows of a partition, in order, and when each is known."""
        start, latest = 0, -1
        while start < len(rows):
            attempt = self._first_known(rows, start, ended)
            if attempt is None and not self.free:
                return
            following = start + 1
            if attempt is not None:
                latest = attempt.known_at if self.free else max(latest, attempt.known_at)
                if attempt.path is not None:
                    yield attempt.path, latest
                    following = self._following(attempt.path, start)
            start = following

    def _following(self, path: Path, start: int) -> int:
        if self.skip == "past":
            return path[-1][1] + 1
        if self.skip == "next":
            return start + 1
        kind, name = self.skip.split()
        places = [place for variable, place in path if variable == name] or [start]
        return max(places[0] if kind == "first" else places[-1], start + 1)

    def _first_known(self, rows: Sequence[Row], start: int, ended: bool) -> NaiveMatch | None:
        """The match from a row, at the first instant at which it is known."""
        until = None if self.within is None else rows[start]["t"] + self.within
        instants = {row["t"] for row in rows[start:]} | ({until} if until is not None else set())
        for now in sorted(instants):
            known = [row for row in rows if row["t"] <= now]
            try:
                path = self._attempt(known, start, until, until is not None and now >= until)
            except UnknownYetError:
                continue
            return NaiveMatch(path, now)
        if not ended:
            return None
        looked: list[int] = []
        path = self._attempt(rows, start, until, True, looked)
        return NaiveMatch(path, max(looked))

    def _attempt(
        self,
        rows: Sequence[Row],
        start: int,
        until: int | None,
        over: bool,
        looked: list[int] | None = None,
    ) -> Path | None:
        """The match in these rows; `over`: no more come; `looked` collects the times looked at."""

        def see(place: int) -> bool:
            """Whether there is a row at a position, early enough."""
            if place < len(rows) and (until is None or rows[place]["t"] <= until):
                if place + self.ahead >= len(rows) and looked is None:
                    raise UnknownYetError
                if looked is not None:
                    looked.append(rows[min(place + self.ahead, len(rows) - 1)]["t"])
                return True
            if not over:
                raise UnknownYetError
            if looked is not None:
                looked.append(rows[-1]["t"] if until is None else until)
            return False

        def holds(name: str, place: int, path: Path) -> bool:
            return self.conditions[name]((*path, (name, place)), rows) is True

        def ways(part: Part, place: int, path: Path) -> Iterator[tuple[int, Path]]:
            match part:
                case ("var", name):
                    if see(place) and holds(name, place, path):
                        yield place + 1, (*path, (name, place))
                case ("not", name):
                    while see(place):
                        if holds(name, place, path):
                            return
                        place += 1
                    yield place, path
                case ("any", parts):
                    for one in parts:
                        yield from ways(one, place, path)
                case ("all", parts):
                    yield from sequence(parts, place, path)
                case ("times", inner, least, most, greedy):
                    yield from repeated(inner, least, most, greedy, 0, place, path)

        def sequence(parts: Any, place: int, path: Path) -> Iterator[tuple[int, Path]]:
            if not parts:
                yield place, path
                return
            for after, longer in ways(parts[0], place, path):
                yield from sequence(parts[1:], after, longer)

        def repeated(
            part: Part, least: int, most: int | None, greedy: bool, done: int, at: int, path: Path
        ) -> Iterator[tuple[int, Path]]:
            def more() -> Iterator[tuple[int, Path]]:
                if most is None or done < most:
                    for after, longer in ways(part, at, path):
                        if after > at or done < least or most is not None:
                            yield from repeated(part, least, most, greedy, done + 1, after, longer)

            if done < least:
                yield from more()
            elif greedy:
                yield from more()
                yield at, path
            else:
                yield at, path
                yield from more()

        way = next(ways(self.pattern, start, ()), None)
        return None if way is None else way[1]
