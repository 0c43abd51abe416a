"""GROUPING SETS, ROLLUP and CUBE: every row counts once in each set of keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product
from typing import Final

import pyarrow as pa
from sqlglot import exp

from nilometer.errors import Place, SqlError
from nilometer.model.expressions import Argument, Constant, Expression
from nilometer.sql.expressions.scalars import ColumnRef, Scalar, column
from nilometer.sql.parse.places import place_of
from nilometer.sql.plan.changes_plan import Column, Node, names_of
from nilometer.sql.plan.join_plan import Item
from nilometer.sql.plan.operations import compute, union_all

MOST_SETS: Final = 64
SET_NUMBER: Final = "grouping set"
"""The key that distinguishes the sets of keys."""
Keys = tuple[exp.Expr, ...]


def read_sets(group: exp.Expr, sql: str) -> tuple[Keys, ...]:
    """The sets of keys by which rows are grouped: one, if it is a plain GROUP BY."""
    plain = [one for one in group.expressions if not isinstance(one, _SETS)]
    special: list[exp.Expr] = [one for one in group.expressions if isinstance(one, _SETS)]
    behind = [
        one
        for name in ("rollup", "cube", "grouping_sets")
        for one in group.args.get(name) or ()
        if isinstance(one, exp.Expr)
    ]
    for one in behind:  # GROUP BY a, b WITH ROLLUP | GROUPING SETS (…)
        if isinstance(one, exp.GroupingSets):
            special.append(one)
        else:
            special.append(type(one)(expressions=plain))
        plain = []
    place = place_of(group, sql)
    sets = [tuple(chain(*one)) for one in _product([[tuple(plain)], *map(_sets, special)], place)]
    return tuple(sets)


def _sets(tree: exp.Expr) -> list[Keys]:
    match tree:
        case exp.Rollup():
            parts = [_keys(one) for one in tree.expressions]
            ends = range(len(parts), -1, -1)
            return [tuple(chain(*parts[:end])) for end in ends]
        case exp.Cube():
            parts = [_keys(one) for one in tree.expressions]
            if 2 ** len(parts) > MOST_SETS:
                return [()] * (MOST_SETS + 1)
            sizes = range(len(parts), -1, -1)
            return [tuple(chain(*one)) for size in sizes for one in combinations(parts, size)]
        case exp.GroupingSets():
            return list(chain.from_iterable(map(_sets, tree.expressions)))
    return [_keys(tree)]


def _keys(tree: exp.Expr) -> Keys:
    if isinstance(tree, exp.Tuple):
        return tuple(tree.expressions)
    return (tree.unnest(),)


def _product(sets: Sequence[Sequence[Keys]], place: Place) -> Iterator[tuple[Keys, ...]]:
    total = 1
    for one in sets:
        total *= len(one)
        if total > MOST_SETS:
            raise SqlError(
                f"more than {MOST_SETS} grouping sets",
                place=place,
                hint="list the ones you need: GROUPING SETS ((a, b), (a), ())",
            )
    return product(*sets)


@dataclass(frozen=True)
class GroupingSets:
    """Sets of keys, by the names of the keys, and how a row is repeated for each of them."""

    sets: tuple[frozenset[str], ...]

    @property
    def key(self) -> Item:
        """The key that distinguishes the sets."""
        return Item(SET_NUMBER, Scalar(exp.Literal.number(0), Place("", 0, 0)))

    def expand(self, node: Node, keys: Sequence[Item]) -> Node:
        """Every row once for each set, with NULL in the keys that are not in it."""
        names = [one.name for one in keys]
        if names[-1] != SET_NUMBER:
            raise SqlError(
                "a key that GROUPING SETS, ROLLUP or CUBE may leave out cannot be an argument of "
                "this function",
                place=keys[-1].value.place,
                hint="apply it to the answer: SELECT f(k) FROM (SELECT … GROUP BY …) a",
            )
        columns = tuple(
            Column(one.name, pa.int32()) if one.name == SET_NUMBER else one for one in node.columns
        )
        parts = []
        for number, key_set in enumerate(self.sets):
            values: list[Expression] = [Argument(place) for place in range(len(columns))]
            for place, name in enumerate(names):
                if name == SET_NUMBER:
                    values[place] = Constant(number)
                elif name not in key_set:
                    values[place] = Constant(None)
            parts.append(compute(node, None, values, columns, names_of(columns)))
        return union_all(parts, columns)

    def left_out(self, names: Iterable[str], source: str) -> exp.Expr:
        """GROUPING(a, b): a number whose bits say which keys a set leaves out."""
        names = list(names)
        cases = []
        for number, key_set in enumerate(self.sets):
            bits = sum(
                1 << place for place, one in enumerate(reversed(names)) if one not in key_set
            )
            is_set = exp.EQ(
                this=column(ColumnRef(source, SET_NUMBER)),
                expression=exp.Literal.number(number),
            )
            cases.append(exp.If(this=is_set, true=exp.Literal.number(bits)))
        return exp.Case(ifs=cases[:-1], default=cases[-1].args["true"])


_SETS: Final = (exp.Rollup, exp.Cube, exp.GroupingSets)
