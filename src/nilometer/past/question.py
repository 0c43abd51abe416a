"""A query over stored data, as it is sent to DuckDB, and what it needs of each table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from nilometer.errors import Place, SqlError, UnknownNameError
from nilometer.model.names import nearest
from nilometer.model.time import format_instant, read_instant
from nilometer.past.sqlglot_errors import sqlglot_errors
from nilometer.sql.parse.call_parser import TableCall
from nilometer.sql.parse.dialect import Emit, FromStart, PairWindowNode, StreamWindow, WindowClause
from nilometer.sql.parse.match_parser import MatchCall
from nilometer.sql.parse.places import place_of
from nilometer.sql.parse.window_call_parser import WindowCall

_SCHEMAS: Final = frozenset({"", "public", "nilometer"})
_GO_ON: Final = (
    Emit,
    FromStart,
    MatchCall,
    PairWindowNode,
    StreamWindow,
    TableCall,
    WindowCall,
    WindowClause,
)
_NO_TIME: Final = (None, None)
Bounds = tuple[int | None, int | None]


@dataclass(frozen=True)
class StoredColumns:
    """What a query must know of a table of the past."""

    columns: tuple[str, ...]
    time: str | None = None
    """The columns by which its rows can be skipped before they are read."""


@dataclass(frozen=True)
class TableUse:
    """What a query needs of a table."""

    table: str
    instant: int | None = None
    """FOR SYSTEM_TIME AS OF: as it was then, in microseconds."""
    columns: frozenset[str] = frozenset()
    bounds: Bounds = _NO_TIME
    """Rows outside this inclusive time range do not matter."""
    times: int = 1
    """How often it is read."""


@dataclass(frozen=True)
class PastQuestion:
    """A query in DuckDB's dialect."""

    sql: str
    tables: Mapping[str, TableUse]
    """By the names that the query uses for them."""
    tree: exp.Query
    """What the text was written from."""
    places: Mapping[str, Place] = field(default_factory=dict)
    """Where each column is first named, by lower-case name."""


def goes_on(tree: exp.Expr) -> bool:
    """Whether a query runs on over a stream as it comes: it has a window, or an EMIT clause."""
    return any(isinstance(one, _GO_ON) for one in tree.walk())


def read_question(
    tree: exp.Query,
    sql: str,
    known: Mapping[str, StoredColumns],
    value: Callable[[str], Any],
) -> PastQuestion:
    """How a query is run; `value` evaluates an expression without columns."""
    tree = tree.copy()
    places: dict[str, Place] = {}
    for column in tree.find_all(exp.Column):
        places.setdefault(column.name.lower(), place_of(column.this, sql))
    name_columns(tree)
    uses: dict[str, TableUse] = {}
    for entry in list(_stored_tables(tree)):
        table = _find(entry, known, sql)
        use = TableUse(table, _instant(entry, sql, value))
        name = table if use.instant is None else f"{table} at {format_instant(use.instant)}"
        needs = replace(
            use,
            columns=_columns_of(tree, known[table]),
            bounds=_bounds(entry, known[table].time, value),
        )
        before = uses.get(name)
        uses[name] = needs if before is None else _both(before, needs)
        _rename(entry, name)
    return PastQuestion(duckdb_text(tree), uses, tree, places)


def duckdb_text(tree: exp.Query) -> str:
    """A query in DuckDB's dialect."""
    with sqlglot_errors("this is not supported in a query over stored data"):
        return tree.sql(dialect="duckdb", unsupported_level=ErrorLevel.RAISE, comments=False)


def name_columns(tree: exp.Query) -> None:
    """Name unnamed columns after their functions, as PostgreSQL does."""
    select = tree
    while isinstance(select, exp.SetOperation | exp.Subquery):
        select = select.this
    if isinstance(select, exp.Select):
        select.set("expressions", [_named(one) for one in select.expressions])


