"""The TimeNetwork: every time window of a query as one closed matrix of difference bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from nilometer.errors import ContradictionError, UnboundedError, WindowError
from nilometer.model.time import FOREVER, format_duration
from nilometer.model.windows import Bound, Window

Matrix = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class TimeNetwork:
    """Windows over streams, closed: ``time(j) - time(i) <= closed[i][j]`` for all i and j.

    A network is satisfiable, and no tuple of a plain stream has to be kept forever; otherwise
    it is not built. Static tables have no time, so no window binds them; tuples of a stream
    with a ROWS window leave when later ones come, so they need no bound. The closure is that of
    a simple temporal network (shortest paths), which is how TR-010 section 5.2 derives the
    windows that a query leaves out; it also tightens those that others imply.

    >>> from nilometer.model.windows import window, dwindow
    >>> path = TimeNetwork(("A", "B", "C"), (window("A", "B", "5s"), dwindow("B", "C", "10s")))
    >>> path.closed[0][2], path.closed[2][0]
    (15000000, 5000000)
    """

    streams: tuple[str, ...]
    windows: tuple[Window, ...]
    static: frozenset[str] = frozenset()
    """The streams that are static tables."""
    rows: frozenset[str] = frozenset()
    """The streams that have a ROWS window."""

    def __post_init__(self) -> None:
        self._check_names()
        _check_satisfiable(self.given, self.closed, self.streams)
        self._check_bounded()

    @property
    def _timed(self) -> tuple[str, ...]:
        return tuple(name for name in self.streams if name not in self.static)

    @cached_property
    def given(self) -> Matrix:
        """The bounds as written: FOREVER where no window says anything."""
        place = {name: i for i, name in enumerate(self.streams)}
        matrix = [[0 if i == j else FOREVER for j in place.values()] for i in place.values()]
        for w in self.windows:
            for bound in w.bounds(self._timed):
                i, j = place[bound.earlier], place[bound.later]
                matrix[i][j] = min(matrix[i][j], bound.limit)
        return tuple(map(tuple, matrix))

    @cached_property
    def closed(self) -> Matrix:
        """The bounds that follow from all windows together (Floyd and Warshall)."""
        return _shortest_paths(self.given)

    def bounds_behind(self, i: int, j: int) -> tuple[Bound, ...]:
        """The fewest bounds as written that add up to the closed bound from i to j.

        >>> from nilometer.model.windows import window, dwindow
        >>> path = TimeNetwork(("A", "B", "C"), (window("A", "B", "5s"), dwindow("B", "C", "10s")))
        >>> [(bound.earlier, bound.later) for bound in path.bounds_behind(0, 2)]
        [('A', 'B'), ('B', 'C')]
        """
        before, waiting = {i: i}, [i]
        for near in waiting:  # by number of steps: each stream reached is appended
            for far, bound in enumerate(self.given[near]):
                is_tight = self.closed[i][near] + bound == self.closed[i][far]
                if bound < FOREVER and is_tight and far not in before:
                    before[far] = near
                    waiting.append(far)
        path = [j]
        while path[-1] != i:
            path.append(before[path[-1]])
        steps = zip(path[:0:-1], path[-2::-1], strict=True)
        return tuple(Bound(self.streams[a], self.streams[b], self.given[a][b]) for a, b in steps)

    def horizon(self, stream: int, watermarks: Sequence[int]) -> int:
        """The earliest time at which a tuple of the stream can still find new partners.

        A tuple strictly older than this is dead: every other stream's watermark is strictly
        beyond what it could join.
        """
        row = self.closed[stream]
        limits = (
            watermarks[j] - row[j] if watermarks[j] < FOREVER else FOREVER
            for j in _indices(row)
            if j != stream
        )
        return min(limits, default=FOREVER)

    def local_window(self, stream: int) -> int:
        """The length that covers every window of one stream (LCA; its window in a changelog)."""
        timed = [self.streams.index(name) for name in self._timed]
        others = [j for j in timed if j != stream] if stream in timed else []
        return max([0] + [max(self.closed[stream][j], self.closed[j][stream]) for j in others])

    @cached_property
    def largest_window(self) -> int:
        """The length that covers every window of the query (GCA)."""
        return max((self.local_window(i) for i in _indices(self.closed)), default=0)

    def _check_names(self) -> None:
        if len(set(self.streams)) != len(self.streams):
            raise WindowError("two streams have the same name", detail=", ".join(self.streams))
        for w in self.windows:
            for name in w.names:
                self._check_name(name, w)

    def _check_name(self, name: str, w: Window) -> None:
        if name not in self.streams:
            raise WindowError(
                f"the window {w} names no stream of this join: {name}",
                detail=f"the streams are {', '.join(self.streams)}",
                hint="use the names under which the streams are joined",
            )
        if name in self.static:
            raise WindowError(
                f"a window cannot include the static table {name}",
                detail=f"got {w}",
                hint="rows of static tables never expire; leave the table out of the window",
            )

    def _check_bounded(self) -> None:
        for i, name in enumerate(self.streams):
            if name in self.static | self.rows:
                continue
            for j, other in enumerate(self.streams):
                if other not in self.static and self.closed[i][j] >= FOREVER:
                    raise UnboundedError(
                        f"tuples of {name} could never be dropped: "
                        f"nothing says how much later {other} may come",
                        detail=f"no window bounds time({other}) - time({name}) from above",
                        hint=self._missing_window(i, j),
                        streams=(name, other),
                    )

    def _missing_window(self, i: int, j: int) -> str:
        name, other = self.streams[i], self.streams[j]
        if self.closed[j][i] < FOREVER:
            return (
                f'bound the other direction too: nm.window("{name}", "{other}", "10s") '
                f'or nm.range("{name}", "10s")'
            )
        return f'add a window that connects them, such as nm.window("{name}", "{other}", "10s")'


def _indices(row: Sequence[object]) -> range:
    return range(len(row))


def _shortest_paths(matrix: Matrix) -> Matrix:
    closed = [list(row) for row in matrix]
    for k in _indices(closed):
        for row in closed:
            if row[k] >= FOREVER:
                continue
            for j, onward in enumerate(closed[k]):
                if onward < FOREVER and row[k] + onward < row[j]:
                    row[j] = row[k] + onward
    return tuple(map(tuple, closed))


def _check_satisfiable(given: Matrix, closed: Matrix, streams: Sequence[str]) -> None:
    if all(closed[i][i] >= 0 for i in _indices(closed)):
        return
    cycle = _negative_cycle(given)
    steps = [
        f"time({streams[j]}) - time({streams[i]}) <= {format_duration(given[i][j])}"
        for i, j in zip(cycle, cycle[1:] + cycle[:1], strict=True)
    ]
    limits = tuple(given[i][j] for i, j in zip(cycle, cycle[1:] + cycle[:1], strict=True))
    names = " -> ".join(streams[i] for i in cycle + cycle[:1])
    raise ContradictionError(
        f"the windows contradict each other along {names}",
        detail=f"{'; '.join(steps)}; together 0 <= {format_duration(sum(limits))}",
        hint="widen or remove one of these windows",
        streams=tuple(streams[i] for i in cycle),
        limits=limits,
    )


def _negative_cycle(given: Matrix) -> list[int]:
    """The streams of one cycle whose bounds add up to less than zero (Bellman and Ford)."""
    n = len(given)
    distance, parent, touched = [0] * n, [-1] * n, -1
    for _ in range(n):
        touched = -1
        for i in range(n):
            for j in range(n):
                if given[i][j] < FOREVER and distance[i] + given[i][j] < distance[j]:
                    distance[j], parent[j], touched = distance[i] + given[i][j], i, j
    node = touched
    for _ in range(n):
        node = parent[node]
    cycle = [node]
    while parent[cycle[-1]] != node:
        cycle.append(parent[cycle[-1]])
    cycle.reverse()
    start = cycle.index(min(cycle))
    return cycle[start:] + cycle[:start]
