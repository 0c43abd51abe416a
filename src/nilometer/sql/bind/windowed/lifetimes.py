"""How long the rows of each stream are kept, where the answer changes.

The window after the stream sets it. Otherwise it is the longest bound between the stream and
the others of its FROM, so that every result of the join exists at its own time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nilometer.errors import Place, SqlWindowError, WindowError
from nilometer.model.network import TimeNetwork
from nilometer.model.time import FOREVER
from nilometer.model.windows import Bound, DerivedWindow, RangeWindow, UniformWindow, Window
from nilometer.operators.last_results import LastResultsSpec
from nilometer.sql.bind.from_entry import BoundEntry
from nilometer.sql.expressions.scalars import Scalar
from nilometer.sql.plan.bound_query import BoundQuery
from nilometer.sql.plan.changes_plan import Lifetime, runs
from nilometer.sql.plan.join_plan import Source
from nilometer.sql.plan.time_bounds import time_window
from nilometer.sql.plan.window_hints import window_error


@dataclass(frozen=True)
class TimedEntry:
    """An entry of FROM that has a time, and its streams with the windows after it."""

    entry: BoundEntry
    sources: tuple[Source, ...]

    @property
    def name(self) -> str:
        return self.entry.unit.name

    @property
    def counts_rows(self) -> bool:
        """Whether something other than other streams' times sets how long rows are kept."""
        return any(
            source.rows is not None
            or source.until is not None
            or runs(source.node, LastResultsSpec)
            for source in self.sources
        )

    @property
    def lacking(self) -> Source | None:
        """Its only stream, if nothing sets how long its rows are kept."""
        lacking = list(lacking_sources(self.sources, self.entry.bound.lifetimes))
        return lacking[0] if len(lacking) == 1 and len(self.sources) == 1 else None


def timed_entry(entry: BoundEntry, sources: Sequence[Source]) -> TimedEntry:
    """The entry with those of its sources that have a time."""
    return TimedEntry(entry, tuple(source for source in sources if not source.is_table))


def lacking_sources(sources: Sequence[Source], lifetimes: Sequence[Lifetime]) -> Iterator[Source]:
    """The streams whose rows would be kept for ever."""
    covered = {stream for lifetime in lifetimes for stream in lifetime.streams}
    for source in sources:
        if not source.is_table and source.is_block and source.name not in covered:
            yield source


def find_lifetimes(
    entries: Sequence[TimedEntry],
    written: Sequence[tuple[Window, Place]],
    conditions: Sequence[Scalar],
) -> tuple[Lifetime, ...]:
    """The lifetimes that the windows of one FROM set, for streams without any yet."""
    timed = [one for one in entries if one.sources]
    windows = [window for window, _ in written]
    _refuse_second_windows(timed, written)
    ranges = {w.stream: w.length for w in windows if isinstance(w, RangeWindow)}
    uniform = [w.length for w in windows if isinstance(w, UniformWindow)]
    places = [place for _, place in written]
    network = _network(timed, [*windows, *_windows_of(timed, conditions)], places)
    lifetimes = []
    for number, one in enumerate(timed):
        if one.lacking is None:
            continue
        length = ranges.get(one.name)
        if length is None and len(timed) == 1:
            length = min(uniform, default=None)
        elif length is None:
            length = _longest_bound(network, timed, number)
        if length is not None:
            lifetimes.append(Lifetime((one.lacking.name,), length))
    return tuple(lifetimes)


def _refuse_second_windows(
    timed: Sequence[TimedEntry], written: Sequence[tuple[Window, Place]]
) -> None:
    """Refuse WINDOW = w where there is no stream, or one that has another window already."""
    for window, place in written:
        if not isinstance(window, UniformWindow) or len(timed) > 1:
            continue
        if not timed:
            raise SqlWindowError(
                "this window has no stream",
                place=place,
                detail="rows of static tables never expire; rows of a changing answer are added "
                "and retracted",
                hint="leave it out",
            )
        (one,) = timed
        if one.lacking is None or one.entry.window is not None:
            raise SqlWindowError(
                f"{one.name} has two windows",
                place=place,
                detail="for a single stream in FROM, each of them limits how long its rows are "
                "kept",
                hint="leave one of them out",
            )


def _windows_of(timed: Sequence[TimedEntry], conditions: Sequence[Scalar]) -> Iterator[Window]:
    """The windows expressed by conditions on times, between entries of one stream each."""
    names = {one.sources[0].name: one.name for one in timed if len(one.sources) == 1}
    sources = [source for one in timed for source in one.sources if len(one.sources) == 1]
    for condition in conditions:
        window = time_window(condition, sources)
        if window is not None:
            bounds = (Bound(names[b.earlier], names[b.later], b.limit) for b in window.limits)
            yield DerivedWindow(tuple(bounds), window.text)


def _network(
    timed: Sequence[TimedEntry], windows: Sequence[Window], places: Sequence[Place]
) -> TimeNetwork:
    names = tuple(one.name for one in timed)
    try:
        return TimeNetwork(names, tuple(windows), rows=frozenset(names))
    except WindowError as error:
        raise window_error(error, places[0] if places else timed[0].entry.place) from error


def _longest_bound(network: TimeNetwork, timed: Sequence[TimedEntry], number: int) -> int | None:
    """The longest bound between a stream and the others; None if one may be any time later."""
    lengths = []
    for other, one in enumerate(timed):
        both = (network.closed[number][other], network.closed[other][number])
        if other == number or (one.counts_rows and max(both) >= FOREVER):
            continue
        if max(both) >= FOREVER:
            return None
        lengths.append(max(both))
    return max(0, *lengths) if lengths else None


def require_lifetimes(rows: BoundQuery) -> None:
    """Refuse a stream whose rows would be kept for ever."""
    for source in lacking_sources(rows.sources, rows.lifetimes):
        stream = _as_written(source)
        raise SqlWindowError(
            f"{stream.split()[-1]} has no window: its rows would be kept forever",
            place=source.place,
            detail="in a query with a changing answer, every stream needs a window",
            hint=f"write {stream} [RANGE 10 SECONDS], or [UNBOUNDED] for all rows so far",
        )


def _as_written(source: Source) -> str:
    """A stream and its alias as written in FROM."""
    place = source.place
    words = place.sql[place.start : place.end].split()
    if len(words) in (1, 2, 3) and "," not in "".join(words):
        return " ".join(words)
    return f"{source.relation.name} {source.name.split('.')[-1]}"
