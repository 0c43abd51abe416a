"""Answers of time windows as streams: each is emitted when its window ends, and is final.

`FROM (SELECT k, window_end, AVG(v) AS m FROM TUMBLE(…) GROUP BY k, window_end) a` can thus stand
below OVER, MATCH_RECOGNIZE and table functions, and have a window after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from sqlglot import exp

from nilometer.errors import SqlError
from nilometer.model.time_windows import WINDOW_END, WINDOW_START, SessionWindows
from nilometer.sql.parse.call_parser import TableCall
from nilometer.sql.parse.match_parser import MatchCall
from nilometer.sql.parse.named_queries import named_queries
from nilometer.sql.parse.over_calls import OverCall
from nilometer.sql.parse.places import place_of
from nilometer.sql.parse.window_call_parser import EndsCall, WindowCall
from nilometer.sql.rewrite.cut_units import windows_of_unit
from nilometer.sql.rewrite.modes import Reasons, unwrap

_TAKE_STREAMS: Final = (OverCall, MatchCall, TableCall)
Named = Mapping[str, exp.CTE]


def put_ends(tree: exp.Query, sql: str, reasons: Reasons) -> exp.Query:
    """The query with answers of windows as streams where streams are needed."""
    if tree.find(WindowCall) is None:
        return tree
    tree = tree.copy()
    for entry in list(tree.find_all(exp.Subquery, exp.Table)):
        alias = entry.args.get("alias")
        if alias is not None and alias.args.get("stream_window") is not None:
            _put(entry, named_around(entry, sql), reasons)
    for call in list(tree.find_all(*_TAKE_STREAMS)):
        for below in list(_entries(call, named_around(call, sql), reasons)):
            _put(below, named_around(below, sql), reasons)
    for call in tree.find_all(WindowCall):
        for below in _entries(call, named_around(call, sql), reasons):
            _refuse_again(call, below, sql, reasons)
    _forget_unread(tree)
    return tree


def _refuse_again(call: exp.Expr, entry: exp.Expr, sql: str, reasons: Reasons) -> None:
    """Refuse windows of answers of windows: one that ends with an hour would be in the next."""
    query = _query_of(entry, named_around(entry, sql))
    if query is not None and _answers(query, reasons):
        raise SqlError(
            "results of time windows cannot be put into time windows again",
            place=place_of(call, sql),
            detail="a result emitted when a longer window ends would count in the next one",
            hint="use a sliding window: FROM (SELECT … GROUP BY …) m [RANGE 1 HOUR]",
        )


def order_of_answers(
    entry: exp.Expr, sql: str, reasons: Reasons, *, whole: bool = False
) -> frozenset[str]:
    """The columns, in lower case, that order the answers of windows; empty if it has none.

    They may pass through queries that only select and compute. If only those are requested that
    are `whole`, each of their values belongs to one window alone.
    """
    if isinstance(entry.this, WindowCall):
        is_regular = not isinstance(entry.this.windows, SessionWindows)
        return frozenset((WINDOW_END, WINDOW_START) if is_regular else (WINDOW_END,))
    query = _query_of(entry, named_around(entry, sql))
    if query is None:
        return frozenset()
    if _answers(query, reasons):
        orders = columns_in_order(query, whole=whole)
        return frozenset(name.lower() for one in orders for name in one)
    entries = _from(query)
    if reasons.of_select(query) is not None or len(entries) != 1:
        return frozenset()
    below = order_of_answers(entries[0].this, sql, reasons, whole=whole)
    passed = [one for one in query.expressions if one.unalias().name.lower() in below]
    named = {one.alias_or_name.lower() for one in passed if isinstance(one.unalias(), exp.Column)}
    return frozenset(named | (below if any(one.is_star for one in query.expressions) else set()))


def columns_in_order(
    query: exp.Select, *, whole: bool = False
) -> tuple[frozenset[str], frozenset[str]]:
    """Which columns of a query are the ends of its windows, and which increase with these.

    If they are `whole`, no two windows have the same value of one.
    """
    call = windows_below(query).this
    ends, others = set(), set()
    is_regular = not isinstance(call.windows, SessionWindows)
    for item in query.expressions:
        value = item.unalias().unnest()
        bounds = {one.name.lower() for one in value.find_all(exp.Column)}
        if isinstance(value, exp.Column) and bounds == {WINDOW_END}:
            ends.add(item.alias_or_name)
        is_start = isinstance(value, exp.Column) and bounds == {WINDOW_START}
        is_cut = isinstance(value, exp.TimestampTrunc) and value.this == call.args.get("time")
        if is_cut and whole:
            is_cut = windows_of_unit(value.args["unit"].name) == call.windows
        if is_start or is_cut:
            others.add(item.alias_or_name)
    return frozenset(ends), frozenset(others if is_regular else ())


def windows_below(query: exp.Select) -> exp.Table:
    """The entry of FROM that is in windows, if there is one."""
    return next(_in_windows(query))


def _entries(call: exp.Expr, named: Named, reasons: Reasons) -> Iterator[exp.Expr]:
    """The entries of FROM whose rows a call takes, below queries that only select and compute."""
    source = call.args.get("input")
    todo = [source] if isinstance(source, exp.Expr) else []
    while todo:
        entry = todo.pop()
        query = _query_of(entry, named)
        if query is None:
            continue
        yield entry
        if isinstance(entry, exp.Subquery) and reasons.of_select(query) is None:
            todo += [one.this for one in _from(query)]


def _from(query: exp.Select) -> list[exp.Expr]:
    first = query.args.get("from_")
    return [*([] if first is None else [first]), *(query.args.get("joins") or ())]


def _put(entry: exp.Expr, named: Named, reasons: Reasons) -> None:
    """Replace an entry by a call, if it is a query that answers when windows end."""
    query = _query_of(entry, named)
    if query is None or not _answers(query, reasons):
        return
    columns = entry.args["alias"].args.get("columns") if entry.args.get("alias") else None
    if columns:
        return
    call = EndsCall(this="ENDS", input=query.copy())
    call.meta.update(entry.meta)
    table = exp.Table(this=call)
    alias = entry.args.get("alias")
    name = exp.TableAlias(this=exp.to_identifier(entry.alias_or_name or "windows"))
    table.set("alias", name if alias is None else alias.copy())
    if table.args["alias"].this is None:
        table.args["alias"].set("this", name.this)
    table.meta.update(entry.meta)
    entry.replace(table)


def _answers(query: exp.Select, reasons: Reasons) -> bool:
    """Whether a query answers when windows end."""
    return reasons.of_select(query) is not None and any(True for _ in _in_windows(query))


def _in_windows(query: exp.Select) -> Iterator[exp.Table]:
    for one in _from(query):
        if isinstance(one.this, exp.Table) and isinstance(one.this.this, WindowCall):
            yield one.this


def _query_of(entry: exp.Expr, named: Named) -> exp.Select | None:
    """The query that an entry is, or names."""
    tree: exp.Expr | None = None
    if isinstance(entry, exp.Subquery):
        tree = unwrap(entry.this)
    elif isinstance(entry, exp.Table) and isinstance(entry.this, exp.Identifier):
        query = named.get(entry.name.lower())
        tree = None if query is None or query.args["alias"].args.get("columns") else query.this
    return tree if isinstance(tree, exp.Select) else None


def named_around(entry: exp.Expr, sql: str) -> dict[str, exp.CTE]:
    """The queries that some WITH around an entry names."""
    queries: dict[str, exp.CTE] = {}
    around: exp.Expr | None = entry
    while around is not None:
        queries = {**named_queries(around, sql), **queries}
        around = around.parent
    return queries


def _forget_unread(tree: exp.Query) -> None:
    """Remove queries of WITH that are no longer read."""
    for clause in list(tree.find_all(exp.With)):
        remaining = []
        for query in clause.expressions:
            name = query.alias.lower()
            readers = (one for one in tree.find_all(exp.Table) if one.name.lower() == name)
            if any(one.find_ancestor(exp.CTE) is not query for one in readers):
                remaining.append(query)
        if len(remaining) == len(clause.expressions):
            continue
        clause.set("expressions", remaining)
        if not remaining and clause.parent is not None:
            clause.parent.set("with_", None)
