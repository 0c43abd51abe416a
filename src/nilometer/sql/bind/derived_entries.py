"""Subqueries in FROM that run as nodes: their answers change, or a window follows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from nilometer.errors import AmbiguousNameError, Place, SqlError, SqlWindowError, UnknownNameError
from nilometer.model.names import nearest
from nilometer.model.windows import RangeWindow
from nilometer.sql.bind.expression_binder import ExpressionBinder
from nilometer.sql.bind.from_entry import BoundEntry, Deriver
from nilometer.sql.bind.scope import FromUnit, Scope
from nilometer.sql.expressions.scalars import ColumnRef, column
from nilometer.sql.parse.dialect import StreamWindow
from nilometer.sql.parse.places import place_of
from nilometer.sql.plan.bound_query import BoundQuery
from nilometer.sql.plan.changes_plan import Column, Lifetime, Node, Operation
from nilometer.sql.plan.derived import columns_of_source, derived_source
from nilometer.sql.plan.join_plan import Item, Source
from nilometer.sql.plan.operations import last_results, lasting

UNION: Final = "UNION ALL"
"""The source of the rows of a union of streams."""


def derived_entry(entry: BoundEntry, name: str, node: Node, sql: str) -> BoundEntry:
    """A subquery whose answer changes: what a node holds at each instant."""
    if entry.window is not None:
        raise _no_window(entry.unit.name, entry.window, sql)
    require_names(entry.unit.name, node.columns, entry.place)
    source = derived_source(name, node, entry.place)
    unit = replace(
        entry.unit,
        columns=columns_of_source(source),
        relations={source.name: source.relation},
        is_derived=True,
    )
    return replace(entry, unit=unit, bound=_held(source))


def appended_entry(entry: BoundEntry, name: str, node: Node, appends: bool, sql: str) -> BoundEntry:
    """What a table function, or a query over one, appends; a window says how long it is kept.

    The node's last column is the time of its rows.
    """
    names = {one.name: column(ColumnRef(name, one.name)) for one in node.columns[:-1]}
    named = replace(entry, unit=replace(entry.unit, columns=names))
    window = entry.window
    if appends and (window is None or not entry.has_rows):
        return replace(_timed(named, name, node), window=None)
    if window is None:
        raise SqlWindowError(
            f"{entry.unit.name} has no window: its rows would be kept forever",
            place=entry.place,
            detail="in a query with a changing answer, every stream needs a window",
            hint=f"write {_written(entry.unit)} [RANGE 10 SECONDS]",
        )
    if appends:
        raise SqlError(
            "appending the results of a ROWS window over a table function is not supported",
            place=place_of(window, sql),
            hint="write EMIT CHANGES",
        )
    if not entry.has_rows:
        return _timed(named, name, lasting(node, require_length(window, sql)))
    return replace(_timed(named, name, _last_of(node, window, sql)), window=None)


def _written(unit: FromUnit) -> str:
    """An entry, as the hint of an error shows it."""
    call = "(SELECT …)" if unit.origin == unit.name else f"{unit.origin}(…)"
    call = "(SELECT … UNION ALL …)" if unit.origin == UNION else call
    return f"{call} AS {unit.name}" if unit.name.isidentifier() else call


def require_names(subquery: str, columns: Sequence[Column], place: Place) -> None:
    """Refuse a subquery with two columns of the same name."""
    seen: set[str] = set()
    for one in columns:
        if one.name in seen:
            name = f"the subquery {subquery}" if subquery.isidentifier() else subquery
            raise AmbiguousNameError(
                f"{name} has two columns named {one.name}",
                place=place,
                hint="rename one: … AS other",
            )
        seen.add(one.name)


def require_length(window: StreamWindow, sql: str) -> int:
    """The length of a RANGE window; raises an error if it is negative."""
    length = int(window.args["length"])
    if length < 0:
        raise SqlWindowError(
            "a window cannot have a negative length",
            place=place_of(window, sql),
            hint="write [RANGE 5 SECONDS]",
        )
    return length


def _last_of(node: Node, window: StreamWindow, sql: str) -> Operation:
    """The last results of a node, of each partition."""
    count = _require_rows(window, sql)
    names = [one.name.lower() for one in node.columns[:-1]]
    partition = []
    for tree in window.args.get("expressions") or ():
        if tree.name.lower() not in names:
            raise UnknownNameError(
                f"there is no column {tree.name}",
                place=place_of(tree, sql),
                hint=nearest(tree.name, names),
            )
        partition.append(names.index(tree.name.lower()))
    return last_results(node, count, partition)


def _require_rows(window: StreamWindow, sql: str) -> int:
    count = int(window.args["rows"])
    if count < 1:
        place = place_of(window, sql)
        raise SqlError(
            "a ROWS window must hold at least one row", place=place, hint="write [ROWS 1]"
        )
    return count


def windowed_entry(entry: BoundEntry, name: str | None, deriver: Deriver, sql: str) -> BoundEntry:
    """A subquery with a RANGE window: each result is kept for that long after its own time.

    It keeps a name of its own if it is joined with others.
    """
    assert entry.window is not None
    bound, unit = entry.bound, entry.unit
    if any(source.node is not None for source in bound.sources):
        raise _no_window(unit.name, entry.window, sql)
    length = entry.window.args.get("length")
    timed = [source for source in bound.sources if not source.is_table]
    has_rows = any(source.rows is not None for source in timed)
    if entry.has_rows and (len(bound.sources) > 1 or has_rows) and timed:
        return _last_results(entry, name, deriver, sql)
    if length is None or length < 0 or not timed:
        return entry
    if len(timed) == 1 and not has_rows:
        windows = tuple(w for w in bound.windows if not isinstance(w, RangeWindow))
        return replace(entry, bound=replace(bound, windows=windows, lifetimes=()))
    if name is None and not has_rows:
        lifetimes = (Lifetime(tuple(source.name for source in timed), length),)
        return replace(entry, bound=replace(bound, lifetimes=lifetimes))
    return _timed(entry, name, deriver.derive_unit(bound, length))


def _last_results(entry: BoundEntry, name: str | None, deriver: Deriver, sql: str) -> BoundEntry:
    """A subquery with a ROWS window: a result is kept until n later ones have arrived."""
    assert entry.window is not None
    bound, count = entry.bound, _require_rows(entry.window, sql)
    binder = ExpressionBinder(Scope(sql, (entry.unit,)), "PARTITION BY")
    by = [binder.bind(c) for c in entry.window.args.get("expressions") or ()]
    items = (*bound.items, *(Item(str(value), value) for value in by))
    results = deriver.derive_unit(replace(bound, items=items), None)
    partition = tuple(range(len(bound.items), len(items)))
    node = last_results(results, count, partition)
    return replace(_timed(entry, name, node), window=None)


def _timed(entry: BoundEntry, name: str | None, node: Node) -> BoundEntry:
    """The entry whose rows a node holds; the node's last column is their time."""
    source = derived_source(name or entry.unit.name, node, entry.place, timed=True)
    unit = replace(
        entry.unit,
        columns={own: column(ColumnRef(source.name, own)) for own in entry.unit.columns},
        times=(source.time,),
        relations={source.name: source.relation},
    )
    return replace(entry, unit=unit, bound=_held(source))


def _held(source: Source) -> BoundQuery:
    return BoundQuery((source,), (), (), (), None)


def _no_window(name: str, window: StreamWindow, sql: str) -> SqlError:
    return SqlError(
        f"{name} cannot have a window: rows of its answer are already added and retracted",
        place=place_of(window, sql),
        detail="a window follows a stream, or a query whose results are only appended",
        hint="put the windows after the streams inside the subquery",
    )
