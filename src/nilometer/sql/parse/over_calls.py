"""OVER, as something that stands in FROM: rows, and what is said of each and those around it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import ClassVar, Final

from sqlglot import exp

from nilometer.errors import SqlError, SqlWindowError
from nilometer.sql.parse.dialect import StreamWindow
from nilometer.sql.parse.places import conjuncts, place_of, put_at, text_of
from nilometer.sql.parse.rank_limits import find_limit

HIDDEN: Final = "hidden"
"""Where entries and calls note columns that nobody has written: no star stands for them."""
RANK: Final = "over#rank"
"""The column of ROW_NUMBER() where rows come and go."""
_PREFIX: Final = "over#"
_JOINED: Final = ("group", "having", "joins", "windows")


class OverCall(exp.Expression, exp.Func):
    """The rows of an entry of FROM, with what some windows say: all of one partition."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "input": True, "expressions": True}


class TableOverCall(exp.Expression, exp.Func):
    """The rows of an entry of FROM that reads static tables alone, with what windows say."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "input": True, "expressions": True}


class TopCall(exp.Expression, exp.Func):
    """The first rows of each partition of an entry of FROM, in the order of some values."""

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
) -> exp.Query:
    """The query with all that stands before OVER as columns of its stream.

    `changes` tells whether the rows of an entry of FROM come and go, `is_static` whether it reads
    static tables alone, `in_order` by which columns its rows come if they are answers of windows.
    """
    if tree.find(exp.Window) is None:
        return tree
    copied = tree.copy()
    for select in list(copied.find_all(exp.Select)):
        if select.args.get("from_") is None:
            continue
        found = list(windows_of(select))
        entry = select.args["from_"].this
        is_number = any(isinstance(one.this, exp.RowNumber) for one in found)
        if found and is_static(entry):
            _put_static(select, found, sql)
        elif found and all(_is_by(one, in_order(entry)) for one in found):
            _put(select, found, sql)
        elif is_number and (changes(entry) or _is_ranked(select, entry, found)):
            _put_top(select, found, sql)
        elif found:
            _put(select, found, sql)
    return copied


def _is_by(window: exp.Window, columns: Collection[str]) -> bool:
    """Whether a window orders its rows by one of these columns, and is not of one value of it."""
    order = window.args.get("order")
    terms = [] if order is None else order.expressions
    if len(terms) != 1 or terms[0].args.get("desc") or not isinstance(terms[0].this, exp.Column):
        return False
    partition = window.args.get("partition_by") or ()
    is_by = terms[0].this.name.lower() in columns
    return is_by and not any(one.name.lower() in columns for one in partition)


def refuse_window(entry: exp.Expr, what: str, sql: str) -> None:
    """Refuse a window behind a stream that says nothing where others cut its time."""
    alias = entry.args.get("alias")
    window = None if alias is None else alias.args.get("stream_window")
    if window is not None:
        raise SqlWindowError(
            f"{what} has windows of its own",
            place=place_of(window, sql),
            hint="leave the one behind the stream out",
        )


def windows_of(select: exp.Select) -> Iterator[exp.Window]:
    """The windows of a query itself, not of those in it."""
    parts = [*select.expressions, select.args.get("qualify")]
    for part in parts:
        for found in part.find_all(exp.Window) if part is not None else ():
            if found.find_ancestor(exp.Select) is select:
                yield found


def _is_ranked(select: exp.Select, entry: exp.Expr, found: list[exp.Window]) -> bool:
    """Whether rows of windows are numbered by their values, and few of them are asked for."""
    terms = found[0].args["order"].expressions if found[0].args.get("order") else []
    by_time = len(terms) == 1 and isinstance(terms[0].this, exp.Column) and terms[0].this.name
    is_number = isinstance(found[0].this, exp.RowNumber) and bool(terms)
    has_window = entry.find(StreamWindow) is not None or any(
        one.args.get("windows") for one in entry.find_all(exp.Select)
    )
    if not is_number or not has_window or find_limit(select, found) is None:
        return False
    return by_time != "_time" or bool(terms[0].args.get("desc"))


def _put_top(select: exp.Select, found: list[exp.Window], sql: str) -> None:
    """Rows that come and go are ranked as far as somebody looks."""
    place = place_of(found[0], sql)
    if len({one.sql() for one in found}) > 1 or not isinstance(found[0].this, exp.RowNumber):
        raise SqlError(
            "of rows that come and go, OVER says ROW_NUMBER() only",
            place=place,
            hint="for LAG, sums and the like leave the window behind the stream out: "
            "FROM Readings, and ROWS or RANGE inside OVER",
        )
    _refuse_clauses(select, found[0], sql, _JOINED)
    limit = find_limit(select, found)
    if limit is None:
        raise SqlError(
            "ROW_NUMBER() needs a largest number: all rows would change with each that comes",
            place=place,
            hint="write QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) <= 3",
        )
    window, entry = found[0], select.args["from_"].this
    order = window.args.get("order")
    if order is None:
        raise SqlError("ROW_NUMBER() needs an ORDER BY", place=place)
    alias = entry.alias_or_name or "input"
    given, hidden = _given(select, entry, alias, sql)
    call = TopCall(
        this="ROW_NUMBER",
        input=given,
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
    for one in found:
        _show(one, RANK, sql)
    entry.replace(shown)
    _qualify(select)


def _put_static(select: exp.Select, found: list[exp.Window], sql: str) -> None:
    """Rows that all are there are looked at in any order."""
    _refuse_clauses(select, found[0], sql, _JOINED)
    entry = select.args["from_"].this
    alias = entry.alias_or_name or "input"
    given, hidden = _given(select, entry, alias, sql)
    windows = [one.copy() for one in found]
    call = TableOverCall(this="OVER", input=given, expressions=windows)
    call.meta.update(entry.meta)
    call.meta[HIDDEN] = list(hidden)
    for number, (one, window) in enumerate(zip(found, windows, strict=True)):
        window.meta["name"] = column_name(0, number)
        _show(one, column_name(0, number), sql)
    table = exp.Table(this=call, alias=exp.TableAlias(this=exp.to_identifier(alias)))
    table.meta.update(entry.meta)
    table.meta[HIDDEN] = [*hidden, *(one.meta["name"] for one in windows)]
    entry.replace(table)
    _qualify(select)


def _show(window: exp.Window, name: str, sql: str) -> None:
    """Put a column in the place of a window; one of the list is named as it is written."""
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
                "OVER looks at the rows of one stream",
                place=place_of(window, sql),
                hint="join and group in a subquery: FROM (SELECT … FROM A, B …) AS S",
            )


def _put(select: exp.Select, found: list[exp.Window], sql: str) -> None:
    _refuse_clauses(select, found[0], sql, _JOINED)
    for clause in ("distinct", "order", "limit", "offset"):
        if select.args.get(clause):
            raise SqlError(
                "what OVER says of rows is appended, one row after the other",
                place=place_of(found[0], sql),
                detail=f"{clause.upper()} asks for an answer that changes",
                hint="put OVER into a subquery with a window: "
                "FROM (SELECT *, LAG(v) OVER (…) AS p FROM A) a [RANGE 1 HOUR]",
            )
    entry = select.args["from_"].this
    refuse_window(entry, "OVER", sql)
    alias = entry.alias_or_name or "input"
    orders = [one.copy() for one in found]
    given, hidden = _given(select, entry, alias, sql)
    for number, windows in enumerate(_by_partition(found)):
        call = OverCall(this="OVER", input=given, expressions=[one.copy() for one in windows])
        call.meta.update(entry.meta)
        call.meta[HIDDEN] = list(hidden)
        if not number:
            call.meta["orders"] = orders
        given = exp.Table(this=call, alias=exp.TableAlias(this=exp.to_identifier(alias)))
        given.meta.update(entry.meta)
        for place, one in enumerate(windows):
            name = column_name(number, place)
            hidden.append(name)
            call.expressions[place].meta["name"] = name
            _show(one, name, sql)
        given.meta[HIDDEN] = list(hidden)
    entry.replace(given)
    _qualify(select)


def _given(select: exp.Select, entry: exp.Expr, alias: str, sql: str) -> tuple[exp.Expr, list[str]]:
    """The rows before anybody looks around: WHERE chooses them, and the list computes of them.

    What is computed of a row alone is computed there, where all of Spark's functions are.
    """
    where, listed = select.args.get("where"), []
    said: set[str] = set()
    for number, item in enumerate(select.expressions):
        value = item.unalias()
        if value.find(exp.Window) is not None or _names_any(value, said):
            said.add(item.alias.lower())
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
    given = exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(alias)))
    given.meta.update(entry.meta)
    given.meta[HIDDEN] = [one.alias for one in listed]
    return given, [one.alias for one in listed]


def _names_any(tree: exp.Expr, names: set[str]) -> bool:
    """Whether an expression names one of these columns of the list."""
    columns = tree.find_all(exp.Column)
    return any(one.name.lower() in names for one in columns if not one.table)


def column_name(partition: int, number: int) -> str:
    return f"{_PREFIX}{partition}.{number}"


def _by_partition(windows: list[exp.Window]) -> list[list[exp.Window]]:
    """The windows of each partition, in the order of their first."""
    found: dict[str, list[exp.Window]] = {}
    for one in windows:
        by = ", ".join(sorted(part.sql() for part in one.args.get("partition_by") or ()))
        found.setdefault(by, []).append(one)
    return list(found.values())


def _qualify(select: exp.Select) -> None:
    """QUALIFY as WHERE, names of the list replaced by what they stand for."""
    qualify = select.args.get("qualify")
    if qualify is None:
        return
    named = {
        one.alias.lower(): one.this for one in select.expressions if isinstance(one, exp.Alias)
    }

    def meant(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in named:
            return exp.Paren(this=named[node.name.lower()].copy())
        return node

    conditions = [one.transform(meant) for one in conjuncts(qualify.this)]
    select.set("qualify", None)
    select.set("where", exp.Where(this=exp.and_(*conditions, copy=False)))
