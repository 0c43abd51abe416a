"""Other ways to write time windows, as table functions: later steps know only those.

`S [RANGE 1 HOUR SLIDE 5 MINUTES]` is HOP. `GROUP BY window(ts, '1 minute')`, `session_window(…)`
and, over a stream without a window, `GROUP BY date_trunc('minute', ts)` put the stream of FROM
into windows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from nilometer.errors import SqlError
from nilometer.kernels.local_times import begin_of_1970
from nilometer.model.time_windows import (
    RESOLUTION,
    CalendarUnit,
    CalendarWindows,
    HoppingWindows,
    InstantWindows,
    SessionWindows,
    TimeWindows,
)
from nilometer.sql.catalog import UTC, Catalog
from nilometer.sql.expressions.aggregate_calls import aggregates_in
from nilometer.sql.parse.dialect import Emit, StreamWindow
from nilometer.sql.parse.find_names import find
from nilometer.sql.parse.match_parser import MatchCall
from nilometer.sql.parse.places import place_of, put_at
from nilometer.sql.parse.window_call_parser import WindowCall
from nilometer.sql.rewrite.cut_units import LENGTHS, bucket_of, cut_time, windows_of_unit
from nilometer.sql.rewrite.modes import Reasons, unwrap
from nilometer.sql.rewrite.name_windows import NamedWindows
from nilometer.sql.rewrite.put_unions import UnionCall
from nilometer.sql.rewrite.stream_times import StreamTimes
from nilometer.sql.rewrite.subqueries import subquery_columns
from nilometer.sql.rewrite.window_calls import WINDOW_FUNCTIONS, read_window_call

_ANYWHERE: Final = ("SECOND", "MINUTE")
"""Units that begin at the same instants in all time zones."""
_CHANGING: Final = ("distinct", "group", "having", "order", "limit", "offset", "windows")
"""Clauses that make an answer change, or that say how rows of streams join."""


def put_in_windows(tree: exp.Query, sql: str, catalog: Catalog) -> exp.Query:
    """The query with all its time windows as table functions."""
    copied = tree.copy()
    changed = False
    for entry in list(copied.find_all(exp.Table, exp.Subquery)):
        changed |= _put_sliding(entry)
    times = StreamTimes(sql, catalog)
    for select in list(copied.find_all(exp.Select)):
        changed |= _GroupedWindows(select, sql, catalog, times).put()
    changed |= _put_instants(copied, catalog, Reasons(sql, catalog.functions))
    return copied if changed else tree


def _comes_and_goes(entry: exp.Expr, reasons: Reasons) -> bool:
    """Whether a query in FROM retracts rows, or would on its own."""
    if not isinstance(entry, exp.Subquery):
        return False
    alone = [one for one in entry.find_all(exp.Select) if not one.args.get("joins")]
    windows = (one.args["from_"].find(StreamWindow) for one in alone if one.args.get("from_"))
    return reasons.of_query(entry.this, {}) is not None or any(windows)


def _put_instants(tree: exp.Query, catalog: Catalog, reasons: Reasons) -> bool:
    """Put a stream into windows of an instant, if it is joined with static tables alone.

    Then outer joins, EXISTS and IN concern each row by itself: results are appended.
    """
    select = unwrap(tree)
    if not isinstance(select, exp.Select) or select.args.get("from_") is None:
        return False
    if any(select.args.get(clause) for clause in _CHANGING) or tree.find(WindowCall, Emit):
        return False
    joins = select.args.get("joins") or []
    entries = [select.args["from_"].this, *(join.this for join in joins)]
    named = {query.alias.lower() for query in tree.find_all(exp.CTE)}
    streams = [entry for entry in entries if not is_static(entry, catalog, named)]
    where = select.args.get("where")
    parts = [*([] if where is None else [where]), *subquery_columns(select)]
    queries = [query for one in parts for query in one.find_all(exp.Select)]
    has_others = any(_is_answer(entry, reasons) for entry in entries if entry not in streams)
    if len(streams) != 1 or not (queries or has_others or any(join.side for join in joins)):
        return False
    keeps_stream = {"": True, "LEFT": False, "RIGHT": True, "FULL": None}
    for join in joins:  # rows of the stream are kept by outer joins, those of tables are not
        wanted = keeps_stream.get(str(join.side).upper())
        if wanted is None or (join.side and wanted is not (join.this is streams[0])):
            return False
    if not all(is_static(query, catalog, named) for query in queries):
        return False
    entry = streams[0]
    alias = entry.args.get("alias")
    if alias is not None and alias.args.get("stream_window"):
        return False
    is_appended = isinstance(entry.this, MatchCall | UnionCall)
    is_other = isinstance(entry.this, exp.Func) or entry.name.lower() in named
    if not is_appended and (is_other or _comes_and_goes(entry, reasons)):
        return False
    _replace(entry, WindowCall(this="FROM", input=entry.copy(), windows=InstantWindows()))
    return True


def _is_answer(entry: exp.Expr, reasons: Reasons) -> bool:
    """Whether a query in FROM computes over several rows, such as groups, or OVER."""
    if not isinstance(entry, exp.Subquery):
        return False
    return entry.find(exp.Window) is not None or reasons.of_query(entry.this, {}) is not None


def is_static_entry(entry: exp.Expr, catalog: Catalog) -> bool:
    """Whether an entry of FROM, or the query of WITH that it names, reads static tables alone."""
    around: exp.Expr | None = entry
    named: dict[str, exp.Expr] = {}
    while around is not None:
        clause = around.args.get("with_")
        queries = () if clause is None else clause.expressions
        named = {**{one.alias.lower(): one.this for one in queries}, **named}
        around = around.parent
    is_named = isinstance(entry, exp.Table) and entry.name.lower() in named
    tree = named[entry.name.lower()] if is_named else entry
    return is_static(tree, catalog, set(named))


def is_static(tree: exp.Expr, catalog: Catalog, named: Collection[str]) -> bool:
    """Whether all that a query or an entry of FROM reads are static tables, and no name of WITH."""
    relations = list(catalog.relations.values())
    tables = [tree] if isinstance(tree, exp.Table) else list(tree.find_all(exp.Table))
    for table in tables:
        if not isinstance(table.this, exp.Identifier) or table.name.lower() in named:
            return False
        relation = find(table.this, relations)
        if relation is None or not relation.is_table:
            return False
    return bool(tables) or tree.find(exp.Values) is not None


def _put_sliding(entry: exp.Expr) -> bool:
    """Put an entry followed by a sliding window into windows."""
    alias = entry.args.get("alias")
    window = None if alias is None else alias.args.get("stream_window")
    if window is None or window.args.get("windows") is None:
        return False
    inner = entry.copy()
    inner.args["alias"].set("stream_window", None)
    if not inner.alias and isinstance(entry, exp.Table):
        inner.set("alias", None)
    _replace(entry, WindowCall(this="HOP", input=inner, windows=window.args["windows"]))
    return True


def _replace(entry: exp.Expr, call: WindowCall) -> None:
    """Replace an entry by a call, under the same name."""
    name = exp.to_identifier(entry.alias_or_name or call.function.lower())
    call.meta.update(entry.meta)
    table = exp.Table(this=call, alias=exp.TableAlias(this=name))
    table.meta.update(entry.meta)
    entry.replace(table)


@dataclass(frozen=True)
class _Grouping:
    """A key of GROUP BY that cuts time."""

    key: exp.Expr
    """Its expression in GROUP BY, or what replaces it there."""
    call: exp.Expr
    time: exp.Expr
    windows: TimeWindows
    is_value: bool
    """Whether it can also be computed from a row: date_trunc, and dates."""


@dataclass(frozen=True)
class _GroupedWindows:
    """A query whose GROUP BY may cut time."""

    select: exp.Select
    sql: str
    catalog: Catalog
    times: StreamTimes

    def put(self) -> bool:
        """Put the stream of FROM into windows, if the groups say so."""
        if self.select.args.get("group") is None or self.select.args.get("from_") is None:
            return False
        self._list_all()
        groupings = list(self._groupings())
        chosen = [one for one in groupings if not one.is_value] or self._finest(groupings)
        if not chosen:
            return False
        first = chosen[0]
        if any(other.windows != first.windows for other in chosen[1:]):
            raise SqlError(
                "a query can only have one kind of time windows",
                place=place_of(chosen[1].call, self.sql),
                hint="write one query for each, and combine them with UNION ALL",
            )
        self._put(first, [one for one in chosen if not one.is_value])
        return True

    def _list_all(self) -> None:
        """Write GROUP BY ALL as the numbers of all columns of the list without aggregates."""
        group, items = self.select.args["group"], self.select.expressions
        if not group.args.get("all") or self.select.is_star:
            return
        place = place_of(group, self.sql)
        aggregated = {one.alias.lower() for one in items if self._is_aggregated(one)} - {""}
        keys = [
            put_at(exp.Literal.number(number), place)
            for number, item in enumerate(items, 1)
            if not self._is_aggregated(item)
            and not any(one.name.lower() in aggregated for one in item.find_all(exp.Column))
        ]
        group.set("all", None)
        group.set("expressions", keys)

    def _is_aggregated(self, item: exp.Expr) -> bool:
        """Whether a column of the list computes over several rows."""
        is_window = item.find(exp.Window) is not None
        return is_window or any(True for _ in aggregates_in(item, self.catalog.functions))

    def _groupings(self) -> Iterator[_Grouping]:
        for key in self.select.args["group"].expressions:
            call = self._resolved_key(key)
            if isinstance(call, exp.Dot) and call.name.lower() in ("start", "end"):
                call = call.this
            if isinstance(call, exp.Anonymous) and call.name.upper() in WINDOW_FUNCTIONS:
                yield _Grouping(key, call, *read_window_call(call, self.sql), is_value=False)
            elif (bucket := bucket_of(call)) is not None:
                windows = self._bucketed(*bucket)
                if windows is not None:
                    yield _Grouping(key, call, bucket[0], windows, is_value=True)
            elif (cut := cut_time(call)) is not None:
                windows = self._truncated(*cut)
                if windows is not None:
                    yield _Grouping(key, call, cut[0], windows, is_value=True)

    def _resolved_key(self, key: exp.Expr) -> exp.Expr:
        """A key, or the column of the list that it names or numbers."""
        items = self.select.expressions
        if isinstance(key, exp.Literal) and not key.is_string and key.this.isdecimal():
            place = int(key.this) - 1
            return items[place].unalias() if 0 <= place < len(items) else key
        if isinstance(key, exp.Column) and not key.table:
            for item in items:
                if isinstance(item, exp.Alias) and item.alias.lower() == key.name.lower():
                    return item.unalias()
        return key

    def _cuts(self, time: exp.Expr) -> bool:
        """Whether it is the time of a stream that has no window.

        The stream stands alone, or is joined with static tables.
        """
        if not self._is_beside_tables() or not isinstance(time, exp.Column):
            return False
        is_own = time.table.lower() in ("", self._entry.alias_or_name.lower())
        return is_own and time.name.lower() in self.times.names(self._entry)

    def _bucketed(self, time: exp.Expr, size: int) -> TimeWindows | None:
        """The windows of time_bucket, which are counted from 1970 in the session's time zone."""
        if not self._cuts(time) or size % RESOLUTION or not self.catalog.zone:
            return None
        if size % LENGTHS["DAY"] == 0:
            return HoppingWindows(size, size) if self.catalog.zone == UTC else None
        return HoppingWindows(size, size, begin_of_1970(self.catalog.zone) % size)

    def _truncated(self, time: exp.Expr, unit: str) -> TimeWindows | None:
        """The windows of date_trunc."""
        if not self._cuts(time):
            return None
        if unit not in _ANYWHERE and self.catalog.zone != UTC:
            return None
        return windows_of_unit(unit)

    def _is_beside_tables(self) -> bool:
        """Whether all that is joined with the first entry are static tables that keep its rows."""
        joins = self.select.args.get("joins") or ()
        return all(
            str(join.side or "").upper() in ("", "LEFT")
            and is_static_entry(join.this, self.catalog)
            for join in joins
        )

    def _finest(self, groupings: list[_Grouping]) -> list[_Grouping]:
        """The key with the shortest windows: a group of several is within one of these."""

        def rank(one: _Grouping) -> tuple[bool, int]:
            windows = one.windows
            if isinstance(windows, CalendarWindows):
                return True, list(CalendarUnit).index(windows.unit)
            assert isinstance(windows, HoppingWindows)
            return False, windows.size

        return sorted(groupings, key=rank)[:1]

    @property
    def _entry(self) -> exp.Expr:
        entry: exp.Expr = self.select.args["from_"].this
        return entry

    def _put(self, first: _Grouping, calls: list[_Grouping]) -> None:
        entry = self._entry
        is_session = isinstance(first.windows, SessionWindows)
        if not self._is_beside_tables() or (is_session and self.select.args.get("joins")):
            raise SqlError(
                "to put the rows of a join into time windows, use a subquery",
                place=place_of(first.call, self.sql),
                hint="write … FROM TUMBLE((SELECT … FROM A, B WINDOW = 5 SECONDS), 1 MINUTE) "
                "GROUP BY window_end",
            )
        alias = entry.args.get("alias")
        window = alias.args.get("stream_window") if alias is not None else None
        if window is not None or isinstance(entry.this, WindowCall):
            raise SqlError(
                f"{entry.alias_or_name} has two windows",
                place=place_of(first.call, self.sql),
                hint="leave out the one in FROM",
            )
        others = [
            self._resolved_key(key).copy()
            for key in self.select.args["group"].expressions
            if not any(key is one.key for one in calls)
        ]
        inner = entry.copy()
        if is_session and self.select.args.get("where") is not None:
            inner = self._filtered(entry)
        call = WindowCall(
            this="SESSION" if is_session else "TUMBLE",
            input=inner,
            windows=first.windows,
            time=first.time.copy(),
            expressions=others if is_session else [],
        )
        self._name_windows(calls)
        _replace(entry, call)

    def _filtered(self, entry: exp.Expr) -> exp.Subquery:
        """The entry with the conditions of WHERE: sessions consist of the remaining rows."""
        where = self.select.args["where"]
        self.select.set("where", None)
        query = exp.Select(
            expressions=[exp.Star()], from_=exp.From(this=entry.copy()), where=where.copy()
        )
        name = exp.TableAlias(this=exp.to_identifier(entry.alias_or_name))
        subquery = exp.Subquery(this=query, alias=name)
        subquery.meta.update(entry.meta)
        return subquery

    def _name_windows(self, calls: list[_Grouping]) -> None:
        """Put the columns of windows where GROUP BY and the list name a window."""
        if not calls:
            return
        group = self.select.args["group"]
        keys = [key for key in group.expressions if not any(key is one.key for one in calls)]
        named = NamedWindows.of(self.select, [one.call for one in calls], self.sql)
        bounds = named.bounds()
        named.put()
        group.set("expressions", [*bounds, *keys])
