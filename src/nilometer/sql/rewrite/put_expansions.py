"""UNNEST, LATERAL VIEW and explode in the select list, as entries of FROM of one form."""

from __future__ import annotations

from typing import ClassVar, Final

from sqlglot import exp

from nilometer.errors import SqlError
from nilometer.sql.parse.over_calls import HIDDEN
from nilometer.sql.parse.places import place_of, put_at
from nilometer.sql.parse.put_rows import one_row

_LISTED: Final = "exploded"


class ExpandCall(exp.Expression):
    """The items of an array, or of a map, each as a row.

    Next to an item is its number, counted from `first`, if that is not None: before it, or
    after it.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "outer": False,
        "first": False,
        "is_last": False,
        "columns": False,
    }


def put_expansions(tree: exp.Query, sql: str) -> exp.Query:
    """The tree with entries of FROM instead of everything that makes rows from arrays."""
    if tree.find(exp.Unnest, exp.Lateral, exp.Explode) is None:
        return tree
    copied = tree.copy()
    for select in list(copied.find_all(exp.Select)):
        _put_listed(select, sql)
        _put_laterals(select, sql)
        first = select.args.get("from_")
        if first is not None and isinstance(first.this, exp.Unnest):  # of constants
            joins = [exp.Join(this=first.this), *(select.args.get("joins") or ())]
            select.set("joins", joins)
            first.set("this", put_at(one_row(), place_of(first, sql)))
        for join in select.args.get("joins") or ():
            if isinstance(join.this, exp.Unnest | exp.Lateral) or _is_generator(join.this):
                _put_join(join, sql)
    return copied


def _is_generator(entry: exp.Expr) -> bool:
    return isinstance(entry, exp.Table) and isinstance(entry.this, exp.Explode)


def _put_join(join: exp.Join, sql: str) -> None:
    """An entry after a comma, CROSS JOIN, or LEFT JOIN … ON TRUE."""
    side, condition = str(join.args.get("side") or "").upper(), join.args.get("on")
    is_true = condition is None or (isinstance(condition, exp.Boolean) and condition.this)
    if side not in ("", "LEFT") or not is_true or join.args.get("using"):
        raise SqlError(
            "the items of an array can only be joined with their own row",
            place=place_of(join, sql),
            hint="write CROSS JOIN UNNEST(…) AS u (x), or LEFT JOIN UNNEST(…) AS u (x) ON TRUE",
        )
    entry = _entry(join.this, sql)
    entry.this.set("outer", bool(entry.this.args.get("outer")) or side == "LEFT")
    join.replace(exp.Join(this=entry, kind="CROSS"))


def _put_laterals(select: exp.Select, sql: str) -> None:
    laterals = select.args.get("laterals") or ()
    for lateral in laterals:
        if isinstance(lateral.this, exp.Explode):
            select.append("joins", exp.Join(this=_entry(lateral, sql), kind="CROSS"))
    left = [one for one in laterals if not isinstance(one.this, exp.Explode)]
    select.set("laterals", left or None)


def _put_listed(select: exp.Select, sql: str) -> None:
    """explode(a) AS x in the select list; a list has at most one."""
    listed = [item for item in select.expressions if isinstance(_unaliased(item), exp.Explode)]
    if not listed:
        return
    if len(listed) > 1:
        raise SqlError(
            "a SELECT list can unnest at most one array",
            place=place_of(listed[1], sql),
            hint="write FROM …, UNNEST(a) AS u (x), UNNEST(b) AS v (y)",
        )
    (item,) = listed
    names, place = _names_of(item), place_of(item, sql)
    if not names and any(isinstance(one, exp.Star) for one in select.expressions):
        raise SqlError(
            "explode next to a star needs an alias",
            place=place,
            hint="write explode(a) AS x, or posexplode(a) AS (i, x)",
        )
    entry = _call_entry(_unaliased(item), _LISTED, names, sql)
    entry.meta[HIDDEN] = names  # a star does not include them
    table = exp.to_identifier(_LISTED)
    shown: list[exp.Expr] = [exp.to_identifier(name, quoted=True) for name in names]
    columns = [
        put_at(exp.Column(this=one, table=table.copy()), place) for one in shown or [exp.Star()]
    ]
    items = select.expressions
    at = next(number for number, one in enumerate(items) if one is item)
    select.set("expressions", [*items[:at], *columns, *items[at + 1 :]])
    select.append("joins", exp.Join(this=entry, kind="CROSS"))


def _unaliased(item: exp.Expr) -> exp.Expr:
    return item.this if isinstance(item, exp.Alias | exp.Aliases) else item


def _names_of(item: exp.Expr) -> list[str]:
    if isinstance(item, exp.Aliases):
        return [name.name for name in item.expressions]
    return [item.alias] if isinstance(item, exp.Alias) else []


def _entry(entry: exp.Expr, sql: str) -> exp.Table:
    """UNNEST(a) [WITH ORDINALITY] AS u (x), LATERAL explode(a) AS u (x), or a LATERAL VIEW."""
    alias = entry.args.get("alias")
    names = [one.name for one in alias.args.get("columns") or ()] if alias is not None else []
    name = entry.alias or _LISTED
    window = None if alias is None else alias.args.get("stream_window")
    if window is not None:
        raise SqlError(
            "items have the window of the row that contains their array",
            place=place_of(window, sql),
            hint="write the window after the stream: FROM A [RANGE 5 SECONDS], UNNEST(A.x) AS u",
        )
    if isinstance(entry, exp.Unnest):
        if len(entry.expressions) != 1:
            raise SqlError(
                "UNNEST takes one array",
                place=place_of(entry, sql),
                hint="zip them first: UNNEST(arrays_zip(a, b)) AS u (x)",
            )
        offset = entry.args.get("offset")
        if isinstance(offset, exp.Identifier):
            names.append(offset.name)
        call = ExpandCall(this=entry.expressions[0], columns=names)
        if offset:
            call.set("first", 1)
            call.set("is_last", True)
        return _table(call, name, entry, sql)
    inner = entry.this
    if isinstance(inner, exp.Query | exp.Subquery):
        raise SqlError(
            "a subquery in FROM cannot refer to other sources of the same FROM",
            place=place_of(entry, sql),
            detail="LATERAL is only supported before explode and posexplode",
            hint="join it: JOIN B ON B.k = A.k; or take one value in the list, "
            "(SELECT MAX(w) FROM B [RANGE 1 HOUR] WHERE B.k = A.k) AS w; or number its rows, "
            "QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY w) <= 3, and join these",
        )
    if not isinstance(inner, exp.Explode):
        raise SqlError(
            "LATERAL is only allowed before explode and posexplode",
            place=place_of(entry, sql),
            hint="write LATERAL explode(a) AS u (x)",
        )
    table = _call_entry(inner, name, names, sql)
    table.this.set("outer", bool(table.this.args.get("outer")) or bool(entry.args.get("outer")))
    return table


def _call_entry(call: exp.Expr, name: str, names: list[str], sql: str) -> exp.Table:
    expanded = ExpandCall(this=call.this, outer=isinstance(call, exp.ExplodeOuter), columns=names)
    if isinstance(call, exp.Posexplode):
        expanded.set("first", 0)
    return _table(expanded, name, call, sql)


def _table(call: ExpandCall, name: str, written: exp.Expr, sql: str) -> exp.Table:
    place = place_of(written, sql)
    alias = exp.TableAlias(this=exp.to_identifier(name))
    table = exp.Table(this=put_at(call, place), alias=alias)
    put_at(table, place)
    return table
