"""The items of arrays in FROM: a row is repeated once for every item of an array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

import pyarrow as pa
import pyarrow.types as pat
from sqlglot import exp

from nilometer.errors import Place, SqlError, SqlTypeError
from nilometer.kernels.expand_arrays import POSITION, item_types
from nilometer.kernels.expression_types import type_name
from nilometer.sql.bind.expression_binder import ExpressionBinder
from nilometer.sql.bind.from_entry import BoundEntry
from nilometer.sql.bind.scope import FromUnit, Scope
from nilometer.sql.catalog import Catalog, Relation
from nilometer.sql.expressions.explosive_functions import MOST, max_items
from nilometer.sql.expressions.scalars import ColumnRef, Scalar, column
from nilometer.sql.parse.over_calls import HIDDEN
from nilometer.sql.parse.places import place_of
from nilometer.sql.plan.bound_query import BoundQuery
from nilometer.sql.plan.join_plan import Expansion, Source
from nilometer.sql.plan.types import Types
from nilometer.sql.rewrite.put_expansions import ExpandCall


def expand_entry(
    entry: exp.Expr, call: ExpandCall, before: Sequence[BoundEntry], catalog: Catalog, sql: str
) -> list[BoundEntry]:
    """The entries before, one of them expanded, and the entry of the items themselves."""
    scope = Scope(sql, tuple(one.unit for one in before))
    array = ExpressionBinder(scope, "UNNEST").bind(call.this)
    base, source = _expanded_source(array, before)
    kind = Types(catalog, tuple(one for e in before for one in e.bound.sources)).of(array)
    kinds = None if kind is None else item_types(kind)
    if kind is None or kinds is None:
        shown_kind = "not known here" if kind is None else type_name(kind)
        raise SqlTypeError(
            "only arrays and maps have items",
            place=array.place,
            detail=f"{array} is of type {shown_kind}"
            if kind is not None
            else f"{array} is {shown_kind}",
        )
    name = entry.alias
    columns = _new_names(source.relation, name, _item_names(kind))
    wider = _widened(source.relation, columns, (POSITION, *kinds))
    added = Expansion(array, kind, columns)
    expanded = replace(source, relation=wider, expansions=(*source.expansions, added))
    _require_few(expanded, array.place)
    bound = replace(
        base.bound,
        sources=tuple(expanded if one is source else one for one in base.bound.sources),
        conditions=(*base.bound.conditions, *_is_there(call, source, columns[0], array.place)),
    )
    names = _shown(call, source.name, columns, kind, sql)
    hidden = frozenset(entry.meta.get(HIDDEN, ()))
    unit = FromUnit(name, names, (), {source.name: wider}, hidden=hidden)
    place = place_of(entry, sql)
    items = BoundEntry(unit, BoundQuery((), (), (), (), None), None, place)
    return [*(replace(one, bound=bound) if one is base else one for one in before), items]


def _expanded_source(array: Scalar, before: Sequence[BoundEntry]) -> tuple[BoundEntry, Source]:
    """The stream or table whose rows hold the array; the first if it is a constant."""
    candidates = [(e, s) for e in before for s in e.bound.sources if s.name in array.streams]
    if not array.streams:
        candidates = [(e, s) for e in before for s in e.bound.sources][:1]
    if len(candidates) != 1:
        raise SqlError(
            "the array must be a column of one stream or table that precedes it in FROM",
            place=array.place,
            detail=f"{array} is of {len(array.streams)}",
            hint="write FROM A, UNNEST(A.x) AS u (item)",
        )
    entry, source = candidates[0]
    if source.node is not None or source.until is not None:
        raise SqlError(
            f"the rows of {entry.unit.name} are added and retracted: its arrays cannot be unnested",
            place=array.place,
            hint="unnest them in the subquery, before rows are joined or grouped",
        )
    if entry.has_rows or source.rows is not None:
        raise SqlError(
            "a ROWS window must follow the items, not precede them",
            place=array.place,
            hint=f"write FROM (SELECT … FROM {source.relation.name} A, UNNEST(A.x) AS u (item)) "
            "AS s [ROWS 5]",
        )
    return entry, source


def _require_few(source: Source, place: Place) -> None:
    """Refuse nested arrays that make too many rows out of one."""
    count = prod(max_items(one.array.tree) for one in source.expansions)
    if count > MOST:
        raise SqlError(
            f"one row could expand into more than {MOST:,} rows",
            place=place,
            detail="an array in the data is assumed to have 100 items",
            hint="unnest fewer or shorter arrays",
        )


def _item_names(kind: pa.DataType) -> tuple[str, ...]:
    return ("number", "key", "value") if pat.is_map(kind) else ("number", "item")


def _new_names(relation: Relation, name: str, items: Sequence[str]) -> tuple[str, ...]:
    """Column names that the relation does not have yet."""
    taken, prefix = {one.lower() for one in relation.columns}, name
    while any(f"{prefix}.{item}".lower() in taken for item in items):
        prefix += "'"
    return tuple(f"{prefix}.{item}" for item in items)


def _widened(relation: Relation, names: Sequence[str], kinds: Sequence[pa.DataType]) -> Relation:
    return replace(
        relation,
        columns=(*relation.columns, *names),
        types=(*relation.types, *kinds),
        sensors=None,
    )


def _is_there(call: ExpandCall, source: Source, number: str, place: Place) -> list[Scalar]:
    """The condition that a row has an item, unless rows without items are kept."""
    if call.args.get("outer"):
        return []
    missing = exp.Is(this=column(ColumnRef(source.name, number)), expression=exp.Null())
    return [Scalar(exp.Not(this=missing), place)]


def _shown(
    call: ExpandCall, stream: str, columns: Sequence[str], kind: pa.DataType, sql: str
) -> Mapping[str, exp.Expr]:
    """The columns of the items, under the names that the query gives them."""
    number, *items = (column(ColumnRef(stream, one)) for one in columns)
    meanings: list[exp.Expr] = list(items)
    names = ["key", "value"] if pat.is_map(kind) else ["col"]
    first = call.args.get("first")
    if first is not None:
        counted: exp.Expr = number
        if first:
            one = exp.Literal.number(first)
            counted = exp.Paren(this=exp.Add(this=number, expression=one))
        place = len(meanings) if call.args.get("is_last") else 0
        meanings.insert(place, counted)
        names.insert(place, "pos")
    written = call.args.get("columns") or names
    if len(written) != len(names):
        raise SqlError(
            f"got {len(written)} names for {len(names)} columns of items",
            place=place_of(call, sql),
            detail=f"they have {', '.join(names)}",
        )
    if len({one.lower() for one in written}) != len(written):
        raise SqlError("two columns of the items have the same name", place=place_of(call, sql))
    return dict(zip(written, meanings, strict=True))
