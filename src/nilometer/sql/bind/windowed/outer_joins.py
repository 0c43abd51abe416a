"""LEFT, RIGHT and FULL JOIN: matches, and rows without partners padded with NULLs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nilometer.errors import Place
from nilometer.model.expressions import Argument, Constant, Expression
from nilometer.operators.change_specs import SetFunction
from nilometer.sql.bind.scope import FromUnit
from nilometer.sql.bind.windowed.build_nodes import NodeBuilder
from nilometer.sql.bind.windowed.held_units import HeldUnits, NeededColumns, merge
from nilometer.sql.bind.windowed.refusals import require_comparable_rows
from nilometer.sql.expressions.scalars import Scalar
from nilometer.sql.plan.changes_plan import Node
from nilometer.sql.plan.operations import choose_columns, compute, set_counts, union_all

LEFT, RIGHT = "", "on the right"
"""The names of the sources that stand for the sides where nodes hold them."""
Conditions = Callable[[Sequence[FromUnit]], Sequence[Scalar]]
"""Binds the conditions of a join over units."""


@dataclass(frozen=True)
class OuterJoin:
    """A join that keeps the rows without partners of one side, or both."""

    builder: NodeBuilder
    wanted: NeededColumns
    side: str
    place: Place

    def join(self, left: HeldUnits, right: HeldUnits, on: Conditions) -> HeldUnits:
        """Both sides as one."""
        units = (*left.units, *right.units)
        items = self.wanted.items(units)
        count = len(self.wanted.items(left.units))
        is_block = all(source.is_block for source in (*left.rows.sources, *right.rows.sources))
        keeps_left, keeps_right = self.side in ("LEFT", "FULL"), self.side in ("RIGHT", "FULL")
        held_left = self._hold(left) if keeps_left else None
        held_right = self._hold(right) if keeps_right else None
        if is_block:
            joined = self._inner(left, right, on)
        else:
            joined = self._inner(
                self._as_source(left, held_left, LEFT),
                self._as_source(right, held_right, RIGHT),
                on,
            )
        places = range(len(items))
        parts = [joined]
        if held_left is not None:
            parts.append(self._padded(held_left, joined, places[:count], 0))
        if held_right is not None:
            parts.append(self._padded(held_right, joined, places[count:], count))
        return self.wanted.derive(units, union_all(parts, joined.columns), self.place)

    def _hold(self, side: HeldUnits) -> Node:
        node = self.builder.build(side.rows, self.wanted.items(side.units))
        require_comparable_rows(node.columns, self.place, f"{self.side} JOIN")
        return node

    def _as_source(self, side: HeldUnits, node: Node | None, name: str) -> HeldUnits:
        """A side as a source that is a node, since it is used twice."""
        if node is None:
            return side
        return self.wanted.derive(side.units, node, self.place, name)

    def _inner(self, left: HeldUnits, right: HeldUnits, on: Conditions) -> Node:
        units = (*left.units, *right.units)
        rows = merge(left.rows, right.rows, on(units))
        return self.builder.build(rows, self.wanted.items(units))

    def _padded(self, held: Node, joined: Node, own: Sequence[int], first: int) -> Node:
        """Rows of one side without partners, and NULLs for the columns of the other."""
        matched = choose_columns(joined, own)
        alone = set_counts(SetFunction.WITHOUT, (held, matched), matched.columns)
        values: list[Expression] = [
            Argument(place - first) if place in own else Constant(None)
            for place in range(len(joined.columns))
        ]
        texts = [one.name if place in own else "NULL" for place, one in enumerate(joined.columns)]
        return compute(alone, None, values, joined.columns, texts)
