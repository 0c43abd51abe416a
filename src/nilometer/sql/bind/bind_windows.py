"""The windows of a query as bounds on times: also of subqueries, whose time is their latest row's.

The time of a unit of several streams is the largest of their times, so

    time(C) - time(U) <= w    is    for some stream u of U: t_C - t_u <= w
    time(U) - time(C) <= w    is    for every stream u of U: t_u - t_C <= w

The second is a bound for every stream. The first is no conjunction: it becomes a condition
that the join tests, and a wider bound that follows from it and from the unit's own windows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from nilometer.errors import Place, SqlError, SqlWindowError, WindowError
from nilometer.model.network import TimeNetwork
from nilometer.model.time import FOREVER
from nilometer.model.windows import (
    Bound,
    DerivedWindow,
    PairWindow,
    RangeWindow,
    UniformWindow,
    Window,
)
from nilometer.sql.bind.scope import FromUnit, Scope
from nilometer.sql.expressions.scalars import Scalar, column
from nilometer.sql.parse.dialect import PairWindowNode, StreamWindow, WindowClause
from nilometer.sql.parse.places import place_of
from nilometer.sql.plan.join_plan import Source
from nilometer.sql.plan.time_bounds import time_window
from nilometer.sql.plan.window_hints import window_error


class Inner(Protocol):
    """What is known about the inside of a unit."""

    @property
    def sources(self) -> tuple[Source, ...]: ...
    @property
    def windows(self) -> tuple[Window, ...]: ...
    @property
    def conditions(self) -> tuple[Scalar, ...]: ...
    @property
    def windows_place(self) -> Place | None: ...


@dataclass(frozen=True)
class BoundWindows:
    """Bounds, and conditions where bounds do not suffice."""

    windows: tuple[Window, ...]
    conditions: tuple[Scalar, ...]


@dataclass(frozen=True)
class _Group:
    """The streams with a time in one unit, and how far apart their times may be."""

    unit: FromUnit
    sources: tuple[Source, ...]
    spread: dict[str, int]
    """The maximum by which the unit's time may be later than a stream's."""

    @property
    def is_single(self) -> bool:
        return len(self.sources) == 1


WindowedUnit = tuple[FromUnit, Inner, StreamWindow | None]


def bind_windows(
    clause: WindowClause | None,
    entries: Sequence[WindowedUnit],
    scope: Scope,
    with_ranges: bool = True,
) -> BoundWindows:
    """The windows of a query: inside its units, after its units, and in its clause.

    Where an answer changes, those after units say instead how long rows are kept.
    """
    groups = {unit.name: _group(unit, inner) for unit, inner, _ in entries}
    windows: list[Window] = [w for _, inner, _ in entries for w in inner.windows]
    conditions: list[Scalar] = []
    for written, place in written_windows(clause, entries, scope):
        if isinstance(written, RangeWindow) and not with_ranges:
            continue
        for one in _apply(written, groups, place):
            (conditions if isinstance(one, Scalar) else windows).append(one)  # type: ignore[arg-type]
    return BoundWindows(tuple(windows), tuple(conditions))


def _group(unit: FromUnit, inner: Inner) -> _Group:
    timed = tuple(source for source in inner.sources if not source.is_table)
    if len(timed) < 2:
        return _Group(unit, timed, {source.name: 0 for source in timed})
    names = tuple(source.name for source in timed)
    rows = frozenset(source.name for source in timed if source.rows is not None)
    from_conditions = [
        window for c in inner.conditions if (window := time_window(c, timed)) is not None
    ]
    try:
        network = TimeNetwork(names, (*inner.windows, *from_conditions), rows=rows)
    except WindowError as error:
        own = timed[names.index(error.streams[0])].place
        raise window_error(error, inner.windows_place or own) from None
    spread = {name: max(0, *network.closed[i]) for i, name in enumerate(names)}
    return _Group(unit, timed, spread)


def written_windows(
    clause: WindowClause | None, entries: Sequence[WindowedUnit], scope: Scope
) -> Iterator[tuple[Window, Place]]:
    """The windows as they were written, between units."""
    for unit, _, window in entries:
        if window is not None and window.args.get("length") is not None:
            place = place_of(window, scope.sql)
            if window.args["length"] < 0:
                raise SqlError(
                    "a window cannot have a negative length",
                    place=place,
                    hint="write [RANGE 5 SECONDS]: the rows of the last 5 seconds",
                )
            if not unit.times:
                raise SqlError(
                    f"the static table {unit.name} cannot have a window",
                    place=place,
                    hint="rows of static tables never expire",
                )
            yield RangeWindow(unit.name, window.args["length"]), place
    for node in clause.expressions if clause is not None else ():
        yield _pair_window(node, scope), place_of(node, scope.sql)


def _pair_window(node: PairWindowNode, scope: Scope) -> Window:
    place = place_of(node, scope.sql)
    kind, high = node.args["kind"], node.args["high"]
    if kind != "between" and high < 0:
        raise SqlError(
            "a window cannot have a negative length",
            place=place,
            hint="for a lower and an upper bound write WINDOW(A, B) BETWEEN -2 S AND 5 S",
        )
    if not node.expressions:
        return UniformWindow(high)
    units = [scope.unit(name) for name in node.expressions]
    for unit in units:
        if unit.is_derived:
            raise SqlError(
                f"a window between streams cannot include {unit.name}, which is a changing answer",
                place=place,
                hint="write a window after each: S [RANGE 5 SECONDS]; or name the query, CREATE "
                "QUERY q AS SELECT …, and join q if its results are only appended",
            )
        if not unit.times:
            raise SqlError(
                f"a window cannot include the static table {unit.name}",
                place=place,
                hint="rows of static tables never expire; leave the table out of the window",
            )
    low = {"window": -high, "dwindow": 0, "between": node.args.get("low")}[kind]
    try:
        return PairWindow(units[0].name, units[1].name, low, high)
    except WindowError as error:
        raise SqlWindowError.at(place, error) from None


def _apply(written: Window, groups: dict[str, _Group], place: Place) -> Iterator[Window | Scalar]:
    """A window between units as windows between their streams."""
    timed = [group for group in groups.values() if group.sources]
    names = {group.unit.name: group.sources[0].name for group in timed}
    if all(group.is_single and names[group.unit.name] == group.unit.name for group in timed):
        yield written
        return
    for bound in written.bounds([group.unit.name for group in timed]):
        earlier, later = groups[bound.earlier], groups[bound.later]
        text = str(written)
        yield DerivedWindow(tuple(_stream_bounds(earlier, later, bound.limit)), text)
        if not earlier.is_single:
            yield from (_some_is_near(earlier, s, bound.limit, place) for s in later.sources)


def _stream_bounds(earlier: _Group, later: _Group, limit: int) -> Iterable[Bound]:
    for first in earlier.sources:
        reach = limit + earlier.spread[first.name]
        for second in later.sources:
            if reach < FOREVER // 2:
                yield Bound(first.name, second.name, reach)


def _some_is_near(earlier: _Group, later: Source, limit: int, place: Place) -> Scalar:
    """time(later) - time(u) <= limit for some stream u of the earlier unit."""
    tests: list[exp.Expr] = [
        exp.LTE(
            this=exp.Paren(this=exp.Sub(this=column(later.time), expression=column(source.time))),
            expression=exp.Interval(
                this=exp.Literal.string(str(limit)), unit=exp.Var(this="MICROSECOND")
            ),
        )
        for source in earlier.sources
    ]
    return Scalar(exp.or_(*tests, copy=False), place)
