"""OVER as an entry of FROM: rows, each with what its window functions compute."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import ClassVar, Final

from sqlglot import exp

from nilometer.errors import SqlError, SqlWindowError
from nilometer.sql.parse.dialect import StreamWindow
from nilometer.sql.parse.places import conjuncts, place_of, put_at, text_of
from nilometer.sql.parse.rank_limits import find_limit

HIDDEN: Final = "hidden"
"""The metadata key by which entries and calls note generated columns, which * leaves out."""
RANK: Final = "over#rank"
"""The column of ROW_NUMBER() where rows are retracted."""
_PREFIX: Final = "over#"
_JOINED: Final = ("group", "having", "joins", "windows")


class OverCall(exp.Expression, exp.Func):
    """The rows of an entry of FROM with the results of some windows, all of one partition."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "input": True, "expressions": True}


class TableOverCall(exp.Expression, exp.Func):
    """The rows of an entry of FROM that are all present at once, with the results of windows.

    That holds for static tables, and for the answers of time windows when they end.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "input": True, "expressions": True}


class TopCall(exp.Expression, exp.Func):
    """The first rows of each partition of an entry of FROM, ordered by some values."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "input": True,
        "partition": False,
        "order": True,
        "limit": True,
    }


def put_over(
    tree: exp.Query,
    sql: str,
    changes: Callable[[exp.Expr], bool],
    is_static: Callable[[exp.Expr], bool],
    in_order: Callable[[exp.Expr], Collection[str]],
    in_windows: Callable[[exp.Expr], Collection[str]],
) -> exp.Query:
    """The query with all window functions as columns of its stream.

    `changes` says whether rows of an entry of FROM are added and retracted, `is_static` whether it
    reads static tables only, `in_order` by which columns its rows are ordered if time windows
    answer, and `in_windows` which of these identify a window.
    """
    if tree.find(exp.Window) is None:
        return tree
    copied = tree.copy()
    for select in reversed(list(copied.find_all(exp.Select))):  # inner queries come first
        if select.args.get("from_") is None:
            continue
        windows = list(windows_of(select))
        entry = select.args["from_"].this
        is_call = isinstance(entry.this, exp.Func)
        is_number = any(isinstance(one.this, exp.RowNumber) for one in windows)
        if windows and (is_static(entry) or _are_within(windows, in_windows(entry))):
            _put_static(select, windows, sql)
        elif windows and not is_call and all(_is_by(one, in_order(entry)) for one in windows):
            _put(select, windows, sql)
        elif is_number and (changes(entry) or _is_ranked(select, entry, windows)):
            _put_top(select, windows, sql)
        elif windows:
            if in_windows(entry):
                _refuse_mixture(windows, in_windows(entry), sql)
            _put(select, windows, sql)
    return copied


def _refuse_mixture(windows: list[exp.Window], columns: Collection[str], sql: str) -> None:
    """Refuse windows of OVER that work neither within each time window nor across them."""
    other = next(one for one in windows if not _are_within([one], columns))
    name = min(columns)  # window_end comes before window_start
    raise SqlError(
        "over time windows, OVER must work either within each window or across consecutive windows",
        place=place_of(other, sql),
        hint=f"write PARTITION BY {name}, … or ORDER BY {name}; not both in one query",
    )


def _is_by(window: exp.Window, columns: Collection[str]) -> bool:
    """Whether a window is ordered by one of these columns, and not partitioned by any."""
    order = window.args.get("order")
    terms = [] if order is None else order.expressions
    if len(terms) != 1 or terms[0].args.get("desc") or not isinstance(terms[0].this, exp.Column):
        return False
    partition = window.args.get("partition_by") or ()
    is_by = terms[0].this.name.lower() in columns
    return is_by and not any(one.name.lower() in columns for one in partition)


def _are_within(windows: list[exp.Window], columns: Collection[str]) -> bool:
    """Whether all are partitioned by one of these columns, and so stay within one time window."""
    for one in windows:
        keys = [by.unnest() for by in one.args.get("partition_by") or ()]
        if not any(isinstance(by, exp.Column) and by.name.lower() in columns for by in keys):
            return False
    return True


def refuse_window(entry: exp.Expr, what: str, sql: str) -> None:
    """Refuse a window after a stream whose time something else already divides."""
    alias = entry.args.get("alias")
    window = None if alias is None else alias.args.get("stream_window")
    if window is not None:
        raise SqlWindowError(
            f"{what} cannot be combined with a window after the stream",
            place=place_of(window, sql),
            hint="leave out the window",
        )


