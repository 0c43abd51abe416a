"""Subqueries in FROM that nodes hold: their answers change, or a window stands behind them."""

from __future__ import annotations

from dataclasses import replace

from nilometer.errors import AmbiguousNameError, SqlError
from nilometer.model.windows import RangeWindow
from nilometer.sql.bound_query import BoundQuery, Deriver, Entry
from nilometer.sql.changes_plan import Lifetime, Node
from nilometer.sql.derived import columns_of_source, derived_source
from nilometer.sql.dialect import StreamWindow
from nilometer.sql.plan import Source
from nilometer.sql.scalars import ColumnRef, column, place_of


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
    if length is None or length < 0 or not timed:
        return entry
    has_rows = any(source.rows is not None for source in timed)
    if len(timed) == 1 and not has_rows:
        windows = tuple(w for w in bound.windows if not isinstance(w, RangeWindow))
        return replace(entry, bound=replace(bound, windows=windows, lifetimes=()))
    if name is None and not has_rows:
        lifetimes = (Lifetime(tuple(source.name for source in timed), length),)
        return replace(entry, bound=replace(bound, lifetimes=lifetimes))
    node = deriver.derive_unit(bound, length)
    source = derived_source(name or unit.name, node, entry.place, timed=True)
    derived = replace(
        unit,
        columns={own: column(ColumnRef(source.name, own)) for own in unit.columns},
        times=(source.time,),
        relations={source.name: source.relation},
    )
    return replace(entry, unit=derived, bound=_held(source))


def _held(source: Source) -> BoundQuery:
    return BoundQuery((source,), (), (), (), None)


def _no_window(name: str, window: StreamWindow, sql: str) -> SqlError:
    return SqlError(
        f"{name} cannot have a window: rows of its answer come and go by themselves",
        place=place_of(window, sql),
        detail="a window stands behind a stream, or behind a query that is only appended to",
        hint="put the windows behind the streams inside the subquery",
    )