def _named(tree: exp.Expr) -> exp.Expr:
    inner = tree.this if isinstance(tree, exp.WithinGroup | exp.Filter | exp.Window) else tree
    if isinstance(inner, exp.Dot):
        inner = inner.expression
    match inner:
        case exp.Alias() | exp.Column() | exp.Star() | exp.Identifier():
            return tree
        case exp.Cast():
            name = inner.this.name if isinstance(inner.this, exp.Column) else "?column?"
        case exp.Case() | exp.Coalesce():
            name = inner.key
        case exp.CurrentVersion():
            name = "version"
        case exp.Anonymous():
            name = inner.name
        case exp.Func():
            name = inner.sql_name()
        case _:
            name = "?column?"
    return exp.alias_(tree, name.lower(), quoted=True)


def _stored_tables(tree: exp.Expr) -> Iterator[exp.Table]:
    """The tables that a query names, without those that it defines itself."""
    for entry in tree.find_all(exp.Table):
        if isinstance(entry.this, exp.Identifier) and not _is_own(entry):
            yield entry


def _is_own(entry: exp.Table) -> bool:
    """Whether a name refers to an enclosing WITH, and not to one that it is itself part of."""
    if entry.args.get("db") is not None:
        return False
    at: exp.Expr | None = entry
    inside: exp.Expr | None = None
    while at is not None:
        own = at if isinstance(at, exp.With) else at.args.get("with_")
        if own is not None and entry.name.lower() in _known_names(own, inside):
            return True
        if isinstance(at, exp.CTE):
            inside = at
        elif isinstance(at, exp.With):
            at = at.parent  # its names were checked
        at = None if at is None else at.parent
    return False


def _known_names(own: exp.With, inside: exp.Expr | None) -> set[str]:
    """The names of a WITH that are visible within one of its queries, or after all of them."""
    names = set[str]()
    for one in own.expressions:
        if one is inside and not own.recursive:
            break
        names.add(one.alias.lower())
        if one is inside:
            break
    return names


def _find(entry: exp.Table, known: Mapping[str, StoredColumns], sql: str) -> str:
    if entry.args.get("catalog") is not None or entry.db.lower() not in _SCHEMAS:
        raise UnknownNameError(
            f"there is no schema {entry.db}", place=place_of(entry, sql), hint="leave it out"
        )
    for name in known:
        if name.lower() == entry.name.lower():
            return name
    raise UnknownNameError(
        f"there is no stream, table or query {entry.name}",
        place=place_of(entry, sql),
        hint=nearest(entry.name, known),
    )


def _instant(entry: exp.Table, sql: str, value: Callable[[str], Any]) -> int | None:
    version = entry.args.get("version")
    if version is None:
        return None
    place = place_of(entry, sql)
    if version.name != "TIMESTAMP" or version.args.get("kind") != "AS OF":
        raise SqlError(
            "FOR SYSTEM_TIME takes only AS OF an instant",
            place=place,
            hint="write FOR SYSTEM_TIME AS OF '…'",
        )
    instant = _micros(version.expression, value)
    if instant is None:
        raise SqlError(
            "cannot read the instant",
            place=place,
            hint="write FOR SYSTEM_TIME AS OF '2026-01-31 12:00:00'",
        )
    return instant


def _micros(tree: exp.Expr, value: Callable[[str], Any]) -> int | None:
    """The instant that an expression without columns evaluates to."""
    if any(isinstance(one, exp.Column | exp.Query) for one in tree.walk()):
        return None
    with sqlglot_errors("this is not supported in a query over stored data"):
        text = tree.sql(dialect="duckdb", comments=False)
    instant = value(f"CAST({text} AS TIMESTAMPTZ)")
    if isinstance(instant, datetime):
        return read_instant(instant)
    return None


def _columns_of(tree: exp.Expr, table: StoredColumns) -> frozenset[str]:
    """The columns that may matter: those whose names occur, or all where a whole row is used."""
    names = {one.name.lower() for one in tree.find_all(exp.Identifier)}
    used = frozenset(one for one in table.columns if one.lower() in names)
    return frozenset(table.columns) if not used or _reads_rows(tree) else used