def windows_of(select: exp.Select) -> Iterator[exp.Window]:
    """The windows of a query itself, not of its subqueries."""
    parts = [*select.expressions, select.args.get("qualify")]
    for part in parts:
        for window in part.find_all(exp.Window) if part is not None else ():
            if window.find_ancestor(exp.Select) is select:
                yield window


def _is_ranked(select: exp.Select, entry: exp.Expr, windows: list[exp.Window]) -> bool:
    """Whether rows of windows are numbered by their values, up to a limit."""
    terms = windows[0].args["order"].expressions if windows[0].args.get("order") else []
    by_time = len(terms) == 1 and isinstance(terms[0].this, exp.Column) and terms[0].this.name
    is_number = isinstance(windows[0].this, exp.RowNumber) and bool(terms)
    has_window = entry.find(StreamWindow) is not None or any(
        one.args.get("windows") for one in entry.find_all(exp.Select)
    )
    if not is_number or not has_window or find_limit(select, windows) is None:
        return False
    return by_time != "_time" or bool(terms[0].args.get("desc"))


def _put_top(select: exp.Select, windows: list[exp.Window], sql: str) -> None:
    """Rank rows that are added and retracted, up to the limit that the query asks for."""
    place = place_of(windows[0], sql)
    if len({one.sql() for one in windows}) > 1 or not isinstance(windows[0].this, exp.RowNumber):
        raise SqlError(
            "over rows that are added and retracted, only ROW_NUMBER() is supported",
            place=place,
            hint="for LAG, sums and the like leave out the window after the stream: "
            "FROM Readings, and ROWS or RANGE inside OVER",
        )
    _refuse_clauses(select, windows[0], sql, _JOINED)
    limit = find_limit(select, windows)
    if limit is None:
        raise SqlError(
            "ROW_NUMBER() needs an upper limit: otherwise each new row would change all the others",
            place=place,
            hint="write QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) <= 3",
        )
    window, entry = windows[0], select.args["from_"].this
    order = window.args.get("order")
    if order is None:
        raise SqlError("ROW_NUMBER() needs an ORDER BY", place=place)
    alias = entry.alias_or_name or "input"
    source, hidden = _source_rows(select, entry, alias, sql)
    call = TopCall(
        this="ROW_NUMBER",
        input=source,
        partition=[one.copy() for one in window.args.get("partition_by") or ()],
        order=[one.copy() for one in order.expressions],
        limit=max(limit, 1),
    )
    call.meta.update(entry.meta)
    call.meta[HIDDEN] = list(hidden)
    call.meta["start"], call.meta["end"] = place.start, place.end - 1
    shown = exp.Table(this=call, alias=exp.TableAlias(this=exp.to_identifier(alias)))
    shown.meta.update(entry.meta)
    shown.meta[HIDDEN] = [*hidden, RANK]
    for one in windows:
        _show(one, RANK, sql)
    entry.replace(shown)
    _qualify(select)


def _put_static(select: exp.Select, windows: list[exp.Window], sql: str) -> None:
    """Let windows over rows that are all present have any order."""
    _refuse_clauses(select, windows[0], sql, _JOINED)
    entry = select.args["from_"].this
    alias = entry.alias_or_name or "input"
    source, hidden = _source_rows(select, entry, alias, sql)
    copies = [one.copy() for one in windows]
    call = TableOverCall(this="OVER", input=source, expressions=copies)
    call.meta.update(entry.meta)
    call.meta[HIDDEN] = list(hidden)
    for number, (one, window) in enumerate(zip(windows, copies, strict=True)):
        window.meta["name"] = column_name(0, number)
        _show(one, column_name(0, number), sql)
    table = exp.Table(this=call, alias=exp.TableAlias(this=exp.to_identifier(alias)))
    table.meta.update(entry.meta)
    table.meta[HIDDEN] = [*hidden, *(one.meta["name"] for one in copies)]
    entry.replace(table)
    _qualify(select)


def _show(window: exp.Window, name: str, sql: str) -> None:
    """Replace a window by a column; one of the list keeps its name as written."""
    place = place_of(window, sql)
    shown = put_at(exp.column(exp.to_identifier(name, quoted=True)), place)
    if isinstance(window.parent, exp.Select):
        written = exp.to_identifier(text_of(window, sql), quoted=True)
        shown = put_at(exp.Alias(this=shown, alias=written), place)
    window.replace(shown)


def _refuse_clauses(
    select: exp.Select, window: exp.Window, sql: str, clauses: tuple[str, ...]
) -> None:
    for clause in clauses:
        if select.args.get(clause):
            raise SqlError(
                "OVER needs the rows of exactly one stream",
                place=place_of(window, sql),
                hint="join and group in a subquery: FROM (SELECT … FROM A, B …) AS S",
            )


