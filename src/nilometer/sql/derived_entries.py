"""Subqueries in FROM that nodes hold: their answers change, or a window stands behind them."""

from __future__ import annotations

from dataclasses import replace

from nilometer.errors import AmbiguousNameError, SqlError
from nilometer.model.windows import RangeWindow
from nilometer.sql.bound_query import BoundQuery, Deriver, Entry
from nilometer.sql.changes_plan import LastResults, Lifetime, Node
from nilometer.sql.derived import columns_of_source, derived_source
from nilometer.sql.dialect import StreamWindow
from nilometer.sql.expression_binder import ExpressionBinder
from nilometer.sql.plan import Item, Source
from nilometer.sql.scalars import ColumnRef, column, place_of
from nilometer.sql.scope import Scope


def derived_entry(entry: Entry, name: str, node: Node, sql: str) -> Entry:
    """A subquery whose answer changes: what a node holds at each instant."""
    if entry.window is not None:
        raise _no_window(entry.unit.name, entry.window, sql)
    seen: set[str] = set()
    for one in node.columns:
        if one.name in seen:
            raise AmbiguousNameError(
                f"the subquery {entry.unit.name} has two columns named {one.name}",
                place=entry.place,
                hint="rename one: … AS other",
            )
        seen.add(one.name)
    source = derived_source(name, node, entry.place)
    unit = replace(
        entry.unit,
        columns=columns_of_source(source),
        relations={source.name: source.relation},
        is_derived=True,
    )
    return replace(entry, unit=unit, bound=_held(source))


def windowed_entry(entry: Entry, name: str | None, deriver: Deriver, sql: str) -> Entry:
    """A subquery with a RANGE window: each result stays for so long after its own time.

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


def _last_results(entry: Entry, name: str | None, deriver: Deriver, sql: str) -> Entry:
    """A subquery with a ROWS window: a result stays until so many later ones have come."""
    assert entry.window is not None
    bound, count = entry.bound, entry.window.args["rows"]
    if count < 1:
        place = place_of(entry.window, sql)
        raise SqlError("a ROWS window holds at least one row", place=place, hint="write [ROWS 1]")
    binder = ExpressionBinder(Scope(sql, (entry.unit,)), "PARTITION BY")
    by = [binder.bind(c) for c in entry.window.args.get("expressions") or ()]
    items = (*bound.items, *(Item(str(value), value) for value in by))
    results = deriver.derive_unit(replace(bound, items=items), None)
    partition = tuple(range(len(bound.items), len(items)))
    node = LastResults((results,), count, partition, results.columns)
    return replace(_timed(entry, name, node), window=None)


def _timed(entry: Entry, name: str | None, node: Node) -> Entry:
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
        f"{name} cannot have a window: rows of its answer come and go by themselves",
        place=place_of(window, sql),
        detail="a window stands behind a stream, or behind a query that is only appended to",
        hint="put the windows behind the streams inside the subquery",
    )
