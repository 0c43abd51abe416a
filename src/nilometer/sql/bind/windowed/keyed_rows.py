"""The rows of a subquery, keyed by the values that outer rows are compared with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.types as pat
from sqlglot import exp

from nilometer.errors import Place
from nilometer.operators.change_specs import SetFunction
from nilometer.sql.bind.scope import FromUnit
from nilometer.sql.bind.windowed.held_units import merge
from nilometer.sql.expressions.scalars import (
    ColumnRef,
    ResolvedColumn,
    Scalar,
    column,
    rebuild,
)
from nilometer.sql.plan.bound_query import BoundQuery
from nilometer.sql.plan.derived import derived_source
from nilometer.sql.plan.join_plan import Source
from nilometer.sql.plan.operations import choose_columns, set_counts


@dataclass(frozen=True)
class KeyedRows:
    """The rows of a subquery, their group keys, and what these equal in outer rows."""

    rows: BoundQuery
    keys: tuple[Scalar, ...]
    outside: tuple[exp.Expr, ...]
    kinds: tuple[pa.DataType, ...] | None = None
    """The types of the keys where NULL is equal to NULL."""

    def conditions(self, units: Sequence[FromUnit], place: Place) -> list[Scalar]:
        """The equalities, where outer rows and groups are these units."""
        *around, groups = units
        held = {ref.column: ref.stream for ref in _columns(around)}

        def moved(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, ResolvedColumn) or not isinstance(node.ref, ColumnRef):
                return rebuild(node, moved)
            return column(replace(node.ref, stream=held[node.ref.column]))

        equalities: list[exp.Expr] = []
        for number, tree in enumerate(self.outside):
            sides = (moved(tree), groups.columns[str(number)].copy())
            if self.kinds is None:
                equalities.append(equal([sides]))
            else:
                equalities += _same(*sides, self.kinds[number])
        return [Scalar(one, place) for one in equalities]


def by_values(rows: BoundQuery, value: Scalar, around: Source) -> KeyedRows:
    """A subquery's rows, joined with the distinct outer values that it uses."""
    node, name = around.node, around.name
    assert node is not None
    used = {
        ref.column: ColumnRef(name, ref.column)
        for one in (*(c for c in rows.conditions), value)
        for ref in one.columns
        if ref.stream == name and isinstance(ref, ColumnRef)
    }
    places = [around.relation.columns.index(one) for one in used]
    chosen = choose_columns(node, places)
    columns = chosen.columns
    distinct = set_counts(SetFunction.DISTINCT, (chosen,), columns)
    once = derived_source(name, distinct, around.place)
    keys = [column(one) for one in used.values()]
    return KeyedRows(
        merge(BoundQuery((once,), (), (), (), None), rows, ()),
        tuple(Scalar(one, around.place) for one in keys),
        tuple(keys),
        tuple(one.kind for one in columns),
    )


def _columns(units: Sequence[FromUnit]) -> Iterator[ColumnRef]:
    for unit in units:
        for tree in unit.columns.values():
            if isinstance(tree, ResolvedColumn) and isinstance(tree.ref, ColumnRef):
                yield tree.ref


def equal(pairs: Sequence[tuple[exp.Expr, exp.Expr]]) -> exp.Expr:
    return exp.and_(*(exp.EQ(this=a.copy(), expression=b.copy()) for a, b in pairs), copy=False)


def unknown(pairs: Sequence[tuple[exp.Expr, exp.Expr]]) -> list[exp.Expr]:
    """The conditions, any of which makes the equality of two rows unknown due to NULLs."""
    if len(pairs) == 1:
        return [_is_null(one) for one in pairs[0]]
    maybe = [exp.or_(equal([pair]), *map(_is_null, pair)) for pair in pairs]
    return [exp.and_(*maybe, exp.or_(*(_is_null(one) for pair in pairs for one in pair)))]


def _same(left: exp.Expr, right: exp.Expr, kind: pa.DataType) -> list[exp.Expr]:
    """Two values are equal, or both are NULL; what can be a key of a join comes first."""
    same = exp.NullSafeEQ(this=left.copy(), expression=right.copy())
    filler: exp.Expr | None = None
    if pat.is_integer(kind) or pat.is_floating(kind) or pat.is_decimal(kind):
        filler = exp.Literal.number(0)
    elif pat.is_string(kind):
        filler = exp.Literal.string("")
    elif pat.is_timestamp(kind):
        text = exp.Literal.string("1970-01-01 00:00:00+00:00")
        filler = exp.Cast(this=text, to=exp.DataType.build("timestamp", dialect="spark"))
    if filler is None:
        return [same]
    sides = (exp.Coalesce(this=one, expressions=[filler.copy()]) for one in (left, right))
    return [exp.EQ(this=next(sides), expression=next(sides)), same]


def _is_null(tree: exp.Expr) -> exp.Expr:
    return exp.Is(this=tree.copy(), expression=exp.Null())
