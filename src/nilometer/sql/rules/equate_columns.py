"""Turn equalities between streams into keys, closed transitively.

A.k = B.k and B.k = C.k make one key of three streams; A.x = B.x and B.y = C.y two keys of two.
Classes of equal columns that the same streams share make one key of several columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pyarrow as pa
import pyarrow.types as pat
from sqlglot import exp

from nilometer.errors import PredicateError, SqlTypeError
from nilometer.kernels.expression_types import common_type, is_integer, type_name
from nilometer.sql.expressions.scalars import (
    ComputedRef,
    Ref,
    ResolvedColumn,
    Scalar,
    spell_own,
    tree_of,
)
from nilometer.sql.plan.join_plan import EqualValues, JoinKey, JoinPlan
from nilometer.sql.plan.types import Types, names_of_types

_EXACT_IN_DOUBLE = (pa.int8(), pa.int16(), pa.int32(), pa.float32(), pa.float64())


@dataclass
class _Classes:
    """Columns known to be equal, and the types in which they are compared."""

    types: Types
    members: list[list[Ref]] = field(default_factory=list)
    kinds: list[pa.DataType] = field(default_factory=list)

    def unite(self, left: Ref, right: Ref) -> bool:
        """Put two columns into one class if one type can compare all its members exactly."""
        places = sorted({self._place(left), self._place(right)})
        kind = _exact_common_type([self.kinds[p] for p in places])
        members = [ref for p in places for ref in self.members[p]]
        if kind is None or not all(_is_exact(self.types.of_ref(ref), kind) for ref in members):
            return False
        self.members[places[0]], self.kinds[places[0]] = members, kind
        for place in places[1:]:
            del self.members[place], self.kinds[place]
        return True

    def _place(self, ref: Ref) -> int:
        for place, members in enumerate(self.members):
            if ref in members:
                return place
        self.members.append([ref])
        self.kinds.append(self.types.of_ref(ref))
        return len(self.members) - 1


def equate_columns(plan: JoinPlan) -> JoinPlan:
    """Move equalities of two streams from the conditions to the keys."""
    types = Types(plan.catalog, plan.sources)
    classes = _Classes(types)
    remaining, used = [], []
    for condition in plan.conditions:
        sides = _sides(condition)
        if sides is not None:
            _require_comparable(condition, sides, types)
        if sides is not None and classes.unite(*sides):
            used.append(condition)
        else:
            remaining.append(condition)
    equal = [
        EqualValues(tuple(members), kind)
        for members, kind in zip(classes.members, classes.kinds, strict=True)
        if len({ref.stream for ref in members}) > 1
    ]
    remaining += [
        Scalar(exp.EQ(this=tree_of(left), expression=tree_of(right)), used[0].place)
        for one in equal
        for left, right in _within_one_stream(one)
    ]
    return replace(plan, conditions=tuple(remaining), keys=tuple(_bundle(equal)))


def _sides(condition: Scalar) -> tuple[Ref, Ref] | None:
    """The columns that a condition equates, if they belong to two streams."""
    tree = condition.tree
    if not isinstance(tree, exp.EQ):
        return None
    sides = [_side(side.unnest(), condition) for side in (tree.left, tree.right)]
    left, right = sides
    if left is None or right is None or left.stream == right.stream:
        return None
    return left, right


def _side(tree: exp.Expr, condition: Scalar) -> Ref | None:
    if isinstance(tree, ResolvedColumn):
        return tree.ref
    streams = Scalar(tree, condition.place).streams
    if len(streams) != 1:
        return None
    return ComputedRef(next(iter(streams)), spell_own(tree), tree)


def _require_comparable(condition: Scalar, sides: tuple[Ref, Ref], types: Types) -> None:
    kinds = [types.of_ref(side) for side in sides]
    if all(map(pat.is_map, kinds)):
        raise SqlTypeError(
            "maps cannot be compared",
            place=condition.place,
            detail=f"{sides[0]} and {sides[1]} are of type {type_name(kinds[0])}",
            hint=f"compare entries: {sides[0]}['key'] = {sides[1]}['key']",
        )
    if _common_type(*kinds) is None:
        raise SqlTypeError(
            f"a key is compared across types: {names_of_types(kinds)}",
            place=condition.place,
            detail=f"{sides[0]} is {names_of_types(kinds[:1])}, "
            f"{sides[1]} is {names_of_types(kinds[1:])}",
            hint="cast one side, such as CAST(A.k AS BIGINT)",
        )


def _common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    try:
        return common_type(left, right)
    except PredicateError:
        return None


def _exact_common_type(kinds: Iterable[pa.DataType]) -> pa.DataType | None:
    first, *rest = kinds
    both: pa.DataType | None = first
    for kind in rest:
        both = None if both is None else _common_type(both, kind)
    return None if both is None or _is_incomparable(both) else both


def _is_incomparable(kind: pa.DataType) -> bool:
    if pat.is_map(kind) or pat.is_null(kind):
        return True
    if pat.is_nested(kind):
        return any(_is_incomparable(kind.field(i).type) for i in range(kind.num_fields))
    return False


def _is_exact(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether every value of one type is represented exactly in the other."""
    if kind == wanted or not pat.is_floating(wanted):
        return True
    return kind in _EXACT_IN_DOUBLE and not (is_integer(kind) and pat.is_float32(wanted))


def _within_one_stream(equal: EqualValues) -> Iterable[tuple[Ref, Ref]]:
    for stream in dict.fromkeys(ref.stream for ref in equal.members):
        yield from pairwise([ref for ref in equal.members if ref.stream == stream])


def _bundle(equal: list[EqualValues]) -> Iterable[JoinKey]:
    """One key for all classes with the same streams; those with most streams first."""
    groups: dict[frozenset[str], list[EqualValues]] = {}
    for one in equal:
        groups.setdefault(one.streams, []).append(one)
    bundles = [JoinKey(tuple(group)) for group in groups.values()]
    return sorted(bundles, key=lambda key: -len(key.streams))