def _put(select: exp.Select, windows: list[exp.Window], sql: str) -> None:
    _refuse_clauses(select, windows[0], sql, _JOINED)
    for clause in ("distinct", "order", "limit", "offset"):
        if select.args.get(clause):
            raise SqlError(
                "OVER results are appended, one row at a time",
                place=place_of(windows[0], sql),
                detail=f"{clause.upper()} needs an answer that changes",
                hint="put OVER into a subquery with a window: "
                "FROM (SELECT *, LAG(v) OVER (…) AS p FROM A) a [RANGE 1 HOUR]",
            )
    entry = select.args["from_"].this
    refuse_window(entry, "OVER", sql)
    alias = entry.alias_or_name or "input"
    orders = [one.copy() for one in windows]
    source, hidden = _source_rows(select, entry, alias, sql)
    for number, group in enumerate(_by_partition(windows, sql)):
        call = OverCall(this="OVER", input=source, expressions=[one.copy() for one in group])
        call.meta.update(entry.meta)
        call.meta[HIDDEN] = list(hidden)
        if not number:
            call.meta["orders"] = orders
        source = exp.Table(this=call, alias=exp.TableAlias(this=exp.to_identifier(alias)))
        source.meta.update(entry.meta)
        for place, one in enumerate(group):
            name = column_name(number, place)
            hidden.append(name)
            call.expressions[place].meta["name"] = name
            _show(one, name, sql)
        source.meta[HIDDEN] = list(hidden)
    entry.replace(source)
    _qualify(select)


def _source_rows(
    select: exp.Select, entry: exp.Expr, alias: str, sql: str
) -> tuple[exp.Expr, list[str]]:
    """The rows before windows apply: filtered by WHERE, with computed items of the SELECT list.

    What needs a single row only is computed there, where all of Spark's functions are available.
    """
    where, listed = select.args.get("where"), []
    window_aliases: set[str] = set()
    for number, item in enumerate(select.expressions):
        value = item.unalias()
        if value.find(exp.Window) is not None or _names_any(value, window_aliases):
            window_aliases.add(item.alias.lower())
            continue
        if isinstance(value, exp.Column | exp.Star | exp.Literal) or value.is_star:
            continue
        if value.find(exp.Column) is not None:
            name = exp.to_identifier(f"{_PREFIX}item {number}", quoted=True)
            listed.append(exp.Alias(this=value.copy(), alias=name.copy()))
            value.replace(put_at(exp.column(name), place_of(value, sql)))
    if where is None and not listed:
        return entry.copy(), []
    query = exp.Select(
        expressions=[exp.Star(), *listed], from_=exp.From(this=entry.copy()), where=where
    )
    select.set("where", None)
    source = exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(alias)))
    source.meta.update(entry.meta)
    source.meta[HIDDEN] = [one.alias for one in listed]
    return source, [one.alias for one in listed]


def _names_any(tree: exp.Expr, names: set[str]) -> bool:
    """Whether an expression names one of these columns of the SELECT list."""
    columns = tree.find_all(exp.Column)
    return any(one.name.lower() in names for one in columns if not one.table)


def column_name(partition: int, number: int) -> str:
    return f"{_PREFIX}{partition}.{number}"


def _by_partition(windows: list[exp.Window], sql: str) -> list[list[exp.Window]]:
    """The windows of each partition, in order of their first; those that look ahead come last.

    With LEAD a row is emitted once the row that LEAD refers to has arrived: in another order.
    """
    groups: dict[tuple[bool, str], list[exp.Window]] = {}
    for one in windows:
        by = ", ".join(sorted(part.sql() for part in one.args.get("partition_by") or ()))
        groups.setdefault((isinstance(one.this, exp.Lead), by), []).append(one)
    ahead = [group for (is_ahead, _), group in groups.items() if is_ahead]
    if len(ahead) > 1:
        raise SqlError(
            "all LEADs of a query need the same PARTITION BY",
            place=place_of(ahead[1][0], sql),
            detail="a row is emitted when the row that LEAD refers to has arrived",
            hint="write one query for each",
        )
    return [group for (is_ahead, _), group in groups.items() if not is_ahead] + ahead


def _qualify(select: exp.Select) -> None:
    """QUALIFY as WHERE, with names of the SELECT list replaced by their expressions."""
    qualify = select.args.get("qualify")
    if qualify is None:
        return
    named = {
        one.alias.lower(): one.this for one in select.expressions if isinstance(one, exp.Alias)
    }

    def resolved(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in named:
            return exp.Paren(this=named[node.name.lower()].copy())
        return node

    conditions = [one.transform(resolved) for one in conjuncts(qualify.this)]
    select.set("qualify", None)
    select.set("where", exp.Where(this=exp.and_(*conditions, copy=False)))
