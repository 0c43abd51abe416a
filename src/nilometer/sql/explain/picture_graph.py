"""The constraint graph of a join: its streams, and how far apart in time their rows may be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from nilometer.errors import ContradictionError, UnboundedError
from nilometer.model.network import TimeNetwork
from nilometer.model.time import FOREVER, format_duration
from nilometer.model.windows import Bound, RangeWindow, Window
from nilometer.sql.explain.describe_sources import awaited, how_long, kept_columns
from nilometer.sql.plan.changes_plan import Block, LastRows
from nilometer.sql.plan.join_plan import JoinPlan


@dataclass(frozen=True)
class Expiry:
    """A row can only be dropped once a stream has passed the row's time plus this bound."""

    stream: str
    bound: int


@dataclass(frozen=True)
class PicturedStream:
    """A node: a stream under its name in the query."""

    name: str
    relation: str
    rate: float | None
    """Rows per second, if known."""
    columns: tuple[str, ...]
    """The columns that are kept."""
    kept: str
    """How long its rows are kept, in words."""
    expiry: tuple[Expiry, ...]
    rows: str | None
    """Its ROWS window, if it has one."""


@dataclass(frozen=True)
class PicturedBound:
    """``time(later) - time(earlier) <= limit``."""

    earlier: str
    later: str
    limit: int
    given: int | None
    """The bound as written, if any: wider than the limit, or the same."""
    follows_from: tuple[str, ...]
    """The written bounds that add up to the limit, in words; empty if it was itself written."""

    @property
    def is_derived(self) -> bool:
        return self.given != self.limit


@dataclass(frozen=True)
class PicturedWindow:
    """An edge: ``-before <= time(second) - time(first) <= after``; either side may be unbounded."""

    first: str
    second: str
    after: PicturedBound | None
    """How much later the second may be."""
    before: PicturedBound | None
    """How much later the first may be."""

    @property
    def bounds(self) -> tuple[PicturedBound, ...]:
        return tuple(one for one in (self.after, self.before) if one is not None)

    @property
    def is_derived(self) -> bool:
        """Whether neither bound was written."""
        return all(one.given is None for one in self.bounds)

    @property
    def is_tightened(self) -> bool:
        """Whether other windows make it tighter than written."""
        return any(one.is_derived for one in self.bounds) and not self.is_derived


@dataclass(frozen=True)
class ConstraintGraph:
    """The streams of one join and the windows between them."""

    title: str
    streams: tuple[PicturedStream, ...]
    windows: tuple[PicturedWindow, ...]
    written: tuple[str, ...]
    """The windows as written in the statement."""


def picture_windows(plan: JoinPlan, title: str) -> ConstraintGraph:
    """The constraint graph of a join; static tables have no time, so they are not part of it."""
    return _graph(plan, plan.network, title, {i: how_long(plan, i) for i in _timed(plan)})


def picture_block(leaf: Block | LastRows, title: str) -> ConstraintGraph:
    """That of a leaf of a plan whose answer changes: rows are kept for their lifetimes."""
    plan = leaf.plan
    lifetimes = {i: how_long(plan, i) for i in _timed(plan)}
    if isinstance(leaf, Block):
        for life in leaf.lifetimes:
            text = f"in the answer for {format_duration(life.length)}"
            if life.until is not None:
                text = f"in the answer until {life.until.column}"
            lifetimes |= {i: text for i in lifetimes if plan.sources[i].name in life.streams}
    return _graph(plan, _as_written(plan.network), title, lifetimes)


def picture_cycle(error: ContradictionError) -> ConstraintGraph:
    """That of streams whose windows contradict each other: only the contradicting bounds."""
    around = zip(error.streams, error.streams[1:] + error.streams[:1], error.limits, strict=True)
    bounds = {(a, b): PicturedBound(a, b, limit, limit, ()) for a, b, limit in around}
    streams = tuple(PicturedStream(name, name, None, (), "", (), None) for name in error.streams)
    windows = tuple(
        PicturedWindow(a, b, one, bounds.get((b, a)))
        for (a, b), one in bounds.items()
        if (b, a) not in bounds or a < b
    )
    return ConstraintGraph("", streams, windows, ())


def _as_written(network: TimeNetwork) -> TimeNetwork:
    """The network without the ranges that are only implied by other windows."""
    others = tuple(one for one in network.windows if not isinstance(one, RangeWindow))
    try:
        bare = replace(network, windows=others)
    except UnboundedError:  # some stream is bounded by its range alone
        return network
    written = tuple(one for one in network.windows if not _is_implied(one, bare))
    return replace(network, windows=written)


def _is_implied(window: Window, by: TimeNetwork) -> bool:
    if not isinstance(window, RangeWindow):
        return False
    return window.length == by.local_window(by.streams.index(window.stream))


def _graph(
    plan: JoinPlan, network: TimeNetwork, title: str, lifetimes: Mapping[int, str]
) -> ConstraintGraph:
    timed = _timed(plan)
    return ConstraintGraph(
        title,
        tuple(_stream(plan, i, lifetimes[i]) for i in timed),
        tuple(_windows(network, timed)),
        tuple(dict.fromkeys(map(str, network.windows))),
    )


def _timed(plan: JoinPlan) -> list[int]:
    return [i for i, one in enumerate(plan.sources) if not (one.is_table or one.is_held)]


def _stream(plan: JoinPlan, number: int, lifetime: str) -> PicturedStream:
    source = plan.sources[number]
    others = [] if source.rows is not None else awaited(plan, number)
    return PicturedStream(
        source.name,
        source.relation.name,
        source.relation.statistics.rate,
        tuple(kept_columns(plan, number)),
        lifetime,
        tuple(Expiry(other.name, bound) for other, bound in others),
        None if source.rows is None else str(source.rows),
    )


def _windows(network: TimeNetwork, timed: list[int]) -> Iterator[PicturedWindow]:
    for place, i in enumerate(timed):
        for j in timed[place + 1 :]:
            after, before = _bound(network, i, j), _bound(network, j, i)
            if after is not None or before is not None:
                yield PicturedWindow(network.streams[i], network.streams[j], after, before)


def _bound(network: TimeNetwork, i: int, j: int) -> PicturedBound | None:
    written, closed = network.given[i][j], network.closed[i][j]
    if closed >= FOREVER:
        return None
    behind = network.bounds_behind(i, j) if written != closed else ()
    return PicturedBound(
        network.streams[i],
        network.streams[j],
        closed,
        None if written >= FOREVER else written,
        tuple(_bound_text(network, one) for one in behind),
    )


def _bound_text(network: TimeNetwork, bound: Bound) -> str:
    """A bound as written, and the window it comes from."""
    timed = [name for name in network.streams if name not in network.static]
    windows = (str(one) for one in network.windows if bound in one.bounds(timed))
    return f"{later_than(bound.earlier, bound.later, bound.limit)} ({next(windows)})"


def later_than(earlier: str, later: str, limit: int) -> str:
    """A bound in words.

    >>> later_than("A", "B", 5_000_000), later_than("A", "B", -5_000_000)
    ('B at most 5s after A', 'B at least 5s before A')
    """
    if limit < 0:
        return f"{later} at least {format_duration(-limit)} before {earlier}"
    if limit == 0:
        return f"{later} not after {earlier}"
    return f"{later} at most {format_duration(limit)} after {earlier}"
