"""PIVOT as aggregates with FILTER, UNPIVOT as a join with the names of the columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final

from sqlglot import exp

from nilometer.errors import SqlError
from nilometer.model.names import count
from nilometer.sql.expressions.aggregate_calls import aggregates_in
from nilometer.sql.expressions.growth import copy_of, grow
from nilometer.sql.parse.places import place_of, put_at, text_of

_PIVOTS: Final = "pivots"
_SHORT_HINT: Final = "write PIVOT (SUM(v) FOR k IN ('a', 'b'))"
_LONG_HINT: Final = "write UNPIVOT (value FOR name IN (a, b))"
_ROWS: Final = "unpivoted"
_NAMES: Final = "names of columns"


def put_pivots(tree: exp.Query, sql: str, functions: Collection[str]) -> exp.Query:
    """The query with a subquery for each entry of FROM that has PIVOT or UNPIVOT after it."""
    if tree.find(exp.Pivot) is None:
        return tree
    tree = tree.copy()
    for entry in [one for one in tree.find_all(exp.Table, exp.Subquery) if one.args.get(_PIVOTS)]:
        pivots = entry.args[_PIVOTS]
        entry.set(_PIVOTS, None)
        inner: exp.Expr = entry.copy()
        for pivot in pivots:
            change = _unpivot if pivot.args.get("unpivot") else _pivot
            inner = _as_entry(change(pivot, inner, sql, functions), inner, pivot, sql)
        entry.replace(inner)
    return tree


def _as_entry(query: exp.Select, inner: exp.Expr, pivot: exp.Pivot, sql: str) -> exp.Subquery:
    """A query as an entry of FROM: under the name after it, or that of what it reads."""
    alias = pivot.args.get("alias") or exp.TableAlias()
    if alias.this is None and inner.alias_or_name:
        alias.set("this", exp.to_identifier(inner.alias_or_name, quoted=True))
    place = place_of(pivot, sql)
    return exp.Subquery(this=put_at(query, place), alias=alias)


@dataclass(frozen=True)
class _Group:
    """The rows that one value, or one of each of several columns, picks."""

    condition: exp.Expr
    name: str


def _pivot(pivot: exp.Pivot, inner: exp.Expr, sql: str, functions: Collection[str]) -> exp.Select:
    place = place_of(pivot, sql)
    if pivot.args.get("default_on_null") or not pivot.args.get("fields"):
        raise SqlError("cannot read this PIVOT", place=place, hint=_SHORT_HINT)
    keys = [column for field in pivot.args["fields"] for column in _columns_of(field)]
    read = [*keys, *pivot.expressions]
    names = {one.name.lower(): one for tree in read for one in tree.find_all(exp.Column)}
    items: list[exp.Expr] = []
    for groups in product(*(list(_groups(field, pivot, sql)) for field in pivot.args["fields"])):
        for call in pivot.expressions:
            items.append(_item(call, groups, len(pivot.expressions) > 1, sql, functions))
    _refuse_twice(items, sql)
    group = pivot.args.get("group")
    if group is None:
        left_out = [one.copy() for one in names.values()]
        items.insert(0, put_at(exp.Star(except_=left_out), place))
        group = exp.Group(all=True)
    else:
        items[:0] = [one.copy() for one in group.expressions]
    put_at(group, place)
    return exp.Select(expressions=items, from_=exp.From(this=inner), group=group)


def _columns_of(field: exp.Expr) -> list[exp.Expr]:
    """The columns after FOR."""
    named = field.this
    return list(named.expressions) if isinstance(named, exp.Tuple) else [named]


def _groups(field: exp.Expr, pivot: exp.Pivot, sql: str) -> Iterator[_Group]:
    columns = _columns_of(field)
    for item in field.expressions if isinstance(field, exp.In) else ():
        value = item.this if isinstance(item, exp.PivotAlias) else item
        values = value.expressions if isinstance(value, exp.Tuple) else [value.unnest()]
        place = place_of(value, sql)
        if len(values) != len(columns):
            raise SqlError(
                f"PIVOT has {count(len(columns), 'column')} after FOR, "
                f"but {count(len(values), 'value')} here",
                place=place,
                hint="write FOR (k, j) IN (('a', 1), ('b', 2))",
            )
        for one in values:
            _require_constant(one, pivot, sql)
        tests = [_equals(*pair) for pair in zip(columns, values, strict=True)]
        condition = put_at(exp.and_(*tests, copy=False), place)
        alias = item.args["alias"].name if isinstance(item, exp.PivotAlias) else None
        yield _Group(condition, alias or "_".join(_name_of(one, sql) for one in values))
    if not isinstance(field, exp.In) or not field.expressions:
        raise SqlError(
            "PIVOT needs the values that become columns",
            place=place_of(pivot, sql),
            detail="the columns of a query are known before its rows",
            hint=_SHORT_HINT,
        )


def _require_constant(value: exp.Expr, pivot: exp.Pivot, sql: str) -> None:
    for node in value.find_all(exp.Column, exp.Query, exp.PivotAny):
        is_name = isinstance(node, exp.Column)
        raise SqlError(
            "the values of PIVOT must be constants",
            place=place_of(value if is_name else pivot, sql),
            detail="the columns of a query are known before its rows",
            hint=f"enclose text in quotes: '{node.name}'" if is_name else _SHORT_HINT,
        )


def _equals(column: exp.Expr, value: exp.Expr) -> exp.Expr:
    kind = exp.Is if isinstance(value, exp.Null) else exp.EQ
    return kind(this=column.copy(), expression=value.copy())


def _name_of(value: exp.Expr, sql: str) -> str:
    """The name of a column that a value becomes, as in Spark."""
    if isinstance(value, exp.Null | exp.Boolean):
        return value.sql().lower()
    text = value.this if isinstance(value, exp.Cast) else value
    return text.name if isinstance(text, exp.Literal) else text_of(value, sql)


def _item(
    call: exp.Expr,
    groups: tuple[_Group, ...],
    is_named: bool,
    sql: str,
    functions: Collection[str],
) -> exp.Expr:
    """An aggregate of the rows that these values pick."""
    place = place_of(call, sql)
    value = copy_of(call, place).unalias()
    aggregates = list(aggregates_in(value, functions))
    if not aggregates or value.find(exp.Window) is not None:
        raise SqlError("PIVOT needs aggregates", place=place, hint=_SHORT_HINT)
    name = "_".join(one.name for one in groups)
    if is_named:
        name += "_" + (call.alias or text_of(call, sql))
    tests = [copy_of(one.condition, place) for one in groups]
    condition = exp.and_(*tests, copy=False)
    for one in aggregates:
        limited = _limited(one, condition)
        value = limited if one is value else value
    return put_at(exp.alias_(value, name, quoted=True, copy=False), place)


def _limited(call: exp.Expr, condition: exp.Expr) -> exp.Expr:
    """An aggregate of the rows that meet a condition, in the place of one of all rows."""
    if isinstance(call, exp.Filter):
        where = call.expression
        where.set("this", exp.and_(where.this, condition.copy(), copy=False))
        return call
    limited = exp.Filter(expression=exp.Where(this=condition.copy()))
    call.replace(limited)
    limited.set("this", call)
    limited.meta.update(call.meta)
    return limited


def _refuse_twice(items: list[exp.Expr], sql: str) -> None:
    seen: set[str] = set()
    for item in items:
        if item.alias.lower() in seen:
            raise SqlError(
                f"PIVOT makes two columns {item.alias}",
                place=place_of(item, sql),
                hint="give one of the values a name: IN ('a' AS first, 'A' AS second)",
            )
        seen.add(item.alias.lower())


def _unpivot(pivot: exp.Pivot, inner: exp.Expr, sql: str, _: Collection[str]) -> exp.Select:
    place = place_of(pivot, sql)
    fields = pivot.args.get("fields") or [None]
    field, named = fields[0], pivot.expressions
    if not isinstance(field, exp.In) or len(fields) > 1 or len(named) != 1 or not named[0].name:
        raise SqlError("cannot read this UNPIVOT", place=place, hint=_LONG_HINT)
    if not inner.alias_or_name:
        inner.set("alias", exp.TableAlias(this=exp.to_identifier(_ROWS)))
    entry = inner.alias_or_name
    pairs = _named_columns(field, entry, sql)
    grow(4 * len(pairs), place)
    names = [exp.Tuple(expressions=[exp.Literal.string(name)]) for name in pairs]
    table = exp.TableAlias(this=exp.to_identifier(_NAMES, quoted=True), columns=[field.this.copy()])
    key = put_at(
        exp.Column(this=field.this.copy(), table=exp.to_identifier(_NAMES, quoted=True)), place
    )
    cases = [exp.If(this=exp.Literal.string(name), true=column) for name, column in pairs.items()]
    value = put_at(exp.Case(this=key.copy(), ifs=cases), place)
    star = exp.Star(except_=[one.copy() for one in pairs.values()])
    others = exp.Column(this=star, table=exp.to_identifier(entry, quoted=True))
    query = exp.Select(
        expressions=[put_at(others, place), key, exp.alias_(value, named[0].name, quoted=True)],
        from_=exp.From(this=inner),
        joins=[exp.Join(this=exp.Values(expressions=names, alias=table), kind="CROSS")],
    )
    if not pivot.args.get("include_nulls"):
        test = exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null()))
        query.set("where", exp.Where(this=put_at(test, place)))
    return query


def _named_columns(field: exp.In, entry: str, sql: str) -> dict[str, exp.Expr]:
    """The columns after IN by the names that their rows get."""
    pairs: dict[str, exp.Expr] = {}
    for item in field.expressions:
        column = item.this if isinstance(item, exp.PivotAlias) else item
        place = place_of(column, sql)
        if not isinstance(column, exp.Column):
            raise SqlError("UNPIVOT takes single columns", place=place, hint=_LONG_HINT)
        name = item.args["alias"].name if isinstance(item, exp.PivotAlias) else column.name
        if name in pairs:
            raise SqlError(
                f"UNPIVOT has two names {name}",
                place=place,
                hint="give one of the columns another name: IN (a, b AS 'other')",
            )
        pairs[name] = put_at(
            exp.column(column.this.copy(), exp.to_identifier(entry, quoted=True)), place
        )
    return pairs