def _reads_rows(tree: exp.Expr) -> bool:
    """Whether part of a query may refer to all columns of a table."""
    if any(not isinstance(one.parent, exp.Count) for one in tree.find_all(exp.Star)):
        return True
    if any(one.method == "NATURAL" for one in tree.find_all(exp.Join)) or tree.find(exp.Pivot):
        return True
    entries = {one.alias_or_name.lower() for one in tree.find_all(exp.Table)}
    return any(not one.table and one.name.lower() in entries for one in tree.find_all(exp.Column))


def _bounds(entry: exp.Table, time: str | None, value: Callable[[str], Any]) -> Bounds:
    """The time range that the WHERE of its own SELECT admits."""
    select = entry.find_ancestor(exp.Select)
    if time is None or select is None or not is_direct(entry, select):
        return _NO_TIME
    where = select.args.get("where")
    low: int | None = None
    high: int | None = None
    for condition in _conjuncts(where.this) if where is not None else ():
        for is_low, instant in _limits(condition, entry, time, value):
            if is_low:
                low = instant if low is None else max(low, instant)
            else:
                high = instant if high is None else min(high, instant)
    return low, high


def is_direct(entry: exp.Expr, select: exp.Select) -> bool:
    """Whether a table, or a subquery, is in FROM directly, or joined there.

    This includes outer joins: an unmatched row has NULL there, which a comparison refuses.
    """
    joins = select.args.get("joins") or []
    source = select.args.get("from_")
    return (source is not None and source.this is entry) or any(
        join.this is entry for join in joins
    )


def _conjuncts(tree: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(tree, exp.And):
        yield from _conjuncts(tree.left)
        yield from _conjuncts(tree.right)
    elif isinstance(tree, exp.Paren):
        yield from _conjuncts(tree.this)
    else:
        yield tree


def _limits(
    tree: exp.Expr, entry: exp.Table, time: str, value: Callable[[str], Any]
) -> Iterator[tuple[bool, int]]:
    """The bound that a condition sets on the time: whether it is a lower one, and its value."""
    if isinstance(tree, exp.Between) and _is_time(tree.this, entry, time):
        for is_low, one in ((True, tree.args["low"]), (False, tree.args["high"])):
            if (is_low or not _is_volatile(one)) and (bound := _micros(one, value)) is not None:
                yield is_low, bound
    if not isinstance(tree, exp.LT | exp.LTE | exp.GT | exp.GTE | exp.EQ):
        return
    for column, other, is_right in ((tree.left, tree.right, True), (tree.right, tree.left, False)):
        if not _is_time(column, entry, time) or (bound := _micros(other, value)) is None:
            continue
        if isinstance(tree, exp.EQ):
            yield True, bound
        is_low = isinstance(tree, exp.GT | exp.GTE) == is_right
        if isinstance(tree, exp.EQ) or not is_low:
            if not _is_volatile(other):
                yield False, bound
        else:
            yield True, bound


def _is_volatile(tree: exp.Expr) -> bool:
    """Whether an expression may have another value when the query runs."""
    return any(isinstance(one, exp.Func) and not isinstance(one, exp.Cast) for one in tree.walk())


def _is_time(tree: exp.Expr, entry: exp.Table, time: str) -> bool:
    return (
        isinstance(tree, exp.Column)
        and tree.name.lower() == time.lower()
        and tree.table.lower() in ("", entry.alias_or_name.lower())
        and (bool(tree.table) or not (entry.find_ancestor(exp.Select) or entry).args.get("joins"))
    )


def _both(left: TableUse, right: TableUse) -> TableUse:
    (low, high), (other_low, other_high) = left.bounds, right.bounds
    return replace(
        left,
        columns=left.columns | right.columns,
        bounds=(
            None if low is None or other_low is None else min(low, other_low),
            None if high is None or other_high is None else max(high, other_high),
        ),
        times=left.times + right.times,
    )


def _rename(entry: exp.Table, name: str) -> None:
    """Make an entry name a table as DuckDB knows it."""
    if name != entry.name and not entry.alias:
        entry.set("alias", exp.TableAlias(this=exp.to_identifier(entry.name, quoted=True)))
    entry.set("this", exp.to_identifier(name, quoted=True))
    for part in ("db", "catalog", "version"):
        entry.set(part, None)
