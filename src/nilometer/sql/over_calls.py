"""OVER, as something that stands in FROM: rows, and what is said of each and those around it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from sqlglot import exp

from nilometer.errors import SqlError, SqlWindowError
from nilometer.sql.scalars import conjuncts, place_of, put_at

HIDDEN: Final = "hidden"
"""Where entries and calls note columns that nobody has written: no star stands for them."""
_PREFIX: Final = "over#"


class OverCall(exp.Expression, exp.Func):
    """The rows of an entry of FROM, with what some windows say: all of one partition."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "input": True, "expressions": True}


def put_over(tree: exp.Query, sql: str) -> exp.Query:
    """The query with all that stands before OVER as columns of its stream."""
    if tree.find(exp.Window) is None:
        return tree
    copied = tree.copy()
    for select in list(copied.find_all(exp.Select)):
        if select.args.get("from_") is not None and any(True for _ in _windows(select)):
            _put(select, sql)
    return copied


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


def _windows(select: exp.Select) -> Iterator[exp.Window]:
    """The windows of a query itself, not of those in it."""
    parts = [*select.expressions, select.args.get("qualify")]
    for part in parts:
        for found in part.find_all(exp.Window) if part is not None else ():
            if found.find_ancestor(exp.Select) is select:
                yield found


def _put(select: exp.Select, sql: str) -> None:
    found = list(_windows(select))
    for clause in ("group", "having", "joins", "windows"):
        if select.args.get(clause):
            raise SqlError(
                "OVER looks at the rows of one stream",
                place=place_of(found[0], sql),
                hint="join and group in a subquery: FROM (SELECT … FROM A, B …) AS S",
            )
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
            shown = exp.column(exp.to_identifier(name, quoted=True))
            one.replace(put_at(shown, place_of(one, sql)))
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
